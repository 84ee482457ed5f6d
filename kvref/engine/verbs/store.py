"""set, add, replace, append, prepend and cas."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kvref.engine.access_log import Change
from kvref.engine.cache.memory import Policy
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell, Insert, Lookup, Operation, OperationGen, Remove, Row, Update
from kvref.engine.rules import Rules
from kvref.engine.session import Session
from kvref.engine.values import (
    TOO_LARGE,
    RefusedError,
    as_stored,
    join_value,
    key_cell,
    only_column,
    split_value,
    to_bytes,
    value_cell,
    wrapped,
)
from kvref.protocol import commands as c
from kvref.protocol.replies import ClientError, Fault, Reply, ServerError, Status

APPENDING: Final = ("append", "prepend")
# Stored for a time that has passed already: every integer column holds this second, and every reader of the table,
# the plugin included, takes it for over. memcached stores it too (realtime in memcached.c).
EXPIRED_SECOND: Final = 1
_LARGEST_CAS: Final = (1 << 63) - 1  # that a store counts up to


def store(session: Session, command: c.Store, now: int) -> OperationGen:
    """Run one storage command; raises RefusedError if key, value or time do not fit and the profile does not cut."""
    if session.rules.first_store_opens_default and session.start() and session.default and session.default.fault:
        # innodb_allocate opens a mapping before `@@` is read.
        return ServerError("out of memory storing object", Fault.OUT_OF_MEMORY)
    target = yield from session.resolve(command.word, switches=True)
    if isinstance(target, Status):
        return target
    mapping, key = target
    if not key:
        return Status.NOT_STORED  # a switch word: innodb_store returns before it looks for a row
    return (yield from write(session, mapping, key, command, now))


def write(
    session: Session, mapping: Mapping, key: bytes, command: c.Store, now: int, *, undivided: bool = False
) -> OperationGen:
    """Store under a key, which is not empty; if `undivided`, the value is the first column's, separators included."""
    yield from session.check(mapping)
    begun = session.rules.unfit_key_fails
    if begun:
        yield from session.batch.write()  # the plugin opens its table before it reads the key (more:keyfail-001)
    cell = _key(session, mapping, command, key)
    check_numbers(session, mapping, command, now)
    if not begun:
        yield from session.batch.write()
    found: Row | None = None if mapping.unsearchable else (yield Lookup(mapping, cell, for_update=True))
    refused = refusal(session, command, found, now)
    if refused is not None:
        if found is not None and found_by_add(command, refused):
            session.shared.marks.changed(mapping, to_bytes(found.key), now, Change.OVERWRITTEN)
        return refused
    try:
        row = as_stored(mapping, _new_row(session, mapping, command, cell, found, now, undivided=undivided))
    except RefusedError as unfit:
        if found is None or command.verb != "set" or not session.refused_set_removes:
            raise
        return (yield from _removed_instead(session, mapping, found, unfit.reply))
    if mapping.expiry is None and command.verb not in APPENDING and expires_at_once(session, command.exptime):
        cause = None if found is None else (yield from remove_row(session, mapping, found))
    elif found is None:
        cause = yield Insert(mapping, row, session.rules.clears_unmapped)
    else:
        if not session.rules.renames_key:
            row.key = found.key
        cause = yield Update(mapping, found.key, row, session.rules.clears_unmapped)
    if cause is not None:
        return refused_by_table(session, cause)
    session.defer_count(session.shared.counters.item_stored)
    session.shared.marks.changed(mapping, to_bytes(row.key), now, Change.STORED)
    return Status.STORED


def refusal(session: Session, command: c.Store, found: Row | None, now: int) -> Status | None:
    """Return the reply to a storage command whose condition does not hold for the row, None where it holds."""
    over = found is not None and session.rules.writes_check_expiry and _expired(session, command, found, now)
    present = found is not None and not over
    reply = unmet(session, command.verb, present, None if found is None else found.cas, command.cas)
    if reply is not None and command.verb == "add":
        session.next_cas()  # only the index notices: the number is taken by then (more:clock-001)
    return reply


def found_by_add(command: c.Store, reply: Reply) -> bool:
    """Return whether an add has found its item, which counts as an access (do_store_item in memcached.c)."""
    return command.verb == "add" and reply is Status.NOT_STORED


def _expired(session: Session, command: c.Store, found: Row, now: int) -> bool:
    # A set replaces whatever it finds, often without a look at it.
    check = session.is_expired if command.verb == "set" else session.count_expired
    return check(found.expiry, now)


