"""Expiry times: what a client's time means, and how the column has it."""

from __future__ import annotations

from typing import Final

from kvref.engine.mapping import Column, Mapping
from kvref.engine.session import Session
from kvref.engine.values import RefusedError, wrapped
from kvref.protocol.replies import ClientError

# Stored for a time that has passed already: every integer column holds this second, and every reader of the table,
# the plugin included, takes it for over. memcached stores it too (realtime in memcached.c).
EXPIRED_SECOND: Final = 1


def time_of(session: Session, exptime: int, now: int, *, from_now: bool = False) -> int:
    """Return the UNIX second of a client's time, 0: never, EXPIRED_SECOND: already; `from_now`: always relative."""
    if expires_at_once(session, exptime):
        return EXPIRED_SECOND
    # Where a negative time is stored it is an unsigned number of 32 bits: wide columns show it (more:clock-008).
    seconds = exptime if exptime >= 0 else exptime + (1 << 32)
    return now + seconds if seconds and (from_now or seconds <= session.rules.longest_relative) else seconds


def expires_at_once(session: Session, exptime: int) -> bool:
    """Return whether an item with this time is expired as soon as it is stored."""
    return exptime < 0 and session.rules.negative_is_expired


def keeps_no_item(session: Session, mapping: Mapping, exptime: int) -> bool:
    """Return whether an item with this time is gone at once, because no column says that it is expired."""
    return mapping.expiry is None and expires_at_once(session, exptime)


def fit_time(mapping: Mapping, time: int) -> int | None:
    """Return an expiry time, a UNIX second or 0, as the column keeps it; None without expiry column."""
    return None if mapping.expiry is None else wrapped(mapping.expiry, time)


def check_time(mapping: Mapping, time: int) -> None:
    """Refuse a time that the expiry column cannot hold."""
    if mapping.expiry is not None:
        check_range(mapping.expiry, time)


def check_range(column: Column, number: int) -> None:
    if not column.low <= number <= column.high:
        raise RefusedError(ClientError(f"{number} is out of the range of column {column.name}"))


def requested_time(session: Session, mapping: Mapping, exptime: int, now: int) -> int:
    """Return a row's new expiry, see `Rules.is_expired`, 0: never; raises RefusedError if no column can store it."""
    if mapping.expiry is None and exptime and not expires_at_once(session, exptime):
        # A set stores at least its value; a touch without an expiry column would do nothing at all.
        raise RefusedError(
            ClientError(f"mapping {mapping.name} has no expiry column: the only time that it keeps is 0")
        )
    time = time_of(session, exptime, now)
    check_time(mapping, time)
    return time
