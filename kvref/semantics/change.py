"""incr, decr, delete, flush_all and bind."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from kvref.semantics.keys import mapping_name
from kvref.semantics.mapping import Kind, Mapping
from kvref.semantics.ports import Cell, Clear, Lookup, Remove, Row, Steps, Update
from kvref.semantics.session import Session
from kvref.semantics.store import new_cas, refused_by_table, with_values
from kvref.semantics.values import (
    RefusedError,
    is_number,
    join_value,
    leading_number,
    only_column,
    to_bytes,
    to_number,
    too_wide,
    value_cell,
    wrapped,
)
from kvref.wire import commands as c
from kvref.wire.numbers import low_32_signed
from kvref.wire.replies import ClientError, Number, Reply, ServerError, Status

NON_NUMERIC: Final = "cannot increment or decrement non-numeric value"
# A stored text of this many bytes or more is no number to the plugin, whatever it holds (arith-042, arith-050).
LONGEST_NUMBER: Final = 126
_TOP: Final = 1 << 64


def arithmetic(session: Session, command: c.Arithmetic, now: int) -> Steps:
    """Add to or subtract from a stored number; flags and expiry stay, the cas number is new (arith-001)."""
    target = yield from session.resolve(command.word, switches=session.rules.all_verbs_switch)
    row, mapping = yield from _existing(session, target, now)
    _count(session, command, hit=row is not None)
    if row is None or mapping is None:
        return _no_row(session, target)
    index = _column_used(session, mapping, row)
    result = _result(session, command, _number(session, mapping, row, index))
    values = _written(session, mapping, result, index)
    cause = yield Update(
        mapping, row.key, with_values(mapping, row, values, new_cas(session, mapping)), session.rules.clears_unmapped
    )
    if cause is not None:
        return ServerError(cause if session.rules.refusal_is_error else "failed to store item")
    return Number(result)


def delete(session: Session, command: c.Delete, now: int) -> Steps:
    """Delete one row."""
    target = yield from session.resolve(command.word, switches=session.rules.all_verbs_switch)
    row, mapping = yield from _existing(session, target, now)
    counters = session.shared.counters
    if row is None or mapping is None:
        counters.delete_misses += 1
        return Status.NOT_FOUND
    cause = yield Remove(mapping, row.key)
    if cause is not None:
        return refused_by_table(session, cause) if session.rules.refusal_is_error else Status.NOT_FOUND
    counters.delete_hits += 1
    return Status.DELETED


def flush_all(session: Session, command: c.FlushAll, _now: int) -> Steps:
    """Empty the table of the bound mapping, and no other (map-051)."""
    if command.delay and not session.rules.ignores_delay:
        return ClientError("delayed flush_all is not supported: send flush_all or flush_all 0")
    mapping = yield from session.mapping()
    session.shared.counters.cmd_flush += 1
    cause = yield Clear(mapping)
    if cause is not None:
        return ServerError(cause if session.rules.refusal_is_error else "failed to flush cache")
    return Status.OK


def bind(session: Session, command: c.Bind, _now: int) -> Steps:
    """Bind the connection to a mapping by its bare name; an unknown one binds nothing (bind-005)."""
    mapping = yield from session.switch(mapping_name(command.name))
    return Status.NOT_FOUND if mapping is None else Status.SUCCEED


def _existing(session: Session, target: tuple[Mapping, bytes] | Status, now: int) -> Steps:
    if isinstance(target, Status):
        return None, None
    mapping, key = target
    cell = session.looked_up(mapping, key) if key else None
    row: Row | None = None if cell is None else (yield Lookup(mapping, cell, for_update=True))
    if row is not None and session.rules.hides_expired and session.expired(row, now):
        row = None
    return row, mapping


def _no_row(session: Session, target: tuple[Mapping, bytes] | Status) -> Reply:
    if session.rules.wraps_integers and not isinstance(target, Status) and not is_number(target[0].key, target[1]):
        return ServerError("failed to store item")  # seen on 8.0.33 for every incr and decr of such a key
    return Status.NOT_FOUND


def _count(session: Session, command: c.Arithmetic, *, hit: bool) -> None:
    counters = session.shared.counters
    if command.increment:
        counters.incr_hits += hit
        counters.incr_misses += not hit
    else:
        counters.decr_hits += hit
        counters.decr_misses += not hit


def _number(session: Session, mapping: Mapping, row: Row, index: int) -> int:
    if session.rules.counts_leading_number:
        return _leading(session, mapping, row, index)
    text = join_value(row.values, session.shared.directory.separator).strip(b" \t\n\v\f\r")
    if len(text) <= LONGEST_NUMBER and text.isdigit() and text.isascii() and int(text) < _TOP:
        return int(text)
    raise RefusedError(ClientError(NON_NUMERIC))


def _column_used(session: Session, mapping: Mapping, row: Row) -> int:
    # innodb_api_arithmetic takes the flags for the number of a value column (seen on both versions).
    flags = (row.flags or 0) % (1 << 32)
    return flags if session.rules.counts_leading_number and flags < len(mapping.values) else 0


def _leading(session: Session, mapping: Mapping, row: Row, index: int) -> int:
    cell = row.values[index]
    if mapping.values[index].kind is Kind.INTEGER:
        return to_number(cell) % _TOP
    if len(to_bytes(cell)) > LONGEST_NUMBER:
        raise RefusedError(ClientError(NON_NUMERIC))
    if cell is None:
        return 0
    # From there on text columns run together without separator up to an integer one (col-011, col-070).
    pairs = zip(mapping.values[index:], row.values[index:], strict=True)
    texts = takewhile(lambda pair: pair[0].kind is not Kind.INTEGER, pairs)
    text = b"".join(to_bytes(part) for _, part in texts).split(b"\0")[0]
    number = leading_number(text)
    if abs(number) < _TOP:
        return number % _TOP
    if session.rules.saturates:
        return _TOP - 1
    raise RefusedError(ClientError(NON_NUMERIC))


def _result(session: Session, command: c.Arithmetic, number: int) -> int:
    if not session.rules.narrow_delta:
        return (number + command.delta) % _TOP if command.increment else max(0, number - command.delta)
    # innodb_api_arithmetic: the delta is an int, and so is the value where decr compares the two.
    delta = low_32_signed(command.delta)
    if command.increment:
        return (number + delta) % _TOP
    return (number - delta) % _TOP if low_32_signed(number) >= delta else 0


def _written(session: Session, mapping: Mapping, result: int, index: int) -> tuple[Cell, ...]:
    column = mapping.values[index]
    text = b"%d" % result
    if column.kind is Kind.INTEGER and session.rules.wraps_integers:
        # The sum passes through a signed 64-bit number on its way into the column (arith-033, arith-034).
        cell: Cell = wrapped(column, result)
    elif column.kind is not Kind.INTEGER and not session.rules.cuts_results and too_wide(column, text.decode()):
        raise RefusedError(ServerError(f"{result} is too wide for column {column.name} ({column.width})"))
    else:
        cell = value_cell(column, text, session.rules)
    return only_column(mapping, index, cell)
