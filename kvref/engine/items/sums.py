"""Rules of incr and decr: which number a value has, the sum, and how the column has it."""

from __future__ import annotations

import re
from typing import Final

from kvref.engine.access_log import Change
from kvref.engine.failures import NOT_COUNTED
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell, Row
from kvref.engine.session import Session
from kvref.engine.values import (
    RefusedError,
    is_number,
    leading_number,
    only_column,
    stored_integer,
    to_bytes,
    to_number,
    too_wide,
    value_cell,
    wrapped,
)
from kvref.protocol import commands as c
from kvref.protocol.numbers import low_32_signed
from kvref.protocol.replies import ClientError, Fault, ServerError

NON_NUMERIC: Final = ClientError("cannot increment or decrement non-numeric value", Fault.NOT_A_NUMBER)
# A stored text of more bytes is not a number to the plugin, whatever its content (arith-051, arith-052).
MAX_NUMBER_LENGTH: Final = 126
_TOP: Final = 1 << 64
# A text that is read to its end: what follows it in memory is read on.
_OPEN_ENDED: Final = re.compile(rb"[ \t\n\v\f\r]*[+-]?[0-9]*")


def check_missing(session: Session, mapping: Mapping, word: bytes, command: c.Arithmetic) -> None:
    """Raise RefusedError for a key without a row if incr and decr notice that the key is not a number."""
    if session.rules.wraps_integers and not is_number(mapping.key, word):
        if session.rules.answers_missing_key and command.initial is not None:
            session.next_cas()  # 5.6.14 is about to create the row by then (more:bin-209)
        raise RefusedError(NOT_COUNTED)


def change_of_sum(old: bytes, result: int) -> Change:
    """Return what an incr or decr did to its item: memcached writes into it if it has room (do_add_delta)."""
    return Change.OVERWRITTEN if len(b"%d" % result) <= len(old) else Change.STORED


def first_number(session: Session, mapping: Mapping, initial: int) -> int:
    """Return the number to store where a request creates the row; raises RefusedError if the column cannot hold it."""
    first = mapping.values[0]
    if first.kind is Kind.INTEGER and session.rules.integers_from_zero and len(mapping.values) > 1:
        session.next_cas()
        return _digits_as_integer(first, b"%d" % initial)  # binary:bin-int-202
    return initial


def column_used(mapping: Mapping, flags: int | None) -> int:
    """Return the place of the value column that incr and decr of a row with these flags count in."""
    # innodb_api_arithmetic takes the flags for the number of a value column (more:several-001).
    index = (flags or 0) % _TOP
    return index if index < len(mapping.values) else 0


def whole_number(text: bytes) -> int:
    """Return the number of a text of digits between blanks; raises RefusedError for others and beyond 64 bits."""
    digits = text.strip()
    if len(digits) <= MAX_NUMBER_LENGTH and digits.isdigit() and (number := int(digits)) < _TOP:
        return number
    raise RefusedError(NON_NUMERIC)


def columns_along(mapping: Mapping, row: Row) -> tuple[Column, ...]:
    """Return the columns whose contents `leading` needs besides the one that is counted in."""
    index = column_used(mapping, row.flags)
    return mapping.following[index] if reads_along(mapping, index, row.values[index]) else ()


def reads_along(mapping: Mapping, index: int, cell: Cell) -> bool:
    """Return whether the number of a value column may go on in the columns behind it, see `leading`."""
    if mapping.values[index].kind is Kind.INTEGER or cell is None or not mapping.following[index]:
        return False
    text = to_bytes(cell)
    return len(text) <= MAX_NUMBER_LENGTH and _OPEN_ENDED.fullmatch(text) is not None


def leading(session: Session, mapping: Mapping, index: int, cell: Cell, along: tuple[Cell, ...]) -> int:
    """Return the number at the beginning of a value column.

    Args:
        along: contents of the columns behind it in the record, if `reads_along`; else none.

    Raises:
        RefusedError: it is too long, or too large.
    """
    if mapping.values[index].kind is Kind.INTEGER:
        return 0 if session.rules.integers_from_zero else to_number(cell) % _TOP
    if cell is None:
        return 0
    text = to_bytes(cell)
    if len(text) > MAX_NUMBER_LENGTH:
        raise RefusedError(NON_NUMERIC)
    text += b"".join(map(_in_record, mapping.following[index], along))
    number = leading_number(text.split(b"\0")[0])
    if abs(number) < _TOP:
        return number % _TOP
    if session.rules.saturates:
        return _TOP - 1
    raise RefusedError(NON_NUMERIC)


def _in_record(column: Column, cell: Cell) -> bytes:
    """Return a column's bytes in InnoDB's record: text has no end there, so a number in front of it goes on in it."""
    if cell is None:
        return b""
    return stored_integer(column, to_number(cell)) if column.kind is Kind.INTEGER else to_bytes(cell)


def sum_of(session: Session, command: c.Arithmetic, number: int) -> int:
    """Return what incr or decr makes of a number, within 64 bits, as the profile counts."""
    if not session.rules.narrow_delta:
        return (number + command.delta) % _TOP if command.increment else max(0, number - command.delta)
    # innodb_api_arithmetic: the delta is an int, and so is the value where decr compares the two.
    delta = low_32_signed(command.delta)
    if command.increment:
        return (number + delta) % _TOP
    return (number - delta) % _TOP if low_32_signed(number) >= delta else 0


def cells_of_sum(session: Session, mapping: Mapping, result: int, index: int) -> tuple[Cell, ...]:
    """Return the value columns that hold a sum, see `summed`; raises RefusedError where they cannot."""
    column = mapping.values[index]
    text = b"%d" % result
    if column.kind is Kind.INTEGER and session.rules.integers_from_zero and len(mapping.values) > 1:
        cell: Cell = _digits_as_integer(column, text)
    elif column.kind is Kind.INTEGER and session.rules.wraps_integers:
        # The sum passes through a signed 64-bit number on its way into the column (columns:arith-034).
        cell = wrapped(column, result)
    elif column.kind is not Kind.INTEGER and not session.rules.cuts_results and too_wide(column, text.decode()):
        raise RefusedError(ServerError(f"{result} is too wide for column {column.name} ({column.width})"))
    elif column.exact and len(text) != column.width:
        raise RefusedError(NOT_COUNTED)  # seen for FLOAT and DOUBLE; 5.6 answers an uninitialised number
    else:
        cell = value_cell(column, text, session.rules)
    return only_column(mapping, index, cell)


def _digits_as_integer(column: Column, digits: bytes) -> int:
    # 5.6 stores the digits where the bytes of the integer belong; as many of them, or nothing (more:several-024).
    if len(digits) != len(stored_integer(column, 0)):
        raise RefusedError(NON_NUMERIC)  # an uninitialised number is never imitated (columns:col-050)
    return int.from_bytes(digits, "little")
