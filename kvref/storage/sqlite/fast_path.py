"""Read and write rows of one mapping for simple commands: rows are cached for the next get, sets are one statement.

`PlainVerbs` has the rules of the commands. None means that the slow path must run the command; nothing is written
then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from kvref.engine.fast_path import PlainVerbs
from kvref.engine.mapping import Column, Kind
from kvref.engine.operations import Cell, Remove, Row
from kvref.engine.plans.plan import ABSENT, ROWID, CachedRow
from kvref.engine.values import RefusedError, to_bytes
from kvref.errors import KvrefError
from kvref.storage.rows import take_sets
from kvref.storage.sqlite.errors import StatementError
from kvref.storage.sqlite.row_cache import CachedTable
from kvref.storage.sqlite.store import SQLiteStore

# Declared types of columns that keep any text as it is (TEXT affinity, sqlite.org/datatype3.html, 3.1).
_TEXT: Final = re.compile(r"(?!.*INT).*(CHAR|CLOB|TEXT)", re.IGNORECASE | re.DOTALL)
_DECLARED: Final = "SELECT type FROM pragma_table_xinfo(?) WHERE name = ?"
# In others text that begins so may be kept as a number.
_LIKE_NUMBERS: Final = frozenset(bytes([each]) for each in b"0123456789+-. \t\n\v\f\r")


Options = tuple[int | None, int | None, int | None]  # flags, cas number and expiry
_NONE: Final = (None, None, None)


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
        # Called where `take_sets` is true: then it returns no number.
        self._value: Callable[[bytes], str | bytes] = verbs.value  # type: ignore[assignment]
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
        numbered = sql.numbered and self._has_rowid(sql.lookup_numbered)
        # Where a write gives the row another spelling of its key too, the old one would have to be known.
        self._upsert = sql.upsert(clear_unmapped=clear_unmapped) if numbered and not rules.renames_key else ""
        # Rows that a set writes as the command has them, and nothing else happens.
        self.writable = take_sets(mapping, _as_it_is) and not store.has_rules_for_sets(
            mapping, clear_unmapped=clear_unmapped
        )
        self._reads_numbers = numbered and self.writable

    def read(self, word: bytes) -> CachedRow | None:
        """Return a row of the file, ABSENT if there is none, and cache that; None if the slow path must read it.

        A row may be missing because of a write that is not committed yet.

        Args:
            word: the key as the client sent it.
        """
        table, store = self.table, self._store
        if table.unsure or table.unsure_syncing:
            return None
        try:
            cell = self._verbs.looked_up(word)
            found = None if cell is None else self._look_up(cell)
            if found is None:
                if cell is not None and to_bytes(cell) == word:  # else it may be the key of a row that has another
                    store.cache.keep_missing(table, word)
                return ABSENT
            row, rowid = found
            key = to_bytes(row.key)
            if key in table.changed or key in table.syncing:
                return None
            spelled = type(row.key) is type(cell) and row.key == cell and key == word  # a BLOB is no text
            kept = self._verbs.hit(word, row), rowid if spelled else 0, row.flags, row.cas, row.expiry, self._cells(row)
        except (KvrefError, RefusedError):
            return None  # the verb says why
        if spelled:
            store.cache.keep(table, word, kept)
        return kept

    def _cells(self, row: Row) -> tuple[Cell, ...] | None:
        """Return what a cached row has of its value columns, see `CachedRow`."""
        one_text = len(row.values) == 1 and self._mapping.values[0].kind is not Kind.INTEGER
        return None if one_text and row.values[0] is not None else row.values

    def set(self, word: bytes, data: bytes, flags: int, expiry: int | None) -> Options | None:
        """Write a row that may be there or not; return its flags, cas number and expiry, None if it is not written.

        Args:
            word: the key as the client sent it.
            data: up to MAX_VALUE bytes.
            flags: 0 to MAX_FLAGS.
            expiry: as the column has it; None: the set has no expiry time.
        """
        table = self.table
        kept = table.items.get(word)
        if kept is None:
            # What is written since the sync began counts: the number of a row that is gone may be another row's now.
            kept = (table.changed if word in table.changed else table.syncing).get(word)
        try:
            value = self._value(data)
            rowid = 0 if kept is None else kept[ROWID]
            key = "" if rowid else self._key(word)
            if key is None:
                return None
            if kept is None:
                row, options = self._put(word, key, value, flags, expiry)
            else:
                options = self._verbs.options(flags, expiry)
                row = (word, rowid) if self._overwrite(rowid, key, value, options) else None
        except (KvrefError, RefusedError):
            return None  # the verb says why, or can do it
        if row is None:
            return None
        stored, rowid = row
        # Of the length of the data: text is stored as it is, so that nothing is cut or converted.
        self._wrote(stored, word, rowid, data if len(value) == len(data) else to_bytes(value), options)
        return options

    def update(self, word: bytes, rowid: int, row: Row) -> bool:
        """Overwrite a row and keep its key; return whether it is written.

        Args:
            word: the key.
            rowid: of the row, 0 if unknown.
            row: its new content, with one value; the key of `row` is not used.
        """
        options = row.flags, row.cas, row.expiry
        try:
            key = "" if rowid else self._key(word)
            if key is None or not self._overwrite(rowid, key, row.values[0], options):
                return False
        except (KvrefError, RefusedError):
            return False
        self._wrote(word, word, rowid, to_bytes(row.values[0]), options)
        return True

    def remove(self, word: bytes) -> bool:
        """Delete a row; return whether it is deleted.

        Args:
            word: its key, in the spelling of the table.
        """
        try:
            return self._store.execute(Remove(self._mapping, self._verbs.key(word))) is None
        except (KvrefError, RefusedError):
            return False

    def _wrote(self, stored: bytes, word: bytes, rowid: int, value: bytes, options: Options) -> None:
        kept: CachedRow | None = None
        if stored == word and not (self._may_change and value[:1] in _LIKE_NUMBERS):
            kept = self._verbs.written(word, value, options[0]), rowid, *options, None
        self._store.cache.change(self._mapping, stored, kept)

    def _overwrite(self, rowid: int, key: str | bytes, value: Cell, options: Options) -> bool:
        """Overwrite a row, by its rowid or, if that is 0, by its key; return whether it was found."""
        text = self._by_rowid if rowid else self._by_key
        mapped = options if self._all_mapped else self._mapped_of(options)
        return self._store.ask(text, [value, *mapped, rowid or key]).rowcount == 1

    def _put(
        self, word: bytes, key: str | bytes, value: Cell, flags: int, expiry: int | None
    ) -> tuple[tuple[bytes, int] | None, Options]:
        """Write a row that may be there or not; returns its key and rowid there, None where nothing is written."""
        if isinstance(key, str) and self._store.ask(self._present, [word]).fetchone():
            return None, _NONE  # a program has written its key as a BLOB
        if self._upsert:
            options = self._verbs.options(flags, expiry)
            asked = [key, value, *self._mapped_of(options)]
            ((stored, rowid),) = self._store.ask(self._upsert, asked).fetchall()
            return (word if stored == key else self._word(stored), rowid), options
        found = self._store.lookup(self._mapping, word if self._form else key)
        if found is not None and to_bytes(found.key) != word:
            return None, _NONE
        options = self._verbs.options(flags, expiry)
        if found is not None:
            return ((word, 0) if self._overwrite(0, key, value, options) else None), options
        self._store.ask(self._insert, [key, value, *self._mapped_of(options)])
        return (word, 0), options

    def _word(self, stored: str | bytes) -> bytes:
        return to_bytes(stored if self._form is None else self._form.from_sql(stored))

    def _mapped_of(self, options: Options) -> Sequence[int | None]:
        return [cell for cell, mapped in zip(options, self._mapped, strict=True) if mapped]

    def _key(self, word: bytes) -> str | bytes | None:
        """Return a key as the file has it; None where it is another one there, is not ASCII, or may not be compared."""
        cell = self._verbs.key(word)
        codec = self._form
        if codec is None:
            return cell if isinstance(cell, str | bytes) and len(cell) == len(word) else None
        key: str = codec.to_sql(word)
        return key if cell == word and codec.from_sql(key) == word else None

    def _look_up(self, cell: Cell) -> tuple[Row, int] | None:
        """Return a row and its rowid, 0 where no write needs it; None if there is no row."""
        if self._reads_numbers:
            return self._store.lookup_numbered(self._mapping, cell)
        row = self._store.lookup(self._mapping, cell)
        return None if row is None else (row, 0)

    def _has_rowid(self, text: str) -> bool:
        """Return whether SQLite finds the table's rows by a number of its own."""
        try:
            self._store.ask(text, [None])
        except StatementError:
            return False  # WITHOUT ROWID
        return True


def _as_it_is(column: Column) -> bool:
    """Return whether ASCII in the protocol is the same in the file."""
    return column.codec is None and (
        column.kind is Kind.BYTES or (column.kind is Kind.TEXT and column.charset.unit == 0)
    )
