"""Rows of one mapping for plain commands: read and kept for the next get, written by one statement.

Whatever is not plain is answered with None and left to the verbs; nothing is written then, and nothing said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kvref.errors import KvrefError
from kvref.semantics.mapping import Column, Kind, Mapping
from kvref.semantics.ports import Cell, Row
from kvref.semantics.values import RefusedError, to_bytes
from kvref.storage.forms import LARGEST_INTEGER, UNSIGNED
from kvref.storage.row_cache import CachedTable, Kept
from kvref.storage.sqlite import SQLiteStore
from kvref.storage.sqlite_errors import StatementError
from kvref.storage.sqlite_statements import ROWID

LARGEST_FLAGS: Final = 999_999_999  # that a plain set may have
LARGEST_VALUE: Final = 64 << 10  # longer ones cost so much that the way makes no difference
# A column without TEXT affinity may keep text that begins so as a number.
_LIKE_NUMBERS: Final = frozenset(b"0123456789+-. \t\n\v\f\r")
NOTHING: Final = (b"", 0)  # there is no row


class PlainRows:
    """Read and write rows of one mapping.

    Args:
        store: the file.
        table: what is kept of the mapping's rows.
        looked_up: returns the key column's content to look for, None where no row can be found by a key.
        shown: returns a row as a get shows it.
        cas: next cas numbers.
        clear_unmapped: a write leaves NULL in columns that are not mapped.
    """

    def __init__(
        self,
        store: SQLiteStore,
        table: CachedTable,
        looked_up: Callable[[Mapping, bytes], Cell],
        shown: Callable[[bytes, Row], bytes],
        cas: Iterator[int],
        *,
        clear_unmapped: bool,
    ) -> None:
        self.table = table
        self._store = store
        self._looked_up = looked_up
        self._shown = shown
        self._cas = cas
        self._mapping = mapping = table.mapping
        self._longest_key = LARGEST_VALUE if mapping.key.width is None else mapping.key.width
        self._form = mapping.key.form
        self._is_text = mapping.values[0].kind is Kind.TEXT
        width = mapping.values[0].width
        self.longest_value = min(LARGEST_VALUE if width is None else width, LARGEST_VALUE)
        self._has_flags, self._has_cas, self._has_expiry = (
            column is not None for column in (mapping.flags, mapping.cas, mapping.expiry)
        )
        sql = store.statements(mapping)
        self._insert = sql.insert_cleared if clear_unmapped else sql.insert
        self._by_key = sql.overwrite(clear_unmapped=clear_unmapped)
        self._by_rowid = sql.overwrite(clear_unmapped=clear_unmapped, by_rowid=True)
        self._rowid = sql.rowid if self._has_rowid(sql.rowid) else ""
        self.writable = _writable(mapping) and not store.has_rules(mapping)

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
            kept = self._shown(word, row), self._rowid_of(row.key) if spelled and self.writable else 0
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
            key = self._key(word)
            if key is None:
                return False
            found = kept is not None or self._find(word)
            if found is None:
                return False
            self._add_options(cells, flags)
            if kept is not None and kept[1]:
                rowid = kept[1]
                written = self._store.ask(self._by_rowid, [*cells, rowid]).rowcount == 1
            elif found:
                rowid = 0
                written = self._store.ask(self._by_key, [*cells, key]).rowcount == 1
            else:
                rowid = self._store.ask(self._insert, [key, *cells]).lastrowid or 0
                written = True
        except (KvrefError, RefusedError, UnicodeDecodeError):
            return False  # the verb says why, or can do it
        if written:
            same = not (self._is_text and data and data[0] in _LIKE_NUMBERS)
            item = b"VALUE %b %d %d\r\n%b\r\n" % (word, flags if self._has_flags else 0, len(data), data)
            self._store.cache.change(self._mapping, word, (item, rowid if self._rowid else 0) if same else None)
        return written

    def _add_options(self, cells: list[Cell], flags: int) -> None:
        if self._has_flags:
            cells.append(flags)
        cas = next(self._cas)
        if self._has_cas:
            cells.append(cas)
        if self._has_expiry:
            cells.append(0)

    def _find(self, word: bytes) -> bool | None:
        """Tell whether there is a row of this key; None where it is spelled otherwise."""
        row = self._store.lookup(self._mapping, word if self._form else word.decode("ascii"))
        if row is not None and to_bytes(row.key) != word:
            return None
        return row is not None  # a key that a program has written as a BLOB is found here, and not by the UPDATE

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


def _writable(mapping: Mapping) -> bool:
    key, value = mapping.key, mapping.values[0]
    options = [each for each in (mapping.flags, mapping.cas, mapping.expiry) if each is not None]
    names = [key.name, value.name, *(each.name for each in options)]
    return (
        len(mapping.values) == 1
        and len(set(names)) == len(names)
        and key.kind is Kind.TEXT
        and (_as_it_is(key) or (key.charset.unit == 1 and key.form is not None))
        and _as_it_is(value)
        and not (value.exact or value.fixed or mapping.hidden)
        and all(_holds(each, 0) for each in options)
        and (mapping.flags is None or _holds(mapping.flags, LARGEST_FLAGS))
        and (mapping.cas is None or _holds(mapping.cas, LARGEST_INTEGER))
    )


def _as_it_is(column: Column) -> bool:
    """Tell whether ASCII in the protocol is the same in the file."""
    return column.form is None and (
        column.kind is Kind.BYTES or (column.kind is Kind.TEXT and column.charset.unit == 0)
    )


def _holds(column: Column, number: int) -> bool:
    return column.kind is Kind.INTEGER and column.low <= number <= column.high and column.form in (None, UNSIGNED)
