"""The SQL of one mapping over SQLite, built once; every identifier is quoted, every value bound."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from functools import cached_property
from typing import Final

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell, Row
from kvref.engine.values import to_bytes
from kvref.storage.config.codecs import READS_ZERO, UNSIGNED
from kvref.storage.key_order import KeyOrder
from kvref.storage.rows import listed_columns, row_of
from kvref.storage.sqlite.schema import quote

ROWID: Final = "_rowid_"
_NUMBERS: Final = itertools.count()


class Statements:
    """SQL texts for one mapping, and rows to and from their parameters; `columns` are what `lookup` selects."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self._options = [column for column in mapping.options.values() if column is not None]
        self.columns = (mapping.key, *mapping.values, *self._options)
        table, key = quote(mapping.source), quote(mapping.key.name)
        self._names = list(dict.fromkeys(c.name for c in self.columns))
        self._values = [c.name for c in mapping.values]
        columns = [quote(name) for name in self._names]
        nulls = [quote(name) for name in mapping.unmapped]
        # Qualified throughout: SQLite takes a bare "name" that no column has for a string literal.
        selected = ", ".join(f"{table}.{quote(c.name)}" for c in self.columns)
        key = f"{table}.{key}"
        marks = ", ".join("?" * len(columns))
        where = f" WHERE {key} = ?"
        assignments = ", ".join(f"{name} = ?" for name in columns)
        self._key = key
        self._select = f"SELECT {selected} FROM {table}"  # noqa: S608 - identifiers are quoted
        self.lookup = f"{self._select}{where}"
        self.insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        self.insert_cleared = (
            f"INSERT INTO {table} ({', '.join(columns + nulls)}) VALUES ({', '.join([marks, *['NULL'] * len(nulls)])})"  # noqa: S608
        )
        self.update = f"UPDATE {table} SET {assignments}{where}"  # noqa: S608
        renewed = ", ".join(f"{quote(c.name)} = ?" for c in (mapping.cas, mapping.expiry) if c is not None)
        self.renew = f"UPDATE {table} SET {renewed}{where}"  # noqa: S608
        numbered_where = f" WHERE {table}.{ROWID} = ?"
        self.renew_numbered = f"UPDATE {table} SET {renewed}{numbered_where}"  # noqa: S608
        self.remove_numbered = f"DELETE FROM {table}{numbered_where}"  # noqa: S608
        cleared = ", ".join([assignments, *[f"{name} = NULL" for name in nulls]])
        self.update_cleared = f"UPDATE {table} SET {cleared}{where}"  # noqa: S608
        self.remove = f"DELETE FROM {table}{where}"  # noqa: S608
        self.clear = f"DELETE FROM {table}"  # noqa: S608
        self.keys = f"SELECT {key} FROM {table}"  # noqa: S608
        self.remove_exactly = f"DELETE FROM {table} WHERE {key} IS ?"  # noqa: S608
        self.lookup_numbered = f"SELECT {selected}, {table}.{ROWID} FROM {table}{where}"  # noqa: S608
        # In the order of SQLite BLOB is behind all text.
        self.any_blob = f"SELECT 1 FROM {table} WHERE {key} >= x'' LIMIT 1"  # noqa: S608
        self._along = f" FROM {table}{where}"
        self.count = f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT ?)"  # noqa: S608
        self.numbered = ROWID not in {name.lower() for name in mapping.columns}  # else a column has that name
        number = f"{table}.{ROWID}"
        # Each by itself is found at an end of the table; MIN and MAX in one SELECT read all of it.
        self.ends = f"SELECT (SELECT MIN({number}) FROM {table}), (SELECT MAX({number}) FROM {table})"  # noqa: S608
        self.window = f"SELECT COUNT(*) FROM {table} WHERE {number} >= ? AND {number} < ?"  # noqa: S608
        if mapping.expiry is not None:
            expiry = f"{table}.{quote(mapping.expiry.name)}"
            expired = f"SELECT {key} FROM {table} WHERE {expiry} > 0 AND {expiry} < ? LIMIT ?"  # noqa: S608
            self.purge = f"DELETE FROM {table} WHERE {key} IN ({expired})"  # noqa: S608
            # A prepared EXPLAIN keeps its plan when the schema changes; another text is prepared again.
            self.explain_purge = f"EXPLAIN QUERY PLAN {expired} -- {next(_NUMBERS)}"
        self.any_row = f"SELECT 1 FROM {table} LIMIT 1"  # noqa: S608
        self._to_sql = [(columns.index(quote(c.name)), c.codec.to_sql) for c in self.columns if c.codec is not None]
        count = 1 + len(mapping.values)
        self._from_sql = [
            (at, c.codec.from_sql)
            for at, c in enumerate(self.columns)
            # The key, which the row is found by again, never reads as another number; options read digits anyway.
            if c.codec is not None
            and not (at == 0 and c.codec is READS_ZERO)
            and not (at >= count and c.codec is UNSIGNED)
        ]

    @cached_property
    def order(self) -> KeyOrder:
        return KeyOrder(self.mapping.key.collation)

    def identity(self, cell: Cell) -> Hashable:
        """Return what the cells of one row's key have in common: of a word, and of a BLOB that the word finds."""
        key, column = self.key(cell), self.mapping.key
        if isinstance(key, bytes) and column.kind is Kind.TEXT:
            text = self.key(bytes(key))
            utf8 = isinstance(text, bytes) and column.charset.unit == 0
            key = to_bytes(text).decode("utf-8", "surrogateescape") if utf8 else text
        return self.order.identity(key)

    def along(self, columns: tuple[Column, ...]) -> str:
        names = ", ".join(f"{quote(self.mapping.source)}.{quote(column.name)}" for column in columns)
        return f"SELECT {names}{self._along}"

    def scan(self, signs: list[str], *, descending: bool = False) -> str:
        """Return the SELECT of a range; `signs` are the comparisons of the key, one parameter each."""
        where = " AND ".join(f"{self._key} {sign} ?" for sign in signs)
        order = f"{self._key} DESC" if descending else self._key
        return f"{self._select} WHERE {where or 'TRUE'} ORDER BY {order} LIMIT ?"

    def lookup_many(self, count: int, *, numbered: bool) -> str:
        """Return the SELECT of the rows of `count` keys, each with the place of its key, from 0, in front of its cells.

        With `numbered`, the row's number in the file is the last cell.
        """
        wanted = ", ".join(f"({place}, ?)" for place in range(count))
        table = quote(self.mapping.source)
        columns = ", ".join(f"{table}.{quote(column.name)}" for column in self.columns)
        number = f", {table}.{ROWID}" if numbered else ""
        # CROSS JOIN keeps the order of the tables: each key is looked up in the index.
        return (
            f"WITH wanted(place, word) AS (VALUES {wanted})"  # noqa: S608 - identifiers are quoted
            f" SELECT wanted.place, {columns}{number} FROM wanted CROSS JOIN {table} ON {self._key} = wanted.word"
        )

    def listing(self, *, goes_on: bool) -> str:
        """Return the SELECT of a page of keys for `listed_row`; parameters: the key before it, if any, the limit."""
        table = quote(self.mapping.source)
        columns = listed_columns(self.mapping)
        names = ", ".join(f"{table}.{quote(column.name)}" for column in columns)
        sizes = " + ".join(f"COALESCE(length(CAST({table}.{quote(name)} AS BLOB)), 0)" for name in self._values)
        where = f"{self._key} > ?" if goes_on else f"{self._key} IS NOT NULL"
        return f"SELECT {names}, {sizes} FROM {table} WHERE {where} ORDER BY {self._key} LIMIT ?"  # noqa: S608

    def overwrite(self, *, clear_unmapped: bool, by_rowid: bool = False) -> str:
        """Return the UPDATE of a row that keeps its key; parameters: values, flags, cas, expiry, then key or rowid."""
        table = quote(self.mapping.source)
        names = [quote(c.name) for c in (*self.mapping.values, *self._options)]
        nulls = [quote(name) for name in self.mapping.unmapped] if clear_unmapped else []
        sets = ", ".join([f"{name} = ?" for name in names] + [f"{name} = NULL" for name in nulls])
        where = f"{table}.{ROWID}" if by_rowid else self._key
        return f"UPDATE {table} SET {sets} WHERE {where} = ?"  # noqa: S608 - identifiers are quoted

    def key(self, cell: Cell) -> Cell:
        """Return a key as SQL has it: the parameter of every WHERE."""
        codec = self.mapping.key.codec
        return cell if codec is None or cell is None else codec.to_sql(cell)

    def renewed(self, row: Row) -> list[Cell]:
        cells = ((self.mapping.cas, row.cas), (self.mapping.expiry, row.expiry))
        return [
            number if column.codec is None or number is None else column.codec.to_sql(number)
            for column, number in cells
            if column is not None
        ]

    def row(self, cells: tuple[Cell, ...]) -> Row:
        if self._from_sql:
            shown = list(cells)
            for at, from_sql in self._from_sql:
                if shown[at] is not None:
                    shown[at] = from_sql(shown[at])
            cells = tuple(shown)
        return row_of(self.mapping, cells)

    @property
    def reads_as_written(self) -> bool:
        """Return whether `row` shows every cell as it was written."""
        return not self._from_sql

    def stored(self, row: Row) -> dict[str, Cell]:
        """Return the cells that a write of a row puts into the table, by the names of their columns."""
        return dict(zip(self._names, self.parameters(row), strict=True))

    def parameters(self, row: Row) -> list[Cell]:
        """Return the parameters of `insert` and, in front of the key, of `update`."""
        mapping = self.mapping
        cells: dict[str, Cell] = {mapping.key.name: row.key}
        cells.update(zip(self._values, row.values, strict=True))
        for column, number in ((mapping.flags, row.flags), (mapping.cas, row.cas), (mapping.expiry, row.expiry)):
            if column is not None:
                cells.setdefault(column.name, number)
        parameters = [cells[name] for name in self._names]
        for at, to_sql in self._to_sql:
            if parameters[at] is not None:
                parameters[at] = to_sql(parameters[at])
        return parameters
