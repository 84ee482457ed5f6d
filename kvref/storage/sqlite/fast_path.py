"""Rows of one mapping for plain commands: read and kept for the next get, written by one statement.

Whatever is not plain is answered with None and left to the verbs; nothing is written then, and nothing said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell, Row
from kvref.engine.rules import Rules
from kvref.engine.values import RefusedError, to_bytes
from kvref.errors import KvrefError
from kvref.protocol.fast_path import shown
from kvref.protocol.replies import Item
from kvref.storage.fast_path import LARGEST_VALUE, take_sets
from kvref.storage.sqlite.errors import StatementError
from kvref.storage.sqlite.row_cache import CachedTable, Kept
from kvref.storage.sqlite.statements import ROWID
from kvref.storage.sqlite.store import SQLiteStore

# Declared types of columns that keep any text as it is (TEXT affinity, sqlite.org/datatype3.html, 3.1).
_TEXT: Final = re.compile(r"(?!.*INT).*(CHAR|CLOB|TEXT)", re.IGNORECASE | re.DOTALL)
_DECLARED: Final = "SELECT type FROM pragma_table_xinfo(?) WHERE name = ?"
# In others text that begins so may be kept as a number.
_LIKE_NUMBERS: Final = frozenset(b"0123456789+-. \t\n\v\f\r")
NOTHING: Final = (b"", 0)  # there is no row


class PlainRows:
    """Read and write rows of one mapping.

    Args:
        store: the file.
        table: what is kept of the mapping's rows.
        looked_up: returns the key column's content to look for, None where no row can be found by a key.
        item: returns a row as a get answers it under a client's word.
        cas: next cas numbers.
        rules: facts in force.
    """

    def __init__(
        self,
        store: SQLiteStore,
        table: CachedTable,
        looked_up: Callable[[Mapping, bytes], Cell],
        item: Callable[[bytes, Row], Item],
        cas: Iterator[int],
        rules: Rules,
    ) -> None:
        self.table = table
        self._store = store
        self._looked_up = looked_up
        self._item = item
        self._cas = cas
        self._mapping = mapping = table.mapping
        self._longest_key = LARGEST_VALUE if mapping.key.width is None else mapping.key.width
        self._form = mapping.key.form
        value = mapping.values[0]
        self._is_text = value.kind is Kind.TEXT
        declared = store.ask(_DECLARED, [mapping.source, value.name]).fetchone()
        self._may_change = self._is_text and not (declared and _TEXT.match(declared[0]))
        width = value.width
        self.longest_value = min(LARGEST_VALUE if width is None else width, LARGEST_VALUE)
        self._has_flags, self._has_cas, self._has_expiry = (
            column is not None for column in (mapping.flags, mapping.cas, mapping.expiry)
        )
        sql = store.statements(mapping)
        clear_unmapped = rules.clears_unmapped
        self._insert = sql.insert_cleared if clear_unmapped else sql.insert
        self._present = sql.present
        self._by_key = sql.overwrite(clear_unmapped=clear_unmapped)
        self._by_rowid = sql.overwrite(clear_unmapped=clear_unmapped, by_rowid=True)
        self._rowid = sql.rowid if self._has_rowid(sql.rowid) else ""
        # Where a write gives the row another spelling of its key too, the old one would have to be known.
        self._upsert = sql.upsert(clear_unmapped=clear_unmapped) if self._rowid and not rules.renames_key else ""
        self.writable = take_sets(mapping, _as_it_is) and not store.has_rules(mapping)

    def read(self, word: bytes) -> Kept | None:
        """Return a row of the file, NOTHING where there is none, and keep it where it stays what it is.

        Args:
            word: a client's key.
        """
        table, store = self.table, self._store
        if table.unsure or table.unsure_syncing:
            return None
        try:
            cell = self._looked_up(self._mapping, word)
            row = None if cell is None else store.lookup(self._mapping, cell)
            if row is None:
                # It may be deleted by what is not durable yet.
                return None if table.changed or table.syncing else NOTHING
            key = to_bytes(row.key)
            if row.expiry or key in table.changed or key in table.syncing:
                return None
            spelled = row.key == cell and key == word
            item = self._item(word, row)
            kept = shown(word, item.flags, item.data), self._rowid_of(row.key) if spelled and self.writable else 0
        except (KvrefError, RefusedError):
            return None  # the verb says why
        if spelled:
            store.cache.keep(table, word, kept)
        return kept

    def write(self, word: bytes, flags: int, data: bytes) -> bool:
        """Write a row without an expiry time; tells whether that is done.

        Args:
            word: a client's key.
            flags: 0 to LARGEST_FLAGS.
            data: up to `longest_value` bytes.
        """
        table = self.table
        kept = table.items.get(word) or table.changed.get(word) or table.syncing.get(word)
        try:
            cells: list[Cell] = [data.decode("ascii") if self._is_text else data]
            row = self._put(word, flags, cells) if kept is None else self._overwrite(kept[1], word, flags, cells)
        except (KvrefError, RefusedError, UnicodeDecodeError):
            return False  # the verb says why, or can do it
        if row is None:
            return False
        stored, rowid = row
        item = None
        if stored == word and not (self._may_change and data and data[0] in _LIKE_NUMBERS):
            item = shown(word, flags if self._has_flags else 0, data), rowid
        self._store.cache.change(self._mapping, stored, item)
        return True

    def _overwrite(self, rowid: int, word: bytes, flags: int, cells: list[Cell]) -> tuple[bytes, int] | None:
        """Write over a row that is there; returns its key and rowid, None where it was not found."""
        parameter: Cell = rowid or self._key(word)
        if parameter is None:
            return None
        self._add_options(cells, flags)  # a cas number with them, which no other way may take again
        text = self._by_rowid if rowid else self._by_key
        return (word, rowid) if self._store.ask(text, [*cells, parameter]).rowcount == 1 else None

    def _put(self, word: bytes, flags: int, cells: list[Cell]) -> tuple[bytes, int] | None:
        """Write a row that may be there or not; returns its key and rowid there, None where nothing is written."""
        key = self._key(word)
        if key is None:
            return None
        if self._upsert:
            if self._store.ask(self._present, [word]).fetchone():
                return None  # a program has written its key as a BLOB
            self._add_options(cells, flags)
            ((stored, rowid),) = self._store.ask(self._upsert, [key, *cells]).fetchall()
            return word if stored == key else self._word(stored), rowid
        found = self._store.lookup(self._mapping, word if self._form else key)
        if found is not None:
            return self._overwrite(0, word, flags, cells) if to_bytes(found.key) == word else None
        self._add_options(cells, flags)
        self._store.ask(self._insert, [key, *cells])
        return word, 0

    def _word(self, stored: str) -> bytes:
        return to_bytes(stored if self._form is None else self._form.from_sql(stored))

    def _add_options(self, cells: list[Cell], flags: int) -> None:
        if self._has_flags:
            cells.append(flags)
        cas = next(self._cas)
        if self._has_cas:
            cells.append(cas)
        if self._has_expiry:
            cells.append(0)

    def _key(self, word: bytes) -> str | None:
        """Return a key as the file has it; None where it is another one there, or none."""
        if len(word) > self._longest_key:
            return None
        form = self._form
        if form is None:
            return word.decode("ascii")
        key: str = form.to_sql(word)
        same = self._looked_up(self._mapping, word) == word and form.from_sql(key) == word
        return key if same else None

    def _rowid_of(self, key: Cell) -> int:
        if not self._rowid:
            return 0
        found = self._store.ask(self._rowid, [self._store.statements(self._mapping).key(key)]).fetchone()
        return found[0] if found else 0

    def _has_rowid(self, text: str) -> bool:
        """Tell whether SQLite finds the table's rows by a number of its own, and under that name."""
        if ROWID in {name.lower() for name in self._mapping.columns}:
            return False
        try:
            self._store.ask(text, [None])
        except StatementError:
            return False  # WITHOUT ROWID
        return True


def _as_it_is(column: Column) -> bool:
    """Tell whether ASCII in the protocol is the same in the file."""
    return column.form is None and (
        column.kind is Kind.BYTES or (column.kind is Kind.TEXT and column.charset.unit == 0)
    )
