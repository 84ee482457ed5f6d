"""The number of rows of a SQLite table: the range of the numbers that SQLite gives them, and how many are in use."""

from __future__ import annotations

import sqlite3
from typing import Final

from kvref.storage.estimates import EXACT
from kvref.storage.sqlite.statements import Statements

WINDOWS: Final = 16  # places of the table that are looked at
WIDTH: Final = 64  # numbers of rows in each
MAX_ROWS: Final = 100_000  # rows that are counted in a table without such numbers; some milliseconds


def estimate(connection: sqlite3.Connection, sql: Statements) -> int:
    """Return about how many rows a table has, exactly up to EXACT.

    A table WITHOUT ROWID has at least as many.

    Args:
        connection: to the file.
        sql: of a mapping of the table.
    """
    (found,) = connection.execute(sql.count, (EXACT + 1,)).fetchone()
    if found <= EXACT:
        return int(found)
    if not sql.numbered:
        return _at_least(connection, sql)
    try:
        first, last = connection.execute(sql.ends).fetchone()
    except sqlite3.OperationalError:
        return _at_least(connection, sql)  # WITHOUT ROWID, or a view
    span = last - first + 1
    width = min(WIDTH, span // WINDOWS)
    seen = 0
    for window in range(WINDOWS):
        start = first + (span * (2 * window + 1) // WINDOWS - width) // 2  # the middle of its share of the table
        seen += connection.execute(sql.window, (start, start + width)).fetchone()[0]
    estimated: int = span * seen // (WINDOWS * width)
    return max(int(found), estimated)


def _at_least(connection: sqlite3.Connection, sql: Statements) -> int:
    return int(connection.execute(sql.count, (MAX_ROWS,)).fetchone()[0])
