"""Rows of one mapping over a SQLite file, for plans: read and written together, kept for the next get."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell, Insert, Remove, Row, Update
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, FLAGS, HIT, ROWID, CachedRow, Parameters, Renewal, written_row
from kvref.engine.values import RefusedError, has_text, shown_flags, to_bytes
from kvref.errors import StoreError
from kvref.protocol.hits import SHOWN
from kvref.storage.config.codecs import UNSIGNED
from kvref.storage.planned_rows import (
    Overlay,
    RefusedWriteError,
    SplitGroupError,
    Write,
    WriteKind,
    bytes_of_row,
)
from kvref.storage.sqlite.blobs import Blob
from kvref.storage.sqlite.errors import BusyError, StatementError
from kvref.storage.sqlite.row_cache import CachedTable
from kvref.storage.sqlite.rows import IGNORED
from kvref.storage.sqlite.store import SQLiteStore

# Declared types of columns that keep any text as it is (TEXT affinity, sqlite.org/datatype3.html, 3.1).
_TEXT: Final = re.compile(r"(?!.*INT).*(CHAR|CLOB|TEXT)", re.IGNORECASE | re.DOTALL)
_DECLARED: Final = "SELECT name, type FROM pragma_table_xinfo(?)"
_NO_ROWS: Final[dict[bytes, CachedRow]] = {}
_NOTHING: Final[set[bytes]] = set()
_INSERT: Final = WriteKind.INSERT
_UPDATE: Final = WriteKind.UPDATE
_DELETE: Final = WriteKind.DELETE
_WHOLE: Final = (_INSERT, _UPDATE)  # they write the value columns
_OF_WHOLE: Final = (_INSERT.value, _UPDATE.value)
_KIND: Final = itemgetter(0)
MIN_ROW: Final = 4 << 10  # bytes


class BlobKey(bytes):
    """The key of a row that is BLOB in a column of text: text of the same bytes is the key of another row."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlobKey) and bytes.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return ~bytes.__hash__(self)


class PlannedWrite:
    """A planned write of an open batch, and the row as it leaves it; see `transactions.Version` for a row by steps.

    Args:
        rows: of its mapping.
        kind: what it does to the row.
        word: of the client, and key of the row, as the table stores it.
        key: the same as the cell of the key column.
        sql_key: that cell as SQL has it.
        cached: the row afterwards, ABSENT for a delete.
        parameters: cells to write, none for a delete.
    """

    __slots__ = ("cached", "key", "kind", "parameters", "rows", "sql_key", "word")

    def __init__(
        self,
        rows: SQLiteRows,
        kind: WriteKind,
        word: bytes,
        key: Cell,
        sql_key: Cell,
        cached: CachedRow,
        parameters: Parameters,
    ) -> None:
        self.rows = rows
        self.kind = kind
        self.word = word
        self.key = key
        self.sql_key = sql_key
        self.cached = cached
        self.parameters = parameters

    @property
    def mapping(self) -> Mapping:
        return self.rows.mapping

    @property
    def clears(self) -> bool:
        """Return whether unmapped columns become NULL, see `operations.Update`."""
        return self.kind is _DELETE or (self.kind in _WHOLE and self.rows.clears)

    @property
    def row(self) -> Row | None:
        """Return the row afterwards, None if it is deleted."""
        if self.kind is _DELETE:
            return None
        return self.rows.row_of(self.kind, self.key, self.cached, self.parameters)

    @property
    def operation(self) -> Insert | Update | Remove:
        """Return what a command by steps does in its place."""
        return self.rows.operation(self.kind, self.key, self.key, self.cached, self.parameters)

    def measure(self) -> int:
        """Return how many bytes of keys and values count in the size of the batch; -1: SQLite cannot hold the text."""
        size = len(self.key) if isinstance(self.key, str | bytes) else 0
        if self.kind in _WHOLE:
            cells: Sequence[Cell] = self.parameters[: self.rows.value_count]
        else:
            row = self.row
            cells = () if row is None else row.values
        for cell in cells:
            if type(cell) is str:
                if not cell.isascii() and not is_text(cell):
                    return -1
                size += len(cell)
            elif isinstance(cell, bytes):
                size += len(cell)
        return size


