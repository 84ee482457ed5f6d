"""Rows of a SQLite file through one connection: operations to statements, and estimates of their number."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final

from kvref.engine import operations
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Row
from kvref.engine.values import to_bytes
from kvref.storage.rows import EXACT, REFERENCED, PerMapping, from_sql, listed_row
from kvref.storage.sqlite.statements import Statements

WINDOWS: Final = 16  # places of the table that are looked at
WIDTH: Final = 64  # numbers of rows in each
MAX_ROWS: Final = 100_000  # rows that are counted in a table without such numbers; some milliseconds


def estimate(connection: sqlite3.Connection, sql: Statements) -> int:
    """Return about how many rows a table has, exactly up to EXACT; a table WITHOUT ROWID has at least as many."""
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


MAX_READ: Final = 1 << 20  # bytes of values behind a page of a listing of keys
IGNORED: Final = "the table ignored the write (a trigger or ON CONFLICT IGNORE)"


class Rows:
    """Read and write rows; every method raises sqlite3.Error, OverflowError or UnicodeError if SQLite fails.

    The caller begins and ends the transactions. `referenced` returns whether a foreign key refers to a table.
    """

    def __init__(
        self, connection: sqlite3.Connection, statements: PerMapping[Statements], referenced: Callable[[str], bool]
    ) -> None:
        self.connection = connection
        self._sql = statements
        self._referenced = referenced

    def lookup(self, mapping: Mapping, key: operations.Cell) -> Row | None:
        sql = self._sql(mapping)
        parameter = sql.key(key)
        cells: tuple[Any, ...] | None = self.connection.execute(sql.lookup, (parameter,)).fetchone()
        if cells is None and isinstance(parameter, str):
            # A program may have written its keys as BLOB, which no text equals.
            cells = self.connection.execute(sql.lookup, (to_bytes(key),)).fetchone()
        return None if cells is None else sql.row(cells)

    def scan(self, operation: operations.Scan) -> list[Row]:
        sql = self._sql(operation.mapping)
        bounds = operation.bounds()
        statement = sql.scan([sign for sign, _ in bounds], descending=operation.descending)
        parameters = [*(sql.key(cell) for _, cell in bounds), operation.limit]
        return [sql.row(cells) for cells in self.connection.execute(statement, parameters)]

    def listed(self, operation: operations.ListRows) -> list[operations.ListedRow]:
        """Read keys without values; of large values the fewer at once, which SQLite reads to know their length."""
        sql = self._sql(operation.mapping)
        after = [] if operation.after is None else [sql.key(operation.after)]
        cursor = self.connection.execute(sql.listing(goes_on=bool(after)), [*after, operation.limit])
        rows: list[operations.ListedRow] = []
        size = 0
        for *cells, length in cursor:
            rows.append(listed_row(operation.mapping, tuple(cells), length))
            size += length
            if size > MAX_READ:
                break
        cursor.close()  # a SELECT that is not finished would keep the file as it is
        return rows

    def along(self, operation: operations.ReadAlong) -> tuple[operations.Cell, ...]:
        sql = self._sql(operation.mapping)
        cells = self.connection.execute(sql.along(operation.columns), (sql.key(operation.key),)).fetchone()
        return () if cells is None else from_sql(operation.columns, cells)

    def write(self, operation: operations.Insert | operations.Update | operations.Remove) -> str | None:
        """Write one row; returns the table's reason to refuse it."""
        changed, cause = self._change(*self._statement(operation))
        return cause if cause or changed else IGNORED

    def bind(self, operation: operations.Insert | operations.Update | operations.Remove) -> None:
        """Raise what `write` would for values that SQLite cannot hold."""
        _, parameters = self._statement(operation)
        self.connection.execute(f"SELECT {', '.join('?' * len(parameters))}", parameters)

    def clear(self, operation: operations.Clear) -> str | None:
        sql = self._sql(operation.mapping)
        if operation.on_reference == "table-kept" and self._referenced(operation.mapping.source):
            return REFERENCED
        _, cause = self._change(sql.clear, [])
        if cause is not None and operation.on_reference == "rows-kept":
            for key in self.connection.execute(sql.keys).fetchall():
                self._change(sql.remove_exactly, list(key))
            return None
        return cause or (IGNORED if self.connection.execute(sql.any_row).fetchone() else None)

    def purge(self, operation: operations.PurgeExpired) -> int | None:
        """Delete expired rows; returns their number, None if no index begins with the expiry column."""
        sql = self._sql(operation.mapping)
        parameters = (operation.before, operation.limit)
        plan = self.connection.execute(sql.explain_purge, parameters).fetchall()
        if not any(str(step[-1]).startswith("SEARCH") for step in plan):
            return None
        return self.connection.execute(sql.purge, parameters).rowcount

    def _statement(
        self, operation: operations.Insert | operations.Update | operations.Remove
    ) -> tuple[str, list[operations.Cell]]:
        sql = self._sql(operation.mapping)
        if isinstance(operation, operations.Remove):
            return sql.remove, [sql.key(operation.key)]
        clear = operation.clear_unmapped
        if isinstance(operation, operations.Insert):
            return sql.insert_cleared if clear else sql.insert, sql.parameters(operation.row)
        if operation.value_unchanged:
            return sql.renew, [*sql.renewed(operation.row), sql.key(operation.key)]
        text = sql.update_cleared if clear else sql.update
        return text, [*sql.parameters(operation.row), sql.key(operation.key)]

    def _change(self, sql: str, parameters: list[operations.Cell]) -> tuple[int, str | None]:
        try:
            return self.connection.execute(sql, parameters).rowcount, None
        except sqlite3.IntegrityError as error:
            if not self.connection.in_transaction:
                raise  # ON CONFLICT ROLLBACK took the whole transaction with it
            return 0, str(error)