def _key(session: Session, mapping: Mapping, command: c.Store, key: bytes) -> Cell:
    return storage_key(partial(key_cell, mapping.key, rules=session.rules), command.verb, key, session.rules)


def storage_key(read: Callable[[bytes], Cell], verb: str, key: bytes, rules: Rules) -> Cell:
    """Return the key column's content for a storage command.

    Args:
        key: as the client wrote it.

    Raises:
        RefusedError: the column cannot hold the key.
    """
    try:
        return read(key)
    except RefusedError:
        if verb == "cas" and rules.cas_misses_unfit_key:
            raise RefusedError(Status.NOT_FOUND) from None
        raise


def refused_by_table(session: Session, cause: str) -> Reply:
    """Return the answer to a write that the table refused."""
    return ServerError(cause) if session.rules.refusal_is_error else Status.NOT_STORED


def unmet(session: Session, verb: str, present: bool, cas: int | None, number: int) -> Status | None:
    """Return the reply to a storage command whose condition does not hold, None where it holds.

    Args:
        present: there is a row of its key, which is not expired.
        cas: number of the row, whether it is expired or not.
    """
    match verb:
        case "add":
            return Status.NOT_STORED if present else None
        case "replace":
            return None if present else Status.NOT_STORED
        case "append" | "prepend":
            if not present:
                return Status.NOT_STORED
            return Status.EXISTS if session.is_another(cas, number) else None
        case "cas":
            if not present:
                return Status.NOT_FOUND
            if (cas or 0) % (1 << 64) != number:
                return Status.EXISTS
    return None


def _new_row(
    session: Session, mapping: Mapping, command: c.Store, key: Cell, found: Row | None, now: int, *, undivided: bool
) -> Row:
    rules, separator = session.rules, session.shared.directory.separator
    flags = fit_flags(mapping, command.flags)
    expiry = fit_time(mapping, _time(session, command, now))
    if found is None or command.verb not in APPENDING:
        cas = new_cas(session, mapping)  # taken before the value is looked at (columns:cas-017)
        if undivided:
            values = only_column(mapping, 0, value_cell(mapping.values[0], command.data, rules))
        else:
            values = split_value(mapping, command.data, separator, rules)
    else:
        values = appended(session, mapping, command.verb, command.flags, command.data, found.values)
        cas = new_cas(session, mapping)
        if not rules.append_takes_request:
            flags, expiry = found.flags, found.expiry
    return Row(key, values, flags, cas, expiry)


def appended(
    session: Session,
    mapping: Mapping,
    verb: str,
    flags: int,
    data: bytes,
    found: tuple[Cell, ...],
    split: Callable[[bytes], tuple[Cell, ...]] | None = None,
) -> tuple[Cell, ...]:
    """Return the value columns after an append or prepend; raises RefusedError if they cannot hold the value."""
    rules, separator = session.rules, session.shared.directory.separator
    # The plugin takes the request's flags for the number of a value column (seen on both versions).
    index = flags if not rules.append_joined and flags < len(mapping.values) else 0
    old = join_value(found, separator) if rules.append_joined else to_bytes(found[index])
    data = old + data if verb == "append" else data + old
    if rules.bounds_append and len(data) > session.shared.item_size_max:
        raise RefusedError(TOO_LARGE)
    if rules.append_joined:
        return split_value(mapping, data, separator, rules) if split is None else split(data)
    # innodb_api_link: one column is written, the others become NULL; a number takes no text behind it (type-109).
    column = mapping.values[index]
    if column.kind is Kind.INTEGER and found[index] is not None:
        raise RefusedError(Status.NOT_STORED)
    return only_column(mapping, index, value_cell(column, data, rules))


def new_cas(session: Session, mapping: Mapping) -> int | None:
    """Take a cas number for a row of this mapping, in the range of its column; None without cas column."""
    number = session.next_cas()
    return None if mapping.cas is None else wrapped(mapping.cas, number)


def cas_numbers(session: Session, mapping: Mapping) -> Callable[[], int | None]:
    """Return what `new_cas` does for one mapping, for commands whose replies show no cas number."""
    return session.shared.cas.__next__ if stores_any_cas(mapping) else partial(new_cas, session, mapping)


def stores_any_cas(mapping: Mapping) -> bool:
    """Return whether there is a cas column that has every number as it is."""
    column = mapping.cas
    return column is not None and column.low <= 0 and column.high >= _LARGEST_CAS