def is_text(text: str) -> bool:
    """Return whether SQLite can hold a text, which has no surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class SQLiteRows:
    """The rows of one mapping, see `PlannedRows`; other writes in `queue` wait for the file, and run first."""

    def __init__(self, store: SQLiteStore, table: CachedTable, bound: Bound, queue: Collection[object]) -> None:
        self.rows = table.items
        self.missing = table.missing
        self._store = store
        self._table = self.source = table
        self._bound = bound
        self._queue = queue
        self._mapping = self.mapping = mapping = bound.mapping
        self._sql = sql = store.statements(mapping)
        self.clears = bound.rules.clears_unmapped
        self._numbered = sql.numbered and _has_rowid(store, sql.lookup_numbered)
        self._insert = sql.insert_cleared if self.clears else sql.insert
        self._update = sql.overwrite(clear_unmapped=self.clears, by_rowid=self._numbered)
        self._update_by_key = sql.overwrite(clear_unmapped=self.clears)
        self._to_sql = _codecs(mapping.values)
        self.value_count = len(mapping.values)
        self._has_text = bound.one_text and has_text(mapping.values[0])
        self._renewed_to_sql = _codecs([each for each in (mapping.cas, mapping.expiry) if each is not None])
        # Rows of one text with all options, whose cells SQL has as the wire has them, are read without a `Row`.
        self._is_simple = sql.reads_as_written and bound.one_text and bound.all_mapped
        # Returns the bytes of a key as it is read.
        self.shown_key = _shown_key(mapping.key)
        self._lookups: dict[int, str] = {}  # by the number of keys
        self.largest = bytes_of_row(mapping)
        self._measured = False  # it is of rows that were read, or written in batches
        self.hits = 0
        self._blobs = False
        self._checked_for_blobs = -1  # at which number of `RowCache.clears`
        self.separate = _has_rules(store, mapping, clear_unmapped=self.clears)

    def plan_write(self, word: bytes) -> None:
        table = self._table
        if self.separate:
            self.rows, self.missing = _NO_ROWS, _NOTHING
        row = table.items.pop(word, None)
        if row is not None:
            table.planned[word] = row
            return
        if word not in table.planned:
            table.planned[word] = None
        if table.changed.get(word) is not None:
            return
        if table.by_bytes:
            self._store.cache.appeared(table, word)
        else:  # the row may be shown under another spelling of its key
            self.rows, self.missing = _NO_ROWS, _NOTHING

    def release(self) -> None:
        if self._table.planned:
            self._store.cache.release(self._table)
        self.rows, self.missing = self._table.items, self._table.missing

    def begin(self) -> bool:
        if self._queue and not self._store.dirty:
            return False
        try:
            self._store.begin_writing()  # from here on no other process writes to the file
        except BusyError:
            return False
        return True

    def read_many(self, words: Sequence[bytes], *, written: bool) -> Overlay:
        table = self._table
        overlay = Overlay()
        overlay.all_not_durable = table.dirty or table.dirty_syncing
        planned = [*map(table.planned.get, words)]
        if all(planned):
            overlay.rows = dict(zip(words, planned, strict=True))  # type: ignore[arg-type]  # none is None
        else:
            self._look_up(words, overlay)
        if written:
            if not table.by_bytes and not all(planned):
                self._join_absent(overlay)
            # A write of the group may change which row a word of it names.
            if (overlay.aliases and self._bound.rules.renames_key) or self.has_blobs():
                raise SplitGroupError
        return overlay

    def _look_up(self, words: Sequence[bytes], overlay: Overlay) -> None:
        table, rows = self._table, overlay.rows
        unknown: dict[bytes, None] = {}
        for word in words:
            if word in rows or word in unknown:
                continue
            row = table.planned.get(word) or table.items.get(word)
            if row is None:
                if word in table.missing:
                    row = ABSENT
                elif word in table.changed or word in table.syncing:
                    overlay.not_durable.add(word)
                    row = (table.changed if word in table.changed else table.syncing)[word]
            if row is None:
                unknown[word] = None
            else:
                rows[word] = row
        if unknown:
            self._read([*unknown], overlay)

    def has_blobs(self) -> bool:
        """Return whether keys of the text column may be BLOB: text that equals one is another row, and comes first."""
        clears = self._store.cache.clears
        if self._checked_for_blobs != clears and self._mapping.key.kind is Kind.TEXT:
            self._checked_for_blobs = clears
            self._blobs = bool(self._store.fetch(self._sql.any_blob, []))
        return self._blobs

    def apply_many(self, writes: Sequence[Write]) -> None:
        if self.separate:
            self._apply_alone(*writes)
            return
        distinct = len(writes) == 1 or len({write[1] for write in writes}) == len(writes)
        merged = writes if distinct else _merged(writes)
        distinct = distinct or len({write[1] for write in merged}) == len(merged)
        many: dict[bytes, CachedRow] = {}  # that are overwritten by rowid, and what with
        cells: list[Parameters] = []
        others: list[Write] = []
        for write in merged:
            kind, key, word, row, rowid, parameters = write
            if kind is _UPDATE and rowid and key == word and distinct:
                many[key] = row
                cells.append((*parameters, rowid))
            else:
                others.append(write)
        try:
            if len(merged) > 1:
                rowids: Sequence[int] = self._apply_together(cells, others)
            else:
                rowids = (self._apply(others[0]),) if others else self._overwrite(cells)
        except StoreError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError) and self._store.in_transaction:
                raise RefusedWriteError(str(error.__cause__)) from error
            raise
        if others:
            respelled = {key for _, key, word, *_ in writes if key != word}
            for write, rowid in zip(others, rowids, strict=True):
                self._note(write, rowid, certain=write[1] not in respelled)
            for key in respelled & many.keys():
                self._store.cache.change(self._mapping, key, None)
                del many[key]
        if many:
            self._store.cache.change_all(self._table, many)

    def _apply_alone(self, write: Write) -> None:
        """Carry out one write as a command by steps does, with all that the table does then."""
        kind, written, word, new, _, parameters = write
        found = Blob.of(written, bytes(written)) if type(written) is BlobKey else self._bound.key(written)
        key = self._bound.key(word) if kind is _INSERT or (kind is _UPDATE and self._bound.rules.renames_key) else found
        cause = self._store.execute(self.operation(kind, found, key, new, parameters))
        if cause is not None:
            raise RefusedWriteError(cause)

    def operation(
        self, kind: WriteKind, found: Cell, key: Cell, cached: CachedRow, parameters: Parameters
    ) -> Insert | Update | Remove:
        """Return a write as the operation of a command by steps; `found`: the row's key before, `key`: afterwards."""
        if kind is _DELETE:
            return Remove(self.mapping, found)
        row = self.row_of(kind, key, cached, parameters)
        if kind is _INSERT:
            return Insert(self.mapping, row, self.clears)
        renews = kind is WriteKind.RENEW
        return Update(self.mapping, found, row, self.clears and not renews, renews)

    def row_of(self, kind: WriteKind, key: Cell, cached: CachedRow, parameters: Parameters) -> Row:
        """Return the row that a write leaves, which is not a delete."""
        if kind in _WHOLE:
            return written_row(self.mapping, key, parameters)
        cells = self._bound.cells(cached)
        if self._has_text and isinstance(cells[0], bytes):
            cells = (cells[0].decode("utf-8", "surrogateescape"),)
        return Row(key, cells, cached[FLAGS], cached[CAS], cached[EXPIRY])

    @staticmethod
    def kind_of(row: CachedRow, new: CachedRow, parameters: Parameters | None) -> WriteKind:
        """Return what a write does to a row, ABSENT if there is none."""
        if not new[HIT]:
            return _DELETE
        if not row[HIT]:
            return _INSERT
        return WriteKind.RENEW if isinstance(parameters, Renewal) else _UPDATE

    def apply_batch(self, writes: Sequence[PlannedWrite]) -> bool:
        """Carry out the writes of a batch together; return whether each one finds its row as it was when planned.

        If not, other programs have written meanwhile, and some of the writes are carried out. Raises StoreError.
        """
        merged: list[tuple[str, PlannedWrite]] = []
        last: dict[bytes, int] = {}
        for write in writes:
            at = last.get(write.word)
            if at is not None and write.kind is _UPDATE and merged[at][0] in _OF_WHOLE:
                merged[at] = merged[at][0], write
            else:
                last[write.word] = len(merged)
                merged.append((write.kind.value, write))
        if len(last) == len(merged):
            merged.sort(key=_KIND)
        try:
            for kind, group in groupby(merged, _KIND):
                text, cells = self._of_batch(WriteKind(kind), [write for _, write in group])
                if self._store.run_many(text, cells).rowcount != len(cells):
                    return False
        except StoreError as error:
            changed = isinstance(error, StatementError) or isinstance(error.__cause__, sqlite3.IntegrityError)
            if changed and self._store.in_transaction:
                return False
            raise
        self._measure(max([len(each.cached[HIT]) for each in writes]))
        left: dict[bytes, CachedRow] = {}
        for _, write in merged:
            # What others have written meanwhile stays in the other cells of a row that is renewed.
            renewed = write.kind is WriteKind.RENEW and not left.get(write.word, ABSENT)[HIT]
            left[write.word] = ABSENT if renewed else write.cached
        self._store.cache.change_batch(self._table, left)
        return True

    def _of_batch(self, kind: WriteKind, writes: Sequence[PlannedWrite]) -> tuple[str, list[Parameters]]:
        """Return the statement of writes of one kind, and its parameters for each; rows are found by their keys."""
        if kind is _DELETE:
            return self._sql.remove, [(each.sql_key,) for each in writes]
        codecs = self._to_sql if kind in _WHOLE else self._renewed_to_sql
        if kind is _INSERT:
            if any(isinstance(each.key, bytes) for each in writes):
                self._checked_for_blobs = -1
            if not codecs:
                return self._insert, [(each.sql_key, *each.parameters) for each in writes]
            return self._insert, [(each.sql_key, *_to_sql(each.parameters, codecs)) for each in writes]
        text = self._update_by_key if kind is _UPDATE else self._sql.renew
        if not codecs:
            return text, [(*each.parameters, each.sql_key) for each in writes]
        return text, [(*_to_sql(each.parameters, codecs), each.sql_key) for each in writes]

    def _note(self, write: Write, rowid: int, *, certain: bool) -> None:
        """Cache what a write left; `certain`: no command of the group names the row by another equal key."""
        cache, mapping = self._store.cache, self._mapping
        kind, written, word, new, _, _ = write
        row: CachedRow | None = new
        key = written
        if kind is _INSERT:
            key = self.shown_key(self._bound.key(word))  # the column may keep another one
        if not (certain and new[HIT]) or key != word:
            row = None  # the next get reads it
        elif rowid != new[ROWID]:
            hit, _, flags, cas, expiry, cells = new
            row = hit, rowid, flags, cas, expiry, cells
        cache.change(mapping, key, row)
        if row is None or written != key:
            for each in {written, word} - {key}:
                cache.change(mapping, each, None)

    def _apply_together(self, cells: list[Parameters], others: list[Write]) -> list[int]:
        """Carry out writes, all or none; return the rowids of the rows of `others`, 0 where it is not known.

        `cells` are parameters of the rows that are overwritten by rowid, each with the rowid behind it.
        """
        self._store.begin_batch()
        try:
            if cells:
                self._overwrite(cells)
            rowids = [self._apply(write) for write in others]
        except BaseException:
            self._store.end_batch(undone=True)
            raise
        self._store.end_batch(undone=False)
        return rowids

    def _overwrite(self, cells: list[Parameters]) -> tuple[()]:
        """Carry out writes of whole rows that are found by their rowids; returns nothing, as none of them is new."""
        if self._to_sql:
            cells = [_to_sql(each, self._to_sql) for each in cells]
        store = self._store
        done = store.run(self._update, cells[0]) if len(cells) == 1 else store.run_many(self._update, cells)
        if done.rowcount != len(cells):
            raise RefusedWriteError(IGNORED)
        return ()

    def _apply(self, write: Write) -> int:
        """Carry out one write; return the rowid of its row, 0 if it is not known."""
        store, sql = self._store, self._sql
        kind, written, word, _, rowid, cells = write
        if self._to_sql and kind in _WHOLE:
            cells = _to_sql(cells, self._to_sql)
        if kind is _INSERT:
            key = sql.key(self._bound.key(word))
            if isinstance(key, bytes):
                self._checked_for_blobs = -1
            cursor = store.run(self._insert, (key, *cells))
            return (cursor.lastrowid or 0) if self._numbered else 0
        if kind is _UPDATE and written != word and self._bound.rules.renames_key:
            self._apply_alone(write)  # the key too, as the profile does for another spelling of it
            return rowid
        place: Cell = rowid or self._place(written)
        if kind is WriteKind.DELETE:
            cursor = store.run(sql.remove_numbered if rowid else sql.remove, (place,))
        elif kind is WriteKind.RENEW:
            cells = _to_sql(cells, self._renewed_to_sql)
            cursor = store.run(sql.renew_numbered if rowid else sql.renew, (*cells, place))
        else:
            cursor = store.run(self._update if rowid else self._update_by_key, (*cells, place))
        if cursor.rowcount != 1:
            raise RefusedWriteError(IGNORED)
        return rowid

    def _place(self, key: bytes) -> Cell:
        return bytes(key) if type(key) is BlobKey else self._sql.key(self._bound.key(key))

    def _read(self, words: list[bytes], overlay: Overlay) -> None:
        sought: dict[bytes, Cell] = {}
        spelled: dict[bytes, bool] = {}  # else a miss may be one of a row that has another key
        key_of, codec = self._bound.key, self._mapping.key.codec
        for word in words:
            try:
                cell = key_of(word)
            except RefusedError:
                self._absent(word, overlay, keep=False)  # no row can be found by this key
                continue
            sought[word] = cell if codec is None else codec.to_sql(cell)
            spelled[word] = len(cell) == len(word) if isinstance(cell, str | bytes) else to_bytes(cell) == word
        found = self._select(sought)
        texts = {word: to_bytes(cell) for word, cell in sought.items() if word not in found and isinstance(cell, str)}
        # A program may have written its keys as BLOB, which no text equals.
        blobs = self._select(texts) if texts and self.has_blobs() else {}
        for word in sought:
            if word in found:
                self._found(word, found[word], overlay)
            elif word in blobs:
                self._found(word, blobs[word], overlay, is_blob=True)
            else:
                self._absent(word, overlay, keep=spelled[word])

    def _select(self, sought: dict[bytes, Any]) -> dict[bytes, Sequence[Any]]:
        words = [*sought]
        count = 1 << (len(words) - 1).bit_length()  # few statements, so that SQLite prepares each once
        parameters = [*sought.values(), *[None] * (count - len(words))]
        text = self._lookups.get(count)
        if text is None:
            text = self._lookups[count] = self._sql.lookup_many(count, numbered=self._numbered)
        return {words[place]: cells for place, *cells in self._store.fetch(text, parameters)}

    def _found(self, word: bytes, cells: Sequence[Any], overlay: Overlay, *, is_blob: bool = False) -> None:
        table = self._table
        if self._numbered:
            *cells, rowid = cells
        else:
            rowid = 0
        key, row = self._row(cells, rowid, is_blob=is_blob)
        if len(row[HIT]) > self.largest or not self._measured:
            self._measure(len(row[HIT]))
        if key != word:
            overlay.aliases[word] = key
        not_durable = key in table.changed or key in table.syncing
        if not_durable:
            overlay.not_durable.add(key)
        if key in overlay.rows:
            return
        overlay.rows[key] = row
        if not_durable or overlay.all_not_durable:
            return
        if key in table.planned:
            if table.planned[key] is None:
                self._store.cache.set_planned(table, key, row)
        elif key == word:
            self._store.cache.put(table, word, row)

    def _measure(self, size: int) -> None:
        """Note the size of a row in bytes: columns without a width would allow any."""
        self.largest = max(MIN_ROW, size, self.largest if self._measured else 0)
        self._measured = True

    def _row(self, cells: Sequence[Any], rowid: int, *, is_blob: bool) -> tuple[bytes, CachedRow]:
        """Return the key of a row that was read, and the row."""
        if self._is_simple and not is_blob:
            text, value, flags, cas, expiry = cells
            if type(text) is type(value) is str and type(flags) is type(cas) is type(expiry) is int:
                key, data = to_bytes(text), to_bytes(value)
                return key, (SHOWN % (key, shown_flags(flags), len(data), data), rowid, flags, cas, expiry, None)
        stored = self._sql.row(tuple(cells))
        key = BlobKey(cells[0]) if is_blob else to_bytes(stored.key)
        return key, self._bound.row(key, stored.values, rowid, stored.flags, stored.cas, stored.expiry)

    def _absent(self, word: bytes, overlay: Overlay, *, keep: bool) -> None:
        table = self._table
        overlay.rows[word] = ABSENT
        written = word in table.changed or word in table.syncing
        if written if table.by_bytes else table.changed or table.syncing:
            overlay.not_durable.add(word)
        elif keep and not overlay.all_not_durable:
            self._store.cache.put_missing(table, word)

    def _join_absent(self, overlay: Overlay) -> None:
        """Let words that are the same key, of which there is no row, share one."""
        absent = [word for word, row in overlay.rows.items() if not row[HIT]]
        if len(absent) < 2:
            return
        first: dict[Any, bytes] = {}
        for word in absent:
            cell = self._bound.session.key_to_find(self._mapping, word)
            if cell is None:
                continue
            first_word = first.setdefault(self._sql.order.identity(self._sql.key(cell)), word)
            if first_word != word:
                overlay.aliases[word] = first_word


