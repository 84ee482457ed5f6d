"""Decide get, gets, bget, touch, gat and gats."""

from __future__ import annotations

from kvref.engine.access_log import Change
from kvref.engine.counters import counted
from kvref.engine.items import times
from kvref.engine.items.times import EXPIRED_SECOND
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, HIT, MAX_CACHED, CachedRow, Decision, Renewal
from kvref.engine.values import RefusedError
from kvref.protocol import commands as c
from kvref.protocol.hits import END, numbered, renamed
from kvref.protocol.replies import ITEM_OVERHEAD, Status

FOUND = ("cmd_get", "get_hits")
MISSED = ("cmd_get", "get_misses")
TOUCHED = tuple(counted(c.Touch(b"", 0), Status.TOUCHED, missing_counted=False))
UNTOUCHED = tuple(counted(c.Touch(b"", 0), Status.NOT_FOUND, missing_counted=False))
_NOT_FOUND = Status.NOT_FOUND.value
_TOUCHED = Status.TOUCHED.value
_TOP = 1 << 64


class Retrieval:
    """Decide gets of one mapping."""

    __slots__ = ("_bound",)

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def get(self, row: CachedRow, key: bytes, word: bytes) -> Decision:
        """Decide a get of one word; the command is the word, which may have the mapping's name in front of the key."""
        item = self._item(row, key)
        return (item if word is key or not item else renamed(item, key, word)) + END, None, None

    def gets(self, row: CachedRow, key: bytes, word: bytes) -> Decision:
        """Decide a gets of one word, see `get`."""
        item = with_cas(self._item(row, key), row)
        return (item if word is key or not item else renamed(item, key, word)) + END, None, None

    def get_many(
        self, rows: list[CachedRow], keys: tuple[bytes, ...], command: tuple[bool, tuple[bytes, ...]]
    ) -> bytes:
        """Return the reply to a get of several words: with cas numbers or not, and the words, see `get`."""
        cas, words = command
        items = []
        size = 0
        for row, key, word in zip(rows, keys, words, strict=True):
            item = self._item(row, key)
            if item:
                if word is not key:
                    item = renamed(item, key, word)
                items.append(with_cas(item, row) if cas else item)
                size += len(word) + len(self._bound.data(row)) + ITEM_OVERHEAD
                self._bound.session.check_reply(size)
        items.append(END)
        return b"".join(items)

    def _item(self, row: CachedRow, word: bytes) -> bytes:
        bound = self._bound
        hit = row[HIT]
        if not hit or (row[EXPIRY] and bound.count_expired(row)):
            bound.counted.append(MISSED)
            return b""
        bound.counted.append(FOUND)
        bound.events.append(word)
        if len(hit) > MAX_CACHED:
            bound.check_reply(word, row)
        return hit


def with_cas(hit: bytes, row: CachedRow) -> bytes:
    """Return what a gets shows of a row of which a get shows `hit`, nothing for nothing."""
    return numbered(hit, (row[CAS] or 0) % _TOP) if hit else hit


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

    def ends_before(self, index: int) -> bool:
        """Return whether a word in front of this one was refused, so that it is not read."""
        return self._refused_at < index

    def refuse(self, index: int) -> None:
        """Note that a word is refused, whose reply is that of the command."""
        self._refused_at = index

    def reply(self, index: int, item: bytes) -> bytes:
        """Note what a word shows, empty if there is no row; return the reply if the word is the last one."""
        if self._refused_at == index:
            self._refused_at = self.count
        self._items[index] = item
        return b"".join([*self._items, END]) if index == self.count - 1 else b""


class Touching:
    """Decide touch and gat of one mapping (process_touch_command in proto_text.c)."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def touch(self, row: CachedRow, word: bytes, command: tuple[int, bool]) -> Decision:
        """Decide a touch; the command is its time and whether it has noreply."""
        exptime, quiet = command
        found, new, parameters = self.retimed(row, word, exptime)
        if not found:
            return b"" if quiet else _NOT_FOUND, None, None
        return b"" if quiet else _TOUCHED, new, parameters

    def get_and_touch(self, row: CachedRow, key: bytes, command: tuple[int, bool, bytes]) -> Decision:
        """Decide a gat or gats of one word; the command is its time, whether cas numbers are shown, and the word."""
        exptime, cas, word = command
        found, new, parameters = self.retimed(row, key, exptime)
        if not found:
            return END, None, None
        item = with_cas(row[HIT], row) if cas else row[HIT]
        return (item if word is key else renamed(item, key, word)) + END, new, parameters

    def get_and_touch_one(self, row: CachedRow, key: bytes, command: tuple[SeveralTouched, int, bytes]) -> Decision:
        """Decide a word of a gat or gats of several; the command is what the words share, its index, and the word."""
        several, index, word = command
        if several.ends_before(index):
            return b"", None, None
        try:
            found, new, parameters = self.retimed(row, key, several.exptime)
        except RefusedError:
            several.refuse(index)
            raise
        item = b""
        if found:
            item = with_cas(row[HIT], row) if several.cas else row[HIT]
            item = item if word is key else renamed(item, key, word)
        return several.reply(index, item), new, parameters

    def retimed(self, row: CachedRow, word: bytes, exptime: int) -> tuple[bool, CachedRow | None, Renewal | None]:
        """Return whether there is a row, the row with its new time, and what is written."""
        bound = self._bound
        time = times.requested_time(bound.session, bound.mapping, exptime, bound.now)
        bound.writing = True
        if bound.is_missing(row):
            bound.counted.append(UNTOUCHED)
            return False, None, None
        bound.succeeded = True
        bound.counted.append(TOUCHED)
        bound.events.append((word, Change.TOUCHED))
        new, parameters = renewed(bound, row, time)
        return True, new, parameters


def renewed(bound: Bound, row: CachedRow, time: int) -> tuple[CachedRow | None, Renewal | None]:
    """Return a row with another time, None if nothing is written, and what is written.

    A row that is expired at once is deleted if no column of the mapping can say so.
    """
    mapping = bound.mapping
    if mapping.expiry is None:
        return ABSENT if time == EXPIRED_SECOND else None, None
    if row[EXPIRY] == time:
        return None, None
    hit, rowid, flags, cas, _, cells = row
    return (hit, rowid, flags, cas, time, cells), Renewal((time,) if mapping.cas is None else (row[CAS], time))
