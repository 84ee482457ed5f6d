"""Read and write rows of one mapping for simple commands: rows are cached for the next get, sets are one statement.

`PlainVerbs` has the rules of the commands. None means that the general path must run the command; nothing is written
then.
"""

from __future__ import annotations

import re
from typing import Final

from kvref.engine.fast_path import PlainVerbs
from kvref.engine.mapping import Column, Kind
from kvref.engine.operations import Cell
from kvref.engine.values import RefusedError, to_bytes
from kvref.errors import KvrefError
from kvref.storage.fast_path import take_sets
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
        verbs: what commands mean.
    """

    def __init__(self, store: SQLiteStore, table: CachedTable, verbs: PlainVerbs) -> None:
        self.table = table
        self._store = store
        self._verbs = verbs
        self._mapping = mapping = table.mapping
        self._form = mapping.key.codec
        value = mapping.values[0]
        declared = store.ask(_DECLARED, [mapping.source, value.name]).fetchone()
        self._may_change = value.kind is Kind.TEXT and not (declared and _TEXT.match(declared[0]))
        self._mapped = tuple(column is not None for column in (mapping.flags, mapping.cas, mapping.expiry))
        self._all_mapped = all(self._mapped)
        sql = store.statements(mapping)
        rules = verbs.shared.rules
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
            cell = self._verbs.looked_up(word)
            row = None if cell is None else store.lookup(self._mapping, cell)
            if row is None:
                # It may be deleted by what is not durable yet.
                return None if table.changed or table.syncing else NOTHING
            key = to_bytes(row.key)
            if row.expiry or key in table.changed or key in table.syncing:
                return None  # what expires is not kept
            spelled = row.key == cell and key == word
            kept = self._verbs.reply(word, row, 0), self._rowid_of(row.key) if spelled and self.writable else 0
        except (KvrefError, RefusedError):
            return None  # the verb says why
        if spelled:
            store.cache.keep(table, word, kept)
        return kept

    def write(self, word: bytes, flags: int, data: bytes) -> bool:
        """Write a row without an expiry time; return whether it is written.

        Args:
            word: the key as the client sent it.
            flags: 0 to MAX_FLAGS.
            data: up to MAX_VALUE bytes.
        """
        table = self.table
        kept = table.items.get(word) or table.changed.get(word) or table.syncing.get(word)
        try:
            cells = [self._verbs.value(data)]
            row = self._put(word, flags, cells) if kept is None else self._overwrite(kept[1], word, flags, cells)
        except (KvrefError, RefusedError):
            return False  # the verb says why, or can do it
        if row is None:
            return False
        stored, rowid = row
        item = None
        if stored == word and not (self._may_change and data and data[0] in _LIKE_NUMBERS):
            item = self._verbs.written(word, cells[0], flags), rowid
        self._store.cache.change(self._mapping, stored, item)
        return True

    def _overwrite(self, rowid: int, word: bytes, flags: int, cells: list[Cell]) -> tuple[bytes, int] | None:
        """Write over a row that is there; returns its key and rowid, None where it was not found."""
        parameter: Cell = rowid or self._key(word)
        if parameter is None:
            return None
        self._add_options(cells, flags)
        text = self._by_rowid if rowid else self._by_key
        return (word, rowid) if self._store.ask(text, [*cells, parameter]).rowcount == 1 else None

    def _put(self, word: bytes, flags: int, cells: list[Cell]) -> tuple[bytes, int] | None:
        """Write a row that may be there or not; returns its key and rowid there, None where nothing is written."""
        key = self._key(word)
        if key is None:
            return None
        if self._upsert:
            if isinstance(key, str) and self._store.ask(self._present, [word]).fetchone():
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

    def _word(self, stored: str | bytes) -> bytes:
        return to_bytes(stored if self._form is None else self._form.from_sql(stored))

    def _add_options(self, cells: list[Cell], flags: int) -> None:
        options = self._verbs.options(flags)
        if self._all_mapped:
            cells += options
        else:
            cells += [cell for cell, mapped in zip(options, self._mapped, strict=True) if mapped]

    def _key(self, word: bytes) -> str | bytes | None:
        """Return a key as the file has it; None where it is another one there, is not ASCII, or may not be compared."""
        cell = self._verbs.key(word)
        codec = self._form
        if codec is None:
            return cell if isinstance(cell, str | bytes) and len(cell) == len(word) else None
        key: str = codec.to_sql(word)
        return key if cell == word and codec.from_sql(key) == word else None

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
    return column.codec is None and (
        column.kind is Kind.BYTES or (column.kind is Kind.TEXT and column.charset.unit == 0)
    )
