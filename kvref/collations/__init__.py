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

Leave here: what a column does with bytes that are not text of its character set (`kvref.engine.values`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.collations import charsets
from kvref.collations.comparison import Order, order
from kvref.collations.names import COLLATIONS, Collation, known

if TYPE_CHECKING:
    import sqlite3

__all__ = ["COLLATIONS", "Collation", "Order", "charset_of", "charsets", "known", "order", "register"]


def register(connection: sqlite3.Connection) -> None:
    """Make MySQL's collations known to a connection; call it for each new connection."""
    for collation in COLLATIONS.values():
        connection.create_collation(collation.name, order(collation).compare)


def charset_of(collation: str) -> str | None:
    """Return the character set of a collation by MySQL's name, whatever its case; None for any other name."""
    found = COLLATIONS.get(collation.lower())
    return None if found is None else found.charset
