"""The SQL of one mapping over InnoDB; every identifier is quoted, every cell a literal of hexadecimal digits.

A text literal bears its column's character set, so that the index of the key is used and the bytes are the plugin's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pymysql.constants import ER

from kvref.semantics.mapping import Column, Kind, Mapping
from kvref.semantics.ports import Cell, Row
from kvref.storage.containers import Container
from kvref.storage.mysql_schema import quote
from kvref.storage.rows import from_sql, row_of

NULL: Final = "NULL"
# What a SELECT locks, until its transaction ends. For SHARED, as MySQL 5.6 and MariaDB spell it, SELECT is enough.
FOR_UPDATE: Final = " FOR UPDATE"
SHARED: Final = " LOCK IN SHARE MODE"


class Statements:
    """SQL texts for one mapping, and rows from what they return.

    Args:
        mapping: whose table and columns.
        refuses_hidden: no row is written into a table with a hidden column.
    """

    def __init__(self, mapping: Mapping, *, refuses_hidden: bool = False) -> None:
        self.mapping = mapping
        self._refuses_hidden = refuses_hidden
        options = [column for column in (mapping.flags, mapping.cas, mapping.expiry) if column is not None]
        self._mapped = (mapping.key, *mapping.values, *options)
        self._columns = {column.name: column for column in self._mapped}
        self._nulls = [quote(name) for name in mapping.unmapped]
        self._key = quote(mapping.key.name)
        assert isinstance(mapping.row, Container)
        # With stale statistics the optimizer reads the whole table rather than the index.
        self._indexed = f"{mapping.source} FORCE INDEX ({quote(mapping.row.unique_idx_name_on_key or '')})"
        self._select = f"SELECT {self._names(self._mapped)} FROM {self._indexed}"  # noqa: S608 - identifiers are quoted
        self.clear = f"DELETE FROM {mapping.source}"  # noqa: S608
        self.beside = f"SELECT * FROM {mapping.source} LIMIT 0"  # noqa: S608
        self.truncate = f"TRUNCATE TABLE {mapping.source}"
        self.keys = f"SELECT {self._names((mapping.key,))} FROM {mapping.source}"  # noqa: S608

    def lookup(self, key: Cell, lock: str = "") -> str:
        """Return the SELECT of one row, with the lock that it takes."""
        beginning = self.mapping.beginning
        where = f" WHERE LEFT({self._key}, {beginning}) = {literal(self.mapping.key, key)}"
        return f"{self._select}{where if beginning else self._where(key)}{lock}"

    def along(self, key: Cell, columns: tuple[Column, ...]) -> str:
        """Return the SELECT of further columns of the row that `lookup` found."""
        return f"SELECT {self._names(columns)} FROM {self._indexed}{self._where(key)}"  # noqa: S608

    def scan(self, bounds: Sequence[tuple[str, Cell]], limit: int, *, descending: bool = False) -> str:
        """Return the SELECT of a range; `bounds` are comparisons of the key."""
        where = " AND ".join(f"{self._key} {sign} {literal(self.mapping.key, cell)}" for sign, cell in bounds)
        order = f"{self._key} DESC" if descending else self._key
        return f"{self._select} WHERE {where or 'TRUE'} ORDER BY {order} LIMIT {limit}"

    def present(self, keys: Iterable[Cell]) -> str:
        """Return the SELECT of those of some keys, at least one, that have a row."""
        texts = ", ".join(literal(self.mapping.key, key) for key in keys)
        return f"SELECT {self._names((self.mapping.key,))} FROM {self._indexed} WHERE {self._key} IN ({texts})"  # noqa: S608

    def refusal(self, row: Row, *, clear_unmapped: bool) -> str | None:
        """Return why a row cannot be written; None where nothing speaks against it.

        Where NULL goes into a NOT NULL column SQL would put the next number of AUTO_INCREMENT, or the time, there
        (columns:type-185, more:beside-003). Of the hidden column of a FULLTEXT index it takes care itself, which a
        profile may not (columns:side-044).
        """
        if self.mapping.hidden and self._refuses_hidden:
            return f"{ER.BAD_NULL_ERROR} Column 'FTS_DOC_ID' cannot be null"
        cells = self._cells(row)
        nulls = [name for name, text in cells.items() if text == NULL]
        nulls += self.mapping.unmapped if clear_unmapped else ()
        wrong = next((name for name in nulls if name in self.mapping.not_null), None)
        return None if wrong is None else f"{ER.BAD_NULL_ERROR} Column '{wrong}' cannot be null"

    def insert(self, row: Row, *, clear_unmapped: bool) -> str:
        """Return the INSERT of a new row."""
        cells = self._cells(row)
        nulls = self._nulls if clear_unmapped else []
        names = ", ".join([*map(quote, cells), *nulls])
        texts = ", ".join([*cells.values(), *[NULL] * len(nulls)])
        return f"INSERT INTO {self.mapping.source} ({names}) VALUES ({texts})"  # noqa: S608

    def update(self, key: Cell, row: Row, *, clear_unmapped: bool) -> str:
        """Return the UPDATE of the row found under a key."""
        sets = [f"{quote(name)} = {text}" for name, text in self._cells(row).items()]
        sets += [f"{name} = NULL" for name in (self._nulls if clear_unmapped else [])]
        return f"UPDATE {self._indexed} SET {', '.join(sets)}{self._where(key)}"  # noqa: S608

    def renew(self, key: Cell, row: Row) -> str:
        """Return the UPDATE of cas and expiry alone, of which one is mapped at least."""
        cells = ((self.mapping.cas, row.cas), (self.mapping.expiry, row.expiry))
        sets = [f"{quote(column.name)} = {literal(column, cell)}" for column, cell in cells if column is not None]
        return f"UPDATE {self._indexed} SET {', '.join(sets)}{self._where(key)}"  # noqa: S608

    def remove(self, key: Cell) -> str:
        """Return the DELETE of the row found under a key."""
        return f"DELETE FROM {self.mapping.source}{self._where(key)}"  # noqa: S608

    def row(self, cells: tuple[Cell, ...]) -> Row:
        """Return the row that `lookup` found."""
        return row_of(self.mapping, from_sql(self._mapped, cells))

    def _names(self, columns: tuple[Column, ...]) -> str:
        # Text as its bytes: the connection's character set may lack them, or they are none (the plugin wrote them).
        return ", ".join(
            f"CAST({quote(column.name)} AS BINARY)" if column.kind is Kind.TEXT else quote(column.name)
            for column in columns
        )

    def _where(self, key: Cell) -> str:
        return f" WHERE {self._key} = {literal(self.mapping.key, key)}"

    def _cells(self, row: Row) -> dict[str, str]:
        mapping = self.mapping
        cells: dict[str, Cell] = {mapping.key.name: row.key}
        cells.update(zip((column.name for column in mapping.values), row.values, strict=True))
        for column, number in ((mapping.flags, row.flags), (mapping.cas, row.cas), (mapping.expiry, row.expiry)):
            if column is not None:
                cells.setdefault(column.name, number)
        return {name: literal(self._columns[name], cell) for name, cell in cells.items()}


def literal(column: Column, cell: Cell) -> str:
    """Return a cell of the wire as a literal for its column."""
    if cell is None:
        return NULL
    if column.kind is Kind.TEXT:
        # SQL knows no padding: in a collation without PAD SPACE a padded key is another one (columns:coll-011).
        shown = cell if column.form is None else column.form.to_sql(cell)
        data = column.charset.encode(shown) if isinstance(shown, str) else bytes(shown)  # type: ignore[arg-type]
        charset = "utf8mb3" if column.charset.name == "utf8" else column.charset.name
        return f"_{charset} X'{data.hex()}'"
    shown = cell if column.form is None else column.form.to_sql(cell)
    if isinstance(shown, bytes):
        return f"X'{shown.hex()}'"
    return f"_utf8mb4 X'{shown.encode().hex()}'" if isinstance(shown, str) else repr(shown)
