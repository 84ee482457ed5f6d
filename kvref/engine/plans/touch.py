"""Decide touch, gat and gats."""

from __future__ import annotations

from kvref.engine.accesses import Change
from kvref.engine.counters import counted
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, HIT, CachedRow, Decision, Renewal
from kvref.engine.plans.retrieve import with_cas
from kvref.engine.values import RefusedError
from kvref.engine.verbs import retrieve
from kvref.engine.verbs.store import OVER
from kvref.protocol import commands as c
from kvref.protocol.hits import END, renamed
from kvref.protocol.replies import Status

_RECORD = c.Touch(b"", 0)
TOUCHED = tuple(counted(_RECORD, Status.TOUCHED, missing_counted=False))
MISSED = tuple(counted(_RECORD, Status.NOT_FOUND, missing_counted=False))


class SeveralTouched:
    """A gat of several words, each of which is a plan: the reply of the last one is that of the command.

    Deciding a word again, because its group has failed, replaces what the word had.

    Args:
        cas: cas numbers are shown.
    """

    __slots__ = ("_items", "_refused_at", "cas", "count", "exptime")

    def __init__(self, count: int, exptime: int, *, cas: bool) -> None:
        self.count = count
        self.exptime = exptime
        self.cas = cas
        self._items = [b""] * count
        self._refused_at = count

    def ends_before(self, place: int) -> bool:
        """Return whether a word in front of this one was refused, so that it is not read."""
        return self._refused_at < place

    def refuse(self, place: int) -> None:
        """Note that a word is refused, whose reply is that of the command."""
        self._refused_at = place

    def reply(self, place: int, item: bytes) -> bytes:
        """Note what a word shows; return the reply if it is the last one.

        Args:
            item: empty if there is no row.
        """
        if self._refused_at == place:
            self._refused_at = self.count
        self._items[place] = item
        return b"".join([*self._items, END]) if place == self.count - 1 else b""


class Touching:
    """Decide touch and gat of one mapping, by the rules of `kvref.engine.verbs.retrieve`."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def touch(self, row: CachedRow, word: bytes, command: tuple[int, bool]) -> Decision:
        """Decide a touch; the command is its time and whether it has noreply."""
        exptime, quiet = command
        found, new, parameters = self.retimed(row, word, exptime)
        if not found:
            return b"" if quiet else b"NOT_FOUND\r\n", None, None
        return b"" if quiet else b"TOUCHED\r\n", new, parameters

    def get_and_touch(self, row: CachedRow, key: bytes, command: tuple[int, bool, bytes]) -> Decision:
        """Decide a gat or gats of one word; the command is its time, whether cas numbers are shown, and the word."""
        exptime, cas, word = command
        found, new, parameters = self.retimed(row, key, exptime)
        if not found:
            return END, None, None
        item = with_cas(row[HIT], row) if cas else row[HIT]
        return (item if word is key else renamed(item, key, word)) + END, new, parameters

    def get_and_touch_one(self, row: CachedRow, key: bytes, command: tuple[SeveralTouched, int, bytes]) -> Decision:
        """Decide a word of a gat or gats of several; the command is what the words share, its place, and the word."""
        several, place, word = command
        if several.ends_before(place):
            return b"", None, None
        try:
            found, new, parameters = self.retimed(row, key, several.exptime)
        except RefusedError:
            several.refuse(place)
            raise
        item = b""
        if found:
            item = with_cas(row[HIT], row) if several.cas else row[HIT]
            item = item if word is key else renamed(item, key, word)
        return several.reply(place, item), new, parameters

    def retimed(self, row: CachedRow, word: bytes, exptime: int) -> tuple[bool, CachedRow | None, Renewal | None]:
        """Return whether there is a row, the row with its new time, and what is written; see `retrieve.touched`."""
        bound = self._bound
        time = retrieve.time_asked(bound.session, bound.mapping, exptime, bound.now)
        if bound.hides(row):
            bound.counted.append(MISSED)
            return False, None, None
        bound.counted.append(TOUCHED)
        bound.events.append((word, Change.TOUCHED))
        new, parameters = renewed(bound, row, time)
        return True, new, parameters


def renewed(bound: Bound, row: CachedRow, time: int) -> tuple[CachedRow | None, Renewal | None]:
    """Return a row with another time, None if nothing is written, and what is written; see `retrieve.retimed`."""
    mapping = bound.mapping
    if mapping.expiry is None:
        return ABSENT if time == OVER else None, None
    if row[EXPIRY] == time:
        return None, None
    hit, rowid, flags, cas, _, cells = row
    return (hit, rowid, flags, cas, time, cells), Renewal((time,) if mapping.cas is None else (row[CAS], time))
