"""Rules of the storage commands: their conditions, cas numbers, flags, and what append and prepend make of a value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from kvref.engine.items.times import check_range, check_time, time_of
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell
from kvref.engine.rules import Rules
from kvref.engine.session import Session
from kvref.engine.values import (
    TOO_LARGE,
    RefusedError,
    join_value,
    only_column,
    split_value,
    to_bytes,
    value_cell,
    wrapped,
)
from kvref.protocol import commands as c
from kvref.protocol.replies import Reply, Status

APPENDING: Final = ("append", "prepend")
_LARGEST_CAS: Final = (1 << 63) - 1  # that a store counts up to


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


def found_by_add(command: c.Store, reply: Reply) -> bool:
    """Return whether an add has found its item, which counts as an access (do_store_item in memcached.c)."""
    return command.verb == "add" and reply is Status.NOT_STORED


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


def _signed_flags(column: Column, flags: int) -> int:
    fits = column.low == 0 or flags < 1 << 31 or column.high >= 1 << 32  # BIGINT keeps them as they are (flag-051)
    return flags if fits else flags - (1 << 32)


def checks_numbers(rules: Rules, verb: str) -> bool:
    """Return whether `check_numbers` looks at the flags and the time of a verb."""
    return not (rules.wraps_integers or (verb in APPENDING and not rules.append_takes_request))


def check_numbers(session: Session, mapping: Mapping, command: c.Store, now: int) -> None:
    """Refuse flags and times that their columns cannot hold, where the profile does not store their low bits."""
    if not checks_numbers(session.rules, command.verb):
        return
    check_time(mapping, time_of_store(session, command, now))
    check_flags(mapping, command.flags)


def check_flags(mapping: Mapping, flags: int) -> None:
    """Refuse flags that their column cannot hold; raises RefusedError, see `check_numbers`."""
    if mapping.flags is not None:
        check_range(mapping.flags, _signed_flags(mapping.flags, flags))


def retained_numbers(mapping: Mapping, flags: int | None, expiry: int | None) -> tuple[int | None, int | None]:
    """Return flags and expiry of a row whose value changes: both stay, NULL becomes 0 (null-002, shape-018)."""
    return None if mapping.flags is None else flags or 0, None if mapping.expiry is None else expiry or 0


def time_of_store(session: Session, command: c.Store, now: int) -> int:
    """Return the UNIX second of a command's time, see `time_of`."""
    # append and prepend count every time from now, however large (core:limit-067, core:limit-091).
    return time_of(session, command.exptime, now, from_now=command.verb in APPENDING)
