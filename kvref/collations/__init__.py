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
        lazy = collation.family != "code-point"  # which has no table to read
        connection.create_collation(collation.name, _Lazy(collation) if lazy else order(collation).compare)


def charset_of(collation: str) -> str | None:
    """Return the character set of a collation by MySQL's name, whatever its case; None for any other name."""
    found = COLLATIONS.get(collation.lower())
    return None if found is None else found.charset


class Order:
    """How a collation orders texts.

    Args:
        collation: one of COLLATIONS.
    """

    def __init__(self, collation: Collation) -> None:
        table = None if collation.family == "code-point" else weights.table_of(collation)
        self._plain = table is None
        self._weigh = str if table is None else table.key
        self._kept = str if table is None else lru_cache(4096)(table.key)
        self._space = self._weigh(" ") if collation.pads else ""

    def compare(self, one: str, other: str) -> int:
        """Return -1, 0 or 1."""
        if one == other:
            return 0
        left, right = (one, other) if self._plain else (self._key(one), self._key(other))
        if self._space and len(left) != len(right):
            # PAD SPACE: the shorter text goes on in spaces.
            width = max(len(left), len(right))
            left, right = left.ljust(width, self._space), right.ljust(width, self._space)
        return (left > right) - (left < right)

    def folded(self, text: str) -> str:
        """Return what equal texts have in common."""
        key = self._key(text)
        return key.rstrip(self._space) if self._space else key

    def _key(self, text: str) -> str:
        return self._kept(text) if len(text) <= LONGEST_KEPT else self._weigh(text)


@cache
def order(collation: Collation) -> Order:
    """Return how a collation orders texts, with its table read."""
    return Order(collation)


class _Lazy:
    """A collation that reads its table when it is first used: a connection has some two hundred of them."""

    def __init__(self, collation: Collation) -> None:
        self._collation = collation
        self._compare: Callable[[str, str], int] | None = None

    def __call__(self, one: str, other: str) -> int:
        if self._compare is None:
            self._compare = order(self._collation).compare
        return self._compare(one, other)