def _merged(writes: Sequence[Write]) -> list[Write]:
    """Return writes without those that a later one of the same row and kind replaces."""
    merged: list[Write] = []
    last: dict[bytes, int] = {}
    for write in writes:
        kind, key, word, row, _, parameters = write
        at = last.get(key)
        if at is not None and merged[at][2] == word:
            before, rowid = merged[at][0], merged[at][4]
            overwrites = kind is _UPDATE and before in _WHOLE
            if overwrites or (kind is WriteKind.RENEW and before is WriteKind.RENEW):
                merged[at] = before, key, word, row, rowid, parameters
                continue
        last[key] = len(merged)
        merged.append(write)
    return merged


def _has_rowid(store: SQLiteStore, text: str) -> bool:
    """Return whether SQLite finds the table's rows by its own number."""
    try:
        store.fetch(text, [None])
    except StatementError:
        return False  # WITHOUT ROWID
    return True


def _to_sql(cells: Parameters, codecs: list[tuple[int, Callable[[Any], Any]]]) -> Parameters:
    changed = list(cells)
    for place, to_sql in codecs:
        if changed[place] is not None:
            changed[place] = to_sql(changed[place])
    return tuple(changed)


def _shown_key(column: Column) -> Callable[[Any], bytes]:
    """Return what returns the bytes of a key as it is read: CHAR may have spaces behind what was written."""
    codec = column.codec
    if codec is None or not codec.pads:
        return to_bytes
    return lambda cell: to_bytes(codec.from_sql(codec.to_sql(cell)))


