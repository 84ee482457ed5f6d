"""Rules of the meta commands: what the reply to `mg` shows of an item, and what a mapping can keep."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from kvref.engine.access_log import ItemAccess
from kvref.engine.cache.memory import BEFORE_START, Entry, Key
from kvref.engine.items.times import requested_time, time_of
from kvref.engine.mapping import Mapping
from kvref.engine.session import Session
from kvref.engine.shared_state import Mark
from kvref.engine.values import RefusedError
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.replies import MetaCode, Status

CODES: Final = {
    Status.STORED: MetaCode.DONE,
    Status.DELETED: MetaCode.DONE,
    Status.NOT_STORED: MetaCode.NOT_STORED,
    Status.EXISTS: MetaCode.EXISTS,
    Status.NOT_FOUND: MetaCode.NOT_FOUND,
}


class ItemState(Protocol):
    """The state of items that no table has, see `Marks`."""

    def exclusive(self) -> AbstractContextManager[None]: ...
    def of(self, mapping: Mapping, key: bytes, entry: Entry) -> Mark: ...
    def take(self, mapping: Mapping, key: bytes, entry: Entry) -> None: ...
    def fetched(self, mapping: Mapping, key: bytes, now: int) -> None: ...
    def access(self, mapping: Mapping, key: bytes, entry: Entry) -> ItemAccess: ...


@dataclass(frozen=True, slots=True)
class Found:
    """An item: its cache key, its entry and its mapping."""

    at: Key
    entry: Entry
    mapping: Mapping

    def left(self, now: int) -> int:
        return -1 if self.entry.expiry <= 0 else max(0, self.entry.expiry - now)


def answer(
    session: Session, marks: ItemState, command: c.MetaGet, found: Found, touched: Found, now: int, *, created: bool
) -> r.Meta:
    """Return the reply for an item, `created` by this command or not, with what the client is to recache (W, X, Z)."""
    entry, mapping, key = found.entry, found.mapping, found.at[1]
    with marks.exclusive():
        mark = marks.of(mapping, key, entry)
        old = created
        if command.recache is not None and not created:
            expiry = (entry if command.precedes(b"R", b"T") else touched.entry).expiry
            old = 0 < expiry < time_of(session, command.recache, now)
        # A client without the right to write cannot recache the item, and would keep other clients from doing so.
        won = not (mark.taken or session.access.read_only) and (old or mark.stale)
        if won:
            marks.take(mapping, key, touched.entry)
        hit, idle = accessed(session, marks, found, now) if command.shows_access else (False, 0)
        if not command.has(b"u"):
            marks.fetched(mapping, key, now)
    earlier = -1 if created else found.left(now)
    item = r.MetaItem(entry.flags, len(entry.data), entry.cas, touched.left(now), earlier, hit, idle)
    data = entry.data if command.has(b"v") else None
    return r.Meta(MetaCode.DONE, item, data, mark.stale, won, mark.taken)


def accessed(session: Session, marks: ItemState, found: Found, now: int) -> tuple[bool, int]:
    """Return whether an item was read after it was written, and the seconds that `l` shows.

    Of a row of which the server knows no access, the seconds are those since its start.
    """
    access = marks.access(found.mapping, found.at[1], found.entry)
    return access.hit, max(0, now - (access.time or session.shared.cache.began + BEFORE_START))


def check_markable(mapping: Mapping) -> None:
    """Raise RefusedError if the rows of a mapping cannot be marked as stale."""
    if mapping.cas is None:
        # Without a cas number, a recached value that equals the stale one cannot be distinguished from it.
        name = mapping.name
        raise RefusedError(r.ClientError(f"mapping {name} has no cas column: its rows cannot be marked as stale"))


def check_times(session: Session, mapping: Mapping, command: c.MetaGet | c.MetaArithmetic, now: int) -> None:
    """Refuse times that a mapping cannot keep before anything is written, see `requested_time`."""
    for time in (command.vivify if isinstance(command, c.MetaGet) else None, command.exptime):
        if time is not None:
            requested_time(session, mapping, time, now)
