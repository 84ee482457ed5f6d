"""Decide get, gets and bget."""

from __future__ import annotations

from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import CAS, EXPIRY, HIT, MAX_KEPT, CachedRow, Decision
from kvref.protocol.hits import END, numbered, renamed
from kvref.protocol.replies import ITEM_OVERHEAD

FOUND = ("cmd_get", "get_hits")
MISSED = ("cmd_get", "get_misses")
_TOP = 1 << 64


class Retrieval:
    """Decide gets of one mapping, by the rules of `kvref.engine.verbs.retrieve`."""

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
        """Return the reply to a get of several words; raises RefusedError, see `Session.check_reply`.

        Args:
            command: whether it shows cas numbers, and its words, see `get`.
        """
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
        if not hit or (row[EXPIRY] and bound.expired(row)):
            bound.counted.append(MISSED)
            return b""
        bound.counted.append(FOUND)
        bound.events.append(word)
        if len(hit) > MAX_KEPT:
            bound.check_reply(word, row)
        return hit


def with_cas(hit: bytes, row: CachedRow) -> bytes:
    """Return what a gets shows of a row of which a get shows `hit`, nothing for nothing."""
    return numbered(hit, (row[CAS] or 0) % _TOP) if hit else hit
