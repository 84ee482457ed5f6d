"""The SQL of one mapping over InnoDB; every identifier is quoted, every cell a literal of digits or of long text.

A text literal bears its column's character set, so that the index of the key is used and the bytes are the plugin's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Final

from pymysql.constants import ER

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell, Insert, Row, Update
from kvref.storage.config.containers import Container
from kvref.storage.mysql.schema import quote
from kvref.storage.rows import EXACT, from_sql, listed_columns, row_of

NULL: Final = "NULL"
# Bytes of a text from which on its literal is the text itself, which has half the bytes: above the width of any key.
LONG: Final = 1024
# What a SELECT locks, until its transaction ends. For SHARED, in MySQL 5.6 and MariaDB, SELECT is enough.
FOR_UPDATE: Final = " FOR UPDATE"
NO_WAIT: Final = " FOR UPDATE NOWAIT"
SKIP_LOCKED: Final = " FOR UPDATE SKIP LOCKED"
SHARED: Final = " LOCK IN SHARE MODE"
# The same without waiting, which MySQL and MariaDB write in two ways.
SHARED_BY_MYSQL: Final = " FOR SHARE"
WITHOUT_WAITING: Final = " NOWAIT"
WITHOUT_LOCKED: Final = " SKIP LOCKED"


class Statements:
    """SQL texts for one mapping, and rows from what they return.

    Args:
        mapping: whose table and columns.
        refuses_hidden: no row is written into a table with a hidden column.

    Attributes:
        columns: whose cells `row` takes, in their order.
        key, key_as_bytes: the key column's name, and its content as bytes where it is text.
        indexed: the table, to be read by the key's index.
        select: what reads `columns` of all rows.
    """

    def __init__(self, mapping: Mapping, *, refuses_hidden: bool = False) -> None:
        self.mapping = mapping
        self._refuses_hidden = refuses_hidden
        options = [column for column in mapping.options.values() if column is not None]
        self.columns = (mapping.key, *mapping.values, *options)
        self._quoted = {column.name: quote(column.name) for column in self.columns}
        self._literals = [(column.name, literals(column)) for column in self.columns]
        self._key_literals = self._literals[0][1]
        self._mapped = tuple(column is not None for column in mapping.options.values())
        self._batchable_columns = mapping.key not in mapping.values and all(
            column.codec is None or column.kind is Kind.TEXT for column in self.columns
        )
        self._formed = any(column.codec is not None for column in self.columns)
        self._nulls = [quote(name) for name in mapping.unmapped]
        self.key = quote(mapping.key.name)
        self.key_as_bytes = f"CAST({self.key} AS BINARY)" if mapping.key.kind is Kind.TEXT else self.key
        assert isinstance(mapping.row, Container)
        # With stale statistics the optimizer reads the whole table rather than the index.
        self.indexed = f"{mapping.source} FORCE INDEX ({quote(mapping.row.unique_idx_name_on_key or '')})"
        self.select = f"SELECT {self._names(self.columns)} FROM {self.indexed}"  # noqa: S608 - identifiers are quoted
        # Vitess: without it, vtgate would commit in several shards one after another, which its mode `single` refuses.
        each = " /*vt+ MULTI_SHARD_AUTOCOMMIT=1 */" if mapping.vindex else ""
        self.clear = f"DELETE{each} FROM {mapping.source}"
        self._delete = f"DELETE FROM {mapping.source}"  # noqa: S608
        self.every_column = f"SELECT * FROM {mapping.source} LIMIT 0"  # noqa: S608
        self.count = f"SELECT COUNT(*) FROM (SELECT 1 FROM {mapping.source} LIMIT {EXACT + 1}) AS some"  # noqa: S608
        self.explain = f"EXPLAIN SELECT 1 FROM {mapping.source}"  # noqa: S608
        self.truncate = f"TRUNCATE TABLE {mapping.source}"
        self.keys = f"SELECT {self._names((mapping.key,))} FROM {mapping.source}"  # noqa: S608

    def lookup(self, key: Cell, lock: str = "") -> str:
        beginning = self.mapping.beginning
        where = f" WHERE LEFT({self.key}, {beginning}) = {self._key_literal(key)}"
        return f"{self.select}{where if beginning else self._where(key)}{lock}"

    def along(self, key: Cell, columns: tuple[Column, ...]) -> str:
        return f"SELECT {self._names(columns)} FROM {self.indexed}{self._where(key)}"  # noqa: S608

    def scan(self, bounds: Sequence[tuple[str, Cell]], limit: int, *, descending: bool = False) -> str:
        where = " AND ".join(f"{self.key} {sign} {self._key_literal(cell)}" for sign, cell in bounds)
        order = f"{self.key} DESC" if descending else self.key
        return f"{self.select} WHERE {where or 'TRUE'} ORDER BY {order} LIMIT {limit}"

    def listing(self, after: Cell, limit: int) -> str:
        """Return the SELECT of a page of keys with what `listed_row` takes; `after`: the key before, None for none."""
        names = self._names(listed_columns(self.mapping))
        sizes = " + ".join(f"COALESCE(OCTET_LENGTH({quote(column.name)}), 0)" for column in self.mapping.values)
        where = "IS NOT NULL" if after is None else f"> {self._key_literal(after)}"
        return f"SELECT {names}, {sizes} FROM {self.indexed} WHERE {self.key} {where} ORDER BY {self.key} LIMIT {limit}"  # noqa: S608

    def present(self, keys: Iterable[Cell]) -> str:
        return f"SELECT {self._names((self.mapping.key,))} FROM {self.indexed}{self._among(keys)}"  # noqa: S608

    def lookup_all(self, keys: Iterable[Cell], lock: str = "") -> str:
        return f"{self.select}{self._among(keys)}{lock}"

    def shards(self, keys: Iterable[Cell]) -> str:
        """Return the SELECT of the shards of Vitess that have the rows of some keys, at least one, in their order.

        Only values may be there, thus no character set in front, and no sign.
        """
        texts = self._key_literals(keys)
        values = [text.partition(" ")[2] for text in texts] if self.mapping.key.kind is Kind.TEXT else texts
        return f"SELECT id, shard FROM {self.mapping.vindex} WHERE id IN ({', '.join(values)})"  # noqa: S608

    def described_by(self, key: Cell) -> str:
        """Return the SELECT that describes every column and reads no row; in Vitess from the shard of a key."""
        if not self.mapping.vindex:
            return self.every_column
        return f"SELECT * FROM {self.mapping.source}{self._where(key)} LIMIT 0"  # noqa: S608

    def refusal(self, row: Row, *, clear_unmapped: bool) -> str | None:
        """Return why a row cannot be written; None if it can.

        SQL would replace NULL in a NOT NULL column by the next AUTO_INCREMENT number or the time (`columns:type-185`,
        `more:beside-003`). SQL fills the hidden column of a FULLTEXT index itself, which the profile may not allow
        (`columns:side-044`).
        """
        if self.mapping.hidden and self._refuses_hidden:
            return f"{ER.BAD_NULL_ERROR} Column 'FTS_DOC_ID' cannot be null"
        cells_of_row = (row.key, *row.values, row.flags, row.cas, row.expiry)
        if not clear_unmapped and None not in cells_of_row:
            return None
        cells = self._cells(row)
        nulls = [name for name, text in cells.items() if text == NULL]
        nulls += self.mapping.unmapped if clear_unmapped else ()
        wrong = next((name for name in nulls if name in self.mapping.not_null), None)
        return None if wrong is None else f"{ER.BAD_NULL_ERROR} Column '{wrong}' cannot be null"

    def insert(self, rows: Sequence[Row], *, clear_unmapped: bool) -> str:
        cells = self._texts(rows)
        nulls = self._nulls if clear_unmapped else []
        names = ", ".join([*map(self._quoted.__getitem__, cells), *nulls])
        ends = (NULL,) * len(nulls)
        texts = ", ".join([f"({', '.join(each + ends)})" for each in zip(*cells.values(), strict=True)])
        return f"INSERT INTO {self.mapping.source} ({names}) VALUES {texts}"  # noqa: S608

    def is_batchable(self, write: Insert | Update) -> bool:
        """Return whether one statement for several rows stores this one as its own, as far as the client can decide."""
        if isinstance(write, Update):
            if not self.updates_together(write.key, write.row):
                return False
            if write.value_unchanged:
                return True
        return self.refusal(write.row, clear_unmapped=write.clear_unmapped) is None

    def updates_together(self, key: Cell, row: Row) -> bool:
        """Return whether `update_all` does to the row found under a key what `update` or `renew` does.

        Only what MySQL puts into the column as it would put a literal: an expression has one type for all rows.
        """
        return self._batchable_columns and (key == row.key or self._key_literal(key) == self._key_literal(row.key))

    def update_all(self, rows: Sequence[Row], *, clear_unmapped: bool, value_unchanged: bool) -> str:
        """Return the UPDATE of several rows that are found under the keys which they keep, see `updates_together`."""
        key = self.mapping.key
        cells = self._texts(rows)
        # Found rows have these bytes: no need to compare by a collation, which costs ten times as much.
        keys = cells[key.name]
        found = [each.partition(" ")[2] for each in keys] if key.kind is Kind.TEXT else keys
        only = [column.name for column in (self.mapping.cas, self.mapping.expiry) if column is not None]
        sets = [f"{name} = NULL" for name in (self._nulls if clear_unmapped and not value_unchanged else [])]
        for name in only if value_unchanged else [name for name in cells if name != key.name]:
            texts = cells[name]
            if texts.count(texts[0]) == len(texts):
                sets.append(f"{self._quoted[name]} = {texts[0]}")
                continue
            cases = " ".join([f"WHEN {one} THEN {text}" for one, text in zip(found, texts, strict=True)])
            sets.append(f"{self._quoted[name]} = CASE {self.key_as_bytes} {cases} END")
        return f"UPDATE {self.indexed} SET {', '.join(sets)} WHERE {self.key} IN ({', '.join(keys)})"  # noqa: S608

    def update(self, key: Cell, row: Row, *, clear_unmapped: bool) -> str:
        cells = self._cells(row)
        if self.mapping.vindex:
            del cells[self.mapping.key.name]  # in Vitess no UPDATE changes what finds the shard
        sets = [f"{self._quoted[name]} = {text}" for name, text in cells.items()]
        sets += [f"{name} = NULL" for name in (self._nulls if clear_unmapped else [])]
        return f"UPDATE {self.indexed} SET {', '.join(sets)}{self._where(key)}"  # noqa: S608

    def renew(self, key: Cell, row: Row) -> str:
        """Return the UPDATE of cas and expiry alone, of which one is mapped at least."""
        cells = ((self.mapping.cas, row.cas), (self.mapping.expiry, row.expiry))
        sets = [f"{quote(column.name)} = {literal(column, cell)}" for column, cell in cells if column is not None]
        return f"UPDATE {self.indexed} SET {', '.join(sets)}{self._where(key)}"  # noqa: S608

    def remove(self, key: Cell) -> str:
        return f"{self._delete}{self._where(key)}"

    def remove_keys(self, keys: Iterable[Cell]) -> str:
        return f"{self._delete}{self._among(keys)}"

    def purge(self, before: int, limit: int) -> str:
        assert self.mapping.expiry is not None
        expiry = quote(self.mapping.expiry.name)
        return (
            f"DELETE FROM {self.mapping.source} WHERE {expiry} > 0 AND {expiry} < {before}"  # noqa: S608 - quoted
            f" ORDER BY {expiry} LIMIT {limit}"
        )

    def row(self, cells: tuple[Cell, ...]) -> Row:
        return row_of(self.mapping, from_sql(self.columns, cells) if self._formed else cells)

    def _names(self, columns: tuple[Column, ...]) -> str:
        # Text as its bytes: the connection's character set may lack them, or they are none (the plugin wrote them). A
        # CAST would check each byte in MySQL, which is most of the time for long values, and in MariaDB would return
        # NULL for those above max_allowed_packet.
        return ", ".join(
            f"IFNULL({quote(column.name)}, CAST(NULL AS BINARY))" if column.kind is Kind.TEXT else quote(column.name)
            for column in columns
        )

    def _where(self, key: Cell) -> str:
        return f" WHERE {self.key} = {self._key_literal(key)}"

    def _among(self, keys: Iterable[Cell]) -> str:
        return f" WHERE {self.key} IN ({', '.join(self._key_literals(keys))})"

    def _key_literal(self, key: Cell) -> str:
        return self._key_literals((key,))[0]

    def _cells(self, row: Row) -> dict[str, str]:
        return {name: text for name, [text] in self._texts((row,)).items()}

    def _texts(self, rows: Sequence[Row]) -> dict[str, list[str]]:
        """Return the literals of rows, at least one, by column."""
        options = [row.flags for row in rows], [row.cas for row in rows], [row.expiry for row in rows]
        cells = [row.key for row in rows], *zip(*[row.values for row in rows], strict=True)
        texts: dict[str, list[str]] = {}
        columns = zip(self._literals, (*cells, *compress(options, self._mapped)), strict=True)
        for at, ((name, text), column) in enumerate(columns):
            # A value column may be the key's; an option is written only where its column has no other use.
            if at < len(cells) or name not in texts:
                texts[name] = text(column)
        return texts


def literal(column: Column, cell: Cell) -> str:
    return literals(column)((cell,))[0]


def literals(column: Column) -> Callable[[Iterable[Cell]], list[str]]:
    """Return what makes literals of cells of one column."""
    if column.kind is not Kind.TEXT:
        unconverted = int if column.codec is None else None
        return lambda cells: [repr(cell) if type(cell) is unconverted else _literal(column, cell) for cell in cells]
    charset = f"_{'utf8mb3' if column.charset.name == 'utf8' else column.charset.name}"
    begin = f"{charset} X'"
    exact = bytes if column.codec is None else None

    def texts(cells: Iterable[Cell]) -> list[str]:
        return [
            NULL if cell is None
            else f"{begin}{data.hex()}'" if len(data := cell if type(cell) is exact else written(column, cell)) < LONG
            else _long_text(charset, data)
            for cell in cells
        ]  # fmt: skip

    return texts


def _long_text(charset: str, data: bytes) -> str:
    """Return the literal of a long text: itself if it is UTF-8, as the statement is, else hexadecimal digits.

    A backslash is another character in some modes of SQL.
    """
    try:
        text = None if b"\\" in data else data.decode()
    except UnicodeDecodeError:
        text = None
    if text is None:
        return f"{charset} X'{data.hex()}'"
    escaped = text.replace("'", "''")
    return f"{charset} '{escaped}'"


def _literal(column: Column, cell: Cell) -> str:
    if cell is None:
        return NULL
    shown = cell if column.codec is None else column.codec.to_sql(cell)
    if isinstance(shown, bytes):
        return f"X'{shown.hex()}'" if len(shown) < LONG else _long_text("_binary", shown)
    return f"_utf8mb4 X'{shown.encode().hex()}'" if isinstance(shown, str) else repr(shown)


def written(column: Column, cell: Cell) -> bytes:
    """Return the bytes that SQL has of a text."""
    if isinstance(cell, bytes) and (column.codec is None or not column.codec.pads):
        return cell
    # SQL knows no padding: in a collation without PAD SPACE a padded key is another one (columns:coll-011).
    shown = cell if column.codec is None else column.codec.to_sql(cell)
    return column.charset.encode(shown) if isinstance(shown, str) else bytes(shown)  # type: ignore[arg-type]