def _codecs(columns: Sequence[Column]) -> list[tuple[int, Callable[[Any], Any]]]:
    """Return the columns whose cells SQL has otherwise than the wire, by their places.

    Those of flags, cas and expiry need no codec but for what another program has written: commands write fewer bits.
    """
    return [(place, each.codec.to_sql) for place, each in enumerate(columns) if each.codec is not None]


def unplanned(store: SQLiteStore, mapping: Mapping) -> str:
    """Return why rows of a mapping are read by plans but not written, empty if they are written too.

    A row that is written must read as it was written, unless a trigger changes it.
    """
    options = [each for each in mapping.options.values() if each is not None]
    columns = (mapping.key, *mapping.values, *options)
    names = [column.name.lower() for column in columns]
    declared = dict(store.fetch(_DECLARED, [mapping.source]))
    for column in columns:
        if not _reads_as_written(column, declared.get(column.name, ""), is_key=column is mapping.key):
            return f"column {column.name} shows something else than what is written"
    if len(set(names)) < len(names):
        return "a column is mapped twice"
    if any(column.kind is not Kind.INTEGER for column in options):
        return "flags, cas or expiry are in a column of text"
    return "a write can end the transaction of others" if store.can_roll_back(mapping) else ""


def _has_rules(store: SQLiteStore, mapping: Mapping, *, clear_unmapped: bool) -> bool:
    """Return whether the table of a mapping has triggers, constraints or further unique keys."""
    if len(mapping.values) > 1:
        return store.has_rules(mapping)
    return store.catalog.has_rules_for_sets(mapping.source, mapping.written, clear_unmapped=clear_unmapped)


def _reads_as_written(column: Column, declared: str, *, is_key: bool) -> bool:
    """Return whether a cell of a column reads as it was written."""
    if column.exact or column.fixed:
        return False
    if column.kind is Kind.INTEGER:
        return column.codec in (None, UNSIGNED)
    if column.kind is Kind.BYTES:
        return column.codec is None or is_key
    # A character set gives back the bytes that it was given; CHAR that is shown with spaces has more of them.
    padded = column.codec is not None and column.codec.pads
    return bool(_TEXT.match(declared)) and (not padded or is_key)
