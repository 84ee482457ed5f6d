"""Rows of mapped tables over one connection: operations to SQL, and answers from what it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import pymysql
from pymysql.connections import Connection
from pymysql.constants import ER
from pymysql.cursors import Cursor, DictCursor

from kvref.engine import operations
from kvref.engine.mapping import Mapping
from kvref.storage.config.containers import Container
from kvref.storage.mysql import result_set
from kvref.storage.mysql.database import Database
from kvref.storage.mysql.errors import NO_TRUNCATE, REFUSED, DuplicateError, RetryableError
from kvref.storage.mysql.login import cause, fetch_all
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.schema import MySQLCatalog
from kvref.storage.mysql.statements import FOR_UPDATE, SHARED, Statements
from kvref.storage.rows import EXACT, REFERENCED, from_sql, listed_row

DUPLICATE: Final = f"{ER.DUP_ENTRY} "
RowOperation = (
    operations.Lookup
    | operations.ReadAlong
    | operations.Scan
    | operations.ListRows
    | operations.CountRows
    | operations.Insert
    | operations.Update
    | operations.Remove
    | operations.Clear
)
IGNORED: Final = "the table ignored the write (a trigger took it back)"


class Rows:
    """Answer the operations on rows; the longest statement that the server takes has `max_packet` bytes."""

    def __init__(self, connection: Connection[Cursor], database: Database, max_packet: int) -> None:
        self._connection = connection
        self._query = partial(fetch_all, connection)
        self._database = database
        self._max_packet = max_packet
        # What described the mapped columns last time, where that was as before.
        self._columns: WeakKeyDictionary[Mapping, bytes] = WeakKeyDictionary()

    def answer(self, operation: RowOperation, *, shared: bool) -> Any:
        """Answer one operation; with `shared`, a read locks its rows against writers.

        Raises MySQLError, but not the reason of a table to refuse a row; RetryableError: the table was altered,
        or a row came up meanwhile.
        """
        sql = self._database.statements(operation.mapping)
        lock = SHARED if shared else ""
        match operation:
            case operations.Lookup(mapping, key, for_update):
                found = self._select(mapping, sql.lookup(key, FOR_UPDATE if for_update else lock))
                return sql.row(found[0]) if found else None
            case operations.Scan():
                statement = sql.scan(operation.bounds(), operation.limit, descending=operation.descending)
                return [sql.row(cells) for cells in self._query(statement + lock)]
            case operations.Insert(_, row, clear_unmapped):
                return self._insert(sql, row, clear_unmapped=clear_unmapped)
            case operations.Update(_, key, row) if operation.value_unchanged:
                return self._write(sql.renew(key, row))
            case operations.Update(_, key, row, clear_unmapped):
                update = sql.update(key, row, clear_unmapped=clear_unmapped)
                return self._refusal(sql, row, clear_unmapped=clear_unmapped) or self._write(update)
            case operations.Remove(_, key):
                return self._write(sql.remove(key))
            case operations.Clear():
                return self._clear(operation)
            case operations.ListRows(_, after, limit):
                rows = self._query(sql.listing(after, limit))
                return [listed_row(operation.mapping, tuple(cells), size) for *cells, size in rows]
            case operations.CountRows():
                return self._count(sql)
            case operations.ReadAlong(_, key, columns):
                rows = self._query(sql.along(key, columns))
                return from_sql(columns, rows[0]) if rows else ()

    def present(self, mapping: Mapping, keys: Iterable[operations.Cell]) -> set[operations.Cell]:
        statement = self._database.statements(mapping).present(keys)
        return {from_sql((mapping.key,), cells)[0] for cells in self._query(statement)}

    def _select(self, mapping: Mapping, statement: str) -> list[tuple[Any, ...]]:
        """Return the cells that a SELECT of all mapped columns finds; RetryableError if the table was altered."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            if not self._database.record_and_compare_columns(mapping, "mapped", cursor.description):
                raise RetryableError(f"the columns of {mapping.source} changed")
            return list(cursor.fetchall())

    def look_up_all(self, mapping: Mapping, keys: Iterable[operations.Cell], lock: str = "") -> list[operations.Row]:
        """Return the rows of some keys, at least one, in any order; raises as `answer`.

        With more than a few hundred keys, the statement may be longer than the server takes.
        """
        sql = self._database.statements(mapping)
        return [sql.row(cells) for cells in self._select(mapping, sql.lookup_all(keys, lock))]

    def select_raw(self, mapping: Mapping, sql: str) -> list[Cells]:
        """Return the cells that a SELECT of all mapped columns finds, as the server writes them; raises as `answer`."""
        known = self._columns.get(mapping, b"")
        columns, rows = result_set.select_raw(self._connection, sql, known)
        if columns != known:
            described = result_set.description(columns, self._connection.encoding)
            if not self._database.record_and_compare_columns(mapping, "mapped", described):
                raise RetryableError(f"the columns of {mapping.source} changed")
            self._columns[mapping] = columns
        return rows

    def write_all(
        self, writes: Sequence[operations.Insert] | Sequence[operations.Update] | Sequence[operations.Remove]
    ) -> bool:
        """Write several rows of one mapping by one statement, all in one way; tell whether every row was written.

        Raises as `answer`: no row is written.
        """
        first = writes[0]
        mapping = first.mapping
        sql = self._database.statements(mapping)
        if isinstance(first, operations.Remove):
            keys = [each.key for each in writes if isinstance(each, operations.Remove)]
            return result_set.run(self._connection, sql.remove_keys(keys)) == len(keys)
        rows = [each.row for each in writes if not isinstance(each, operations.Remove)]
        clear_unmapped = first.clear_unmapped
        value_unchanged = isinstance(first, operations.Update) and first.value_unchanged
        if clear_unmapped and not value_unchanged:
            self._check_unmapped(sql, rows[0].key)
        if isinstance(first, operations.Insert):
            text = sql.insert(rows, clear_unmapped=clear_unmapped)
        else:
            text = sql.update_all(rows, clear_unmapped=clear_unmapped, value_unchanged=value_unchanged)
        return result_set.run(self._connection, text) == len(rows)

    def _insert(self, sql: Statements, row: operations.Row, *, clear_unmapped: bool) -> str | None:
        refusal = self._refusal(sql, row, clear_unmapped=clear_unmapped)
        if refusal is not None:
            return refusal
        refusal = self._write(sql.insert([row], clear_unmapped=clear_unmapped))
        duplicate = refusal is not None and refusal.startswith(DUPLICATE) and not sql.mapping.unsearchable
        # The key, which was missing a moment ago, or another unique index; what was met is locked and stays.
        if duplicate and self._query(sql.lookup(row.key, FOR_UPDATE)):
            raise DuplicateError(refusal or "")
        return refusal

    def _refusal(self, sql: Statements, row: operations.Row, *, clear_unmapped: bool) -> str | None:
        if clear_unmapped:
            self._check_unmapped(sql, row.key)
        return sql.refusal(row, clear_unmapped=clear_unmapped)

    def _check_unmapped(self, sql: Statements, key: operations.Cell) -> None:
        mapping = sql.mapping
        # Until the transaction ends the table's columns stay; invisible ones are not in the description.
        with self._connection.cursor() as cursor:
            cursor.execute(sql.described_by(key))
            names = [each[0] for each in cursor.description or ()]
        unchanged = self._database.record_and_compare_columns(mapping, "all", names)
        if not unchanged or not mapping.columns.issuperset(names):
            raise RetryableError(f"the columns of {mapping.source} changed")

    def _write(self, sql: str) -> str | None:
        size = (len(sql) if sql.isascii() else len(sql.encode())) + 1  # the byte in front of it says that it is SQL
        if size > self._max_packet:
            # The server would hang up instead of an answer.
            return (
                f"{ER.NET_PACKET_TOO_LARGE} max_allowed_packet is {self._max_packet}, this statement has {size} bytes"
            )
        try:
            return None if result_set.run(self._connection, sql) else IGNORED
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] in REFUSED:
                return cause(error)
            raise

    def _count(self, sql: Statements) -> int:
        """Return about how many rows a table has, exactly up to EXACT; beyond that as the optimizer estimates it."""
        ((found,),) = self._query(sql.count)
        if found <= EXACT:
            return int(found)
        with self._connection.cursor(DictCursor) as cursor:
            cursor.execute(sql.explain)
            return max(int(found), *(int(row["rows"] or 0) for row in cursor.fetchall()))

    def _clear(self, operation: operations.Clear) -> str | None:
        mapping, sql = operation.mapping, self._database.statements(operation.mapping)
        row = mapping.row
        assert isinstance(row, Container)
        seen = MySQLCatalog(self._connection, self._database.profile)
        where = (row.db_schema or "", row.db_table or "")
        if operation.on_reference == "table-kept" and seen.referenced(*where):
            return REFERENCED
        if self._database.profile["flush.empties"] == "truncate" and not seen.counts(*where) and self._truncate(sql):
            return None
        refusal = self._write(sql.clear)
        if refusal is not None and refusal != IGNORED and operation.on_reference == "rows-kept":
            for (key,) in self._query(sql.keys):
                self._write(sql.remove(from_sql((mapping.key,), (key,))[0]))
            return None
        return None if refusal == IGNORED else refusal  # an empty table has no row to delete

    def _truncate(self, sql: Statements) -> bool:
        """Empty a table whole, without triggers; tell whether the server lets this account, and this table, do that."""
        try:
            self._query(sql.truncate)
        except pymysql.err.MySQLError as error:
            if error.args[0] not in NO_TRUNCATE:
                raise
            return False
        return True
