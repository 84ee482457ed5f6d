"""MySQL's collations for SQLite: columns declared `COLLATE utf8mb4_0900_ai_ci` compare as in MySQL.

    import sqlite3
    from kvref import collations

    connection = sqlite3.connect("shop.sqlite")
    collations.register(connection)     # now ORDER BY, =, UNIQUE and indexes of such columns work here too

A connection that reads or writes such a column without this gets `no such collation sequence`. Names are MySQL's, of
the character sets utf8mb4, utf8 (also spelled utf8mb3), ucs2, latin1 and ascii: `*_bin`, `*_general_ci`,
`*_unicode_ci`, `*_unicode_520_ci`, the languages of `*_unicode_ci` (`utf8_swedish_ci`), `utf8mb4_0900_ai_ci`,
`_as_ci`, `_as_cs`, `_bin` and their languages, all of latin1 and ascii (`latin1_swedish_ci`). `names.py` lists them
and says where one is only near MySQL's. A column's character set is that of its collation; MySQL's `binary` is
SQLite's own BINARY. Nothing is read from disk before the first comparison. A comparison with text that is no
UTF-8 raises UnicodeDecodeError.

Leave here: what a column does with bytes that are no text of its character set (`kvref.semantics.values`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from kvref.collations import charsets, weights
from kvref.collations.names import COLLATIONS, Collation

if TYPE_CHECKING:
    import sqlite3

__all__ = ["COLLATIONS", "Collation", "Order", "charset_of", "charsets", "order", "register"]

# Longer texts are weighed anew each time: they are values in an ORDER BY, hardly keys.
LONGEST_KEPT: Final = 250


def register(connection: sqlite3.Connection) -> None:
    """Make MySQL's collations known to a connection.

    Args:
        connection: any; each connection needs it anew.
    """
    for collation in COLLATIONS.values():
        connection.create_collation(collation.name, order(collation).compare)


def charset_of(collation: str) -> str | None:
    """Return the character set of a collation by MySQL's name, whatever its case; None for any other name."""
    found = COLLATIONS.get(collation.lower())
    return None if found is None else found.charset


class Order:
    """How a collation orders texts; its table is read by the first comparison.

    Args:
        collation: one of COLLATIONS.
    """

    def __init__(self, collation: Collation) -> None:
        self._collation = collation
        self._read = False
        self._ranks: tuple[bytes, bytes] | None = None
        self._weigh: Callable[[str], str] = str
        self._kept: Callable[[str], str] = str
        self._space = " " if collation.pads else ""

    def compare(self, one: str, other: str) -> int:
        """Return -1, 0 or 1."""
        # An index compares a key with those of a dozen rows: most are of one length, and of one-byte characters.
        if self._ranks is not None and (width := len(one)) == len(other):
            ranks, odd = self._ranks
            first = one.encode("latin-1", "ignore").translate(ranks, odd)
            second = other.encode("latin-1", "ignore").translate(ranks, odd)
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
        return self._kept(text) if len(text) <= LONGEST_KEPT else self._weigh(text)

    def _read_table(self) -> None:
        if self._collation.family != "code-point":  # there a text is its own key
            table = weights.table_of(self._collation)
            self._weigh, self._kept = table.key, lru_cache(4096)(table.key)
            self._space = self._weigh(" ") if self._collation.pads else ""
            self._ranks = table.ranks()
        self._read = True


@cache
def order(collation: Collation) -> Order:
    """Return how a collation orders texts."""
    return Order(collation)