def fit_flags(mapping: Mapping, flags: int) -> int | None:
    """Return flags as the column keeps them: the upper half of 32 bits is negative in a signed INT (core:limit-021)."""
    return None if mapping.flags is None else wrapped(mapping.flags, _signed_flags(mapping.flags, flags))


def fit_time(mapping: Mapping, time: int) -> int | None:
    """Return an expiry time, a UNIX second or 0, as the column keeps it; None without expiry column."""
    return None if mapping.expiry is None else wrapped(mapping.expiry, time)


def _signed_flags(column: Column, flags: int) -> int:
    fits = column.low == 0 or flags < 1 << 31 or column.high >= 1 << 32  # BIGINT keeps them as they are (flag-051)
    return flags if fits else flags - (1 << 32)


def check_numbers(session: Session, mapping: Mapping, command: c.Store, now: int) -> None:
    """Refuse flags and times that their columns cannot hold, where the profile does not store their low bits."""
    if not checks_numbers(session.rules, command.verb):
        return
    check_time(mapping, _time(session, command, now))
    check_flags(mapping, command.flags)


def checks_numbers(rules: Rules, verb: str) -> bool:
    """Return whether `check_numbers` looks at the flags and the time of a verb."""
    return not (rules.wraps_integers or (verb in APPENDING and not rules.append_takes_request))


def check_flags(mapping: Mapping, flags: int) -> None:
    """Refuse flags that their column cannot hold; raises RefusedError, see `check_numbers`."""
    if mapping.flags is not None:
        _check_range(mapping.flags, _signed_flags(mapping.flags, flags))


def check_time(mapping: Mapping, time: int) -> None:
    """Refuse a time that the expiry column cannot hold."""
    if mapping.expiry is not None:
        _check_range(mapping.expiry, time)


def _check_range(column: Column, number: int) -> None:
    if not column.low <= number <= column.high:
        raise RefusedError(ClientError(f"{number} is out of the range of column {column.name}"))


def _time(session: Session, command: c.Store, now: int) -> int:
    # append and prepend count every time from now, however large (core:limit-067, core:limit-091).
    return time_of(session, command.exptime, now, from_now=command.verb in APPENDING)


def time_of(session: Session, exptime: int, now: int, *, from_now: bool = False) -> int:
    """Return the UNIX second of a client's time, 0: never, EXPIRED_SECOND: already; `from_now`: always relative."""
    if expires_at_once(session, exptime):
        return EXPIRED_SECOND
    # Where a negative time is stored it is an unsigned number of 32 bits: wide columns show it (more:clock-008).
    seconds = exptime if exptime >= 0 else exptime + (1 << 32)
    return now + seconds if seconds and (from_now or seconds <= session.rules.longest_relative) else seconds


def _removed_instead(session: Session, mapping: Mapping, row: Row, reply: Reply) -> OperationGen:
    """Remove the row whose new value was rejected, so that no client reads the old value; return the rejection."""
    cause = yield from remove_row(session, mapping, row)
    if cause is not None:
        return ServerError(cause)
    reason = yield from session.batch.wrote(failed=False)
    return reply if reason is None else ServerError(reason)


def expires_at_once(session: Session, exptime: int) -> bool:
    """Return whether an item with this time is expired as soon as it is stored."""
    return exptime < 0 and session.rules.negative_is_expired


def remove_row(session: Session, mapping: Mapping, row: Row) -> Generator[Operation, Any, str | None]:
    """Remove the row of an item that a command ends without a delete; return why the table refuses that."""
    cause: str | None = yield Remove(mapping, row.key)
    if cause is None and session.shared.directory.policies.set is Policy.BOTH:
        session.pending.wrote((mapping.identity, to_bytes(row.key)), None)
    return cause


def retained_numbers(mapping: Mapping, flags: int | None, expiry: int | None) -> tuple[int | None, int | None]:
    """Return flags and expiry of a row whose value changes: both stay, NULL becomes 0 (null-002, shape-018)."""
    return None if mapping.flags is None else flags or 0, None if mapping.expiry is None else expiry or 0


def with_values(mapping: Mapping, row: Row, values: tuple[Cell, ...], cas: int | None) -> Row:
    """Return a row with another value and cas number, see `retained_numbers`."""
    flags, expiry = retained_numbers(mapping, row.flags, row.expiry)
    return replace(row, values=values, flags=flags, cas=cas, expiry=expiry)
