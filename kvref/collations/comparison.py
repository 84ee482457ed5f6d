"""How a collation compares two texts, by its table in `weights.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

from kvref.collations import weights
from kvref.collations.names import Collation

# Weights of longer texts are not cached: they are values in an ORDER BY, hardly keys.
MAX_CACHED: Final = 250


class Order:
    """How a collation orders texts; its table is read by the first comparison."""

    def __init__(self, collation: Collation) -> None:
        self._collation = collation
        self._read = False
        self._ranks: tuple[bytes, bytes] | None = None
        self._weigh: Callable[[str], str] = str
        self._cached: Callable[[str], str] = str
        self._space = " " if collation.pads else ""

    def compare(self, one: str, other: str) -> int:
        # An index compares a key with those of a dozen rows: most are of one length, and of one-byte characters.
        if self._ranks is not None and (width := len(one)) == len(other):
            ranks, unranked = self._ranks
            first = one.encode("latin-1", "ignore").translate(ranks, unranked)
            second = other.encode("latin-1", "ignore").translate(ranks, unranked)
            if len(first) == width == len(second):
                return (first > second) - (first < second)
        return self._weighed(one, other)

    def folded(self, text: str) -> str:
        """Return what equal texts have in common."""
        key = self._key(text)
        return key.rstrip(self._space) if self._space else key

    def _weighed(self, one: str, other: str) -> int:
        if one == other:
            return 0
        left, right = self._key(one), self._key(other)
        if self._space and len(left) != len(right):
            # PAD SPACE: the shorter text goes on in spaces.
            width = max(len(left), len(right))
            left, right = left.ljust(width, self._space), right.ljust(width, self._space)
        return (left > right) - (left < right)

    def _key(self, text: str) -> str:
        if not self._read:
            self._read_table()
        return self._cached(text) if len(text) <= MAX_CACHED else self._weigh(text)

    def _read_table(self) -> None:
        if self._collation.family != "code-point":  # there a text is its own key
            table = weights.table_of(self._collation)
            self._weigh, self._cached = table.key, lru_cache(4096)(table.key)
            self._space = self._weigh(" ") if self._collation.pads else ""
            self._ranks = table.ranks()
        self._read = True


@cache
def order(collation: Collation) -> Order:
    return Order(collation)
