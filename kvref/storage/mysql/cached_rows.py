"""Rows that the row cache keeps, for gets that are answered without a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final

from kvref.engine.plans.plan import HIT, CachedRow
from kvref.protocol.hits import renamed
from kvref.storage.mysql.binlog.row_cache import CachedTable, RowCache
from kvref.storage.mysql.mapped_table import StoredKey

_VALUE: Final = b"VALUE "  # in front of the word in what a get shows


class CachedRows:
    """The kept rows of one mapping, those that are as new as the server and that no planned command writes.

    Args:
        cache: has them.
        table: returns the part of the cache.
        stored_key: returns the key of a word as the table stores it, None if only the server knows that.
        identity: returns what all words of one row have in common, None if only the server knows that.
        is_new: returns whether kept rows may be shown now.
    """

    def __init__(
        self,
        cache: RowCache,
        table: Callable[[], CachedTable],
        stored_key: Callable[[bytes], StoredKey | None],
        identity: Callable[[bytes], Hashable],
        is_new: Callable[[CachedTable], bool],
    ) -> None:
        self.cache = cache
        self.table = table
        self.stored_key = stored_key
        self._identity = identity
        self._is_new = is_new
        self._planned: Counter[Hashable] = Counter()  # identities of rows, with the number of commands
        self._shown: bool | None = None  # may kept rows be shown; None: not checked since the last input

    def check_again(self) -> None:
        """Check with the next row that is read whether kept rows may be shown: new input has arrived."""
        self._shown = None

    def plan(self, word: bytes) -> None:
        """Note that a command that writes the row of a word is planned."""
        self._planned[self._identity(word)] += 1

    def release(self, word: bytes) -> None:
        """Note that such a command is answered."""
        identity = self._identity(word)
        self._planned[identity] -= 1
        if not self._planned[identity]:
            del self._planned[identity]

    def get(self, word: bytes) -> CachedRow | None:
        cached = self.table()
        row = cached.rows.get(self.stored_key(word))  # type: ignore[arg-type]  # of None there is no row
        if row is None or (self._planned and self._writes(word)):
            return None
        if self._shown is None:
            self._shown = self._is_new(cached)
        return shown_for(row, word) if self._shown else None

    def __contains__(self, word: object) -> bool:
        return isinstance(word, bytes) and self.get(word) is not None

    def _writes(self, word: bytes) -> bool:
        return None in self._planned or self._identity(word) in self._planned


def shown_for(row: CachedRow, word: bytes) -> CachedRow:
    """Return a row, which there is, as a get of a word shows it: a kept row has the word of the get that read it."""
    hit = row[HIT]
    own_word = hit[len(_VALUE) : hit.index(b" ", len(_VALUE))]
    return row if own_word == word else (renamed(hit, own_word, word), *row[1:])
