"""Rows of mapped tables as a get shows them, kept for the next get, and keys that have no row.

SQLite only: what others commit there is noticed. An item, or a missing key, is here only while it is committed and
current: the store clears the cache when another connection has committed (`PRAGMA data_version`), and takes out what is
written through it until the next commit.
"""

from __future__ import annotations

from typing import Final

from kvref.engine.mapping import Kind, Mapping
from kvref.engine.operations import Clear, Insert, PurgeExpired, Remove, Update
from kvref.engine.plans.plan import HIT, MAX_CACHED, CachedRow
from kvref.engine.values import to_bytes
from kvref.storage.rows import MAX_CACHED_TABLES, evicted

# Without key and item: headers of two bytes objects, a tuple, three numbers, and a slot in a dict.
OVERHEAD: Final = 2 * 33 + 96 + 3 * 32 + 100
# Without the key: header of a bytes object, and a slot in a set, which is up to three quarters empty.
MISSING_OVERHEAD: Final = 33 + 64


class CachedTable:
    """What is kept of one mapping."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.items: dict[bytes, CachedRow] = {}  # by the key as the table stores it
        self.missing: set[bytes] = set()  # keys as clients send them, of which the table has no row
        self.by_bytes = _compares_bytes(mapping)
        # Written since the last commit, or being synced to disk: the item, None if the table must be queried.
        self.changed: dict[bytes, CachedRow | None] = {}
        self.syncing: dict[bytes, CachedRow | None] = {}
        # Words whose rows planned commands write, with their committed rows where these are known, which count as kept.
        self.planned: dict[bytes, CachedRow | None] = {}
        self.dirty = self.dirty_syncing = False  # anything may have been written
        self.live = True  # mapping and settings are as they were

    def renewed(self) -> CachedTable | None:
        """Return a table in place of this one with all that is kept, None if that is nothing."""
        self.live = False
        new = CachedTable(self.mapping)
        new.items, new.missing, new.changed, new.syncing = self.items, self.missing, self.changed, self.syncing
        new.dirty, new.dirty_syncing = self.dirty, self.dirty_syncing
        holds = self.items or self.missing or self.changed or self.syncing or self.dirty or self.dirty_syncing
        return new if holds else None


def _compares_bytes(mapping: Mapping) -> bool:
    """Return whether a write of one key makes no other key's row appear: keys are equal only if their bytes are."""
    key = mapping.key
    written_as_value = any(key.name.lower() == column.name.lower() for column in mapping.values)
    text = key.kind is not Kind.INTEGER and key.codec is None and key.collation.upper() in {"", "BINARY"}
    return text and not written_as_value


def _unnumbered(row: CachedRow) -> CachedRow | None:
    """Return a row whose number in the file is not known, None for ABSENT."""
    hit, rowid, flags, cas, expiry, cells = row
    if not hit:
        return None
    return (hit, 0, flags, cas, expiry, cells) if rowid else row


class RowCache:
    """The cached tables of one store, up to `limit` bytes of items, keys and what keeping them takes; 0: none."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.clears = 0  # how often others have written, or may have
        self._missing = 0  # part of it that missing keys take
        self._tables: dict[Mapping, CachedTable] = {}
        self._of_source: dict[str, list[CachedTable]] = {}  # the same, by the table of the file

    def table(self, mapping: Mapping, *, dirty: bool) -> CachedTable:
        """Return what is kept of a mapping's rows; `dirty`: there are writes that no commit holds yet."""
        found = self._tables.get(mapping)
        if found is None:
            if len(self._tables) >= MAX_CACHED_TABLES:
                self.retire()
            found = self._tables[mapping] = CachedTable(mapping)
            self._of_source.setdefault(mapping.source, []).append(found)
            found.dirty = dirty
        return found

    def put(self, table: CachedTable, word: bytes, item: CachedRow) -> None:
        """Keep an item that is committed; the oldest ones of its table, or all, make room for it."""
        size = len(word) + len(item[HIT]) + OVERHEAD
        if not table.live or size > self.limit or word in table.planned or len(item[HIT]) > MAX_CACHED:
            return
        if word in table.items:
            self.drop(table, word)
        if self.size + size > self.limit:
            self._drop_all_missing()
            self._make_room(table, size)
        table.items[word] = item
        self.size += size

    def put_missing(self, table: CachedTable, word: bytes) -> None:
        """Keep that the table has no row of a key as the client sent it, if that is committed and there is room."""
        written = word in table.changed or word in table.syncing
        if not table.live or (written if table.by_bytes else table.changed or table.syncing):
            return
        if word in table.planned if table.by_bytes else table.planned:
            return
        size = len(word) + MISSING_OVERHEAD
        if self.size + size > self.limit:
            self._drop_all_missing()
            if self.size + size > self.limit:
                return
        if word not in table.missing:
            table.missing.add(word)
            self._count_missing(size)

    def _count_missing(self, size: int) -> None:
        self.size += size
        self._missing += size

    def _drop_missing(self, table: CachedTable) -> None:
        self._count_missing(-sum(map(len, table.missing)) - len(table.missing) * MISSING_OVERHEAD)
        table.missing.clear()

    def _drop_all_missing(self) -> None:
        if self._missing:
            for table in self._tables.values():
                self._drop_missing(table)

    def _make_room(self, table: CachedTable, size: int) -> None:
        while self.size + size > self.limit and table.items:
            for word in evicted(table.items):
                self.drop(table, word)
        if self.size + size > self.limit:
            self.clear()

    def drop(self, table: CachedTable, word: bytes) -> None:
        item = table.items.pop(word, None)
        if item is not None:
            self.size -= len(word) + len(item[HIT]) + OVERHEAD

    def set_planned(self, table: CachedTable, word: bytes, item: CachedRow) -> None:
        """Note the committed row of a word whose row a planned command writes."""
        table.planned[word] = item
        self.size += len(word) + len(item[HIT]) + OVERHEAD

    def release(self, table: CachedTable) -> None:
        """Keep the rows again that were planned to be written, and are not."""
        planned, table.planned = table.planned, {}
        for word, item in planned.items():
            if item is not None:
                self.size -= len(word) + len(item[HIT]) + OVERHEAD
                self.put(table, word, item)

    def _drop_planned(self, table: CachedTable) -> None:
        for word, item in table.planned.items():
            if item is not None:
                self.size -= len(word) + len(item[HIT]) + OVERHEAD
        table.planned = dict.fromkeys(table.planned)

    def wrote(self, operation: Insert | Update | Remove | Clear | PurgeExpired, *, elsewhere: bool) -> None:
        """Note a write; `elsewhere`: the table may have changed other rows, or other tables, too."""
        if elsewhere or isinstance(operation, Clear):
            self._mark_all_dirty()
            return
        if isinstance(operation, PurgeExpired):
            self.wrote_any(operation.mapping.source)
            return
        words = [to_bytes(operation.key)] if isinstance(operation, Update | Remove) else []
        if not isinstance(operation, Remove):
            words.append(to_bytes(operation.row.key))
        for word in words:
            self.change(operation.mapping, word, None)

    def wrote_any(self, source: str) -> None:
        """Note that any rows of a table of the file may have been written."""
        for table in self._of_source.get(source, ()):
            self._mark_dirty(table)

    def wrote_equal(self, source: str) -> None:
        """Note that rows of a table may have been written whose keys equal those that were noted, with other bytes."""
        for table in self._of_source.get(source, ()):
            if not table.by_bytes:
                self._mark_dirty(table)

    def change(self, mapping: Mapping, word: bytes, item: CachedRow | None) -> None:
        """Note that a row is another one from the next commit on: `item`, or None where it is not known.

        Other mappings than the one through which it was written may show the same row under other keys.
        """
        for other in self._of_source.get(mapping.source, ()):
            if other.mapping is mapping:
                old = other.items.pop(word, None)
                if old is not None:
                    self.size -= len(word) + len(old[HIT]) + OVERHEAD
                if word in other.planned:
                    old = other.planned[word]
                    other.planned[word] = None
                    if old is not None:
                        self.size -= len(word) + len(old[HIT]) + OVERHEAD
                if other.missing:
                    self.appeared(other, word)
                other.changed[word] = None if other.dirty else item
            else:
                self._mark_dirty(other)

    def change_all(self, table: CachedTable, written: dict[bytes, CachedRow]) -> None:
        """Note that planned commands have written rows, as `change` does; `written`: the rows, by planned words."""
        tables = self._of_source.get(table.mapping.source, ())
        if len(tables) != 1 or tables[0] is not table or table.dirty:
            for word, row in written.items():
                self.change(table.mapping, word, row)
            return
        planned = table.planned
        freed = 0
        for word in written:
            old = planned.pop(word, None)
            if old is not None:
                freed += len(word) + len(old[HIT]) + OVERHEAD
            if table.missing:
                self.appeared(table, word)
        self.size -= freed
        table.changed.update(written)

    def change_batch(self, table: CachedTable, written: dict[bytes, CachedRow]) -> None:
        """Note the rows that the commit of a batch leaves, as `change` does: ABSENT for those that the next get reads.

        The numbers of the rows in the file are unknown: the batch has found them by their keys.
        """
        for tables in self._of_source.get(table.mapping.source, ()):
            if tables is not table or table.dirty or table.planned:
                for word, row in written.items():
                    self.change(table.mapping, word, _unnumbered(row))
                return
        items, changed = table.items, table.changed
        freed = 0
        for word, row in written.items():
            old = items.pop(word, None)
            if old is not None:
                freed += len(word) + len(old[HIT]) + OVERHEAD
            if table.missing:
                self.appeared(table, word)
            changed[word] = _unnumbered(row)
        self.size -= freed

    def appeared(self, table: CachedTable, word: bytes) -> None:
        """Forget that a key, and those that are equal to it, have no row."""
        if not table.by_bytes:
            self._drop_missing(table)
        elif word in table.missing:
            table.missing.remove(word)
            self._count_missing(-len(word) - MISSING_OVERHEAD)

    def committed(self, *, lost: bool) -> None:
        """Handle a commit: the written rows are being synced to disk or, if the commit failed, lost."""
        for table in self._tables.values():
            changed, table.changed = table.changed, {}
            if not lost:
                if table.syncing:
                    table.syncing.update(changed)
                else:
                    table.syncing = changed
                table.dirty_syncing = table.dirty_syncing or table.dirty
            table.dirty = False

    def synced(self, *, lost: bool) -> None:
        """Cache the written rows, which are on disk now; if the sync failed, the next get queries the file."""
        for table in self._tables.values():
            syncing, table.syncing = table.syncing, {}
            table.dirty_syncing = False
            if not syncing or lost or table.dirty:
                continue
            changed, planned = table.changed, table.planned
            fresh: dict[bytes, CachedRow] = {}
            size = 0
            for word, item in syncing.items():
                if item is None or word in changed or len(item[HIT]) > MAX_CACHED:
                    continue
                if word not in planned:
                    fresh[word] = item
                    size += len(word) + len(item[HIT]) + OVERHEAD
                elif planned[word] is None:
                    self.set_planned(table, word, item)
            if table.live and self.size + size <= self.limit:
                table.items.update(fresh)
                self.size += size
            else:
                for word, item in fresh.items():
                    self.put(table, word, item)

    def clear(self) -> None:
        """Forget all items: others have written."""
        self.clears += 1
        for table in self._tables.values():
            table.items.clear()
            table.missing.clear()
            table.syncing = dict.fromkeys(table.syncing)
            table.planned = dict.fromkeys(table.planned)
        self.size = self._missing = 0

    def renew(self) -> None:
        """Keep the rows, but no table in use: whoever has one gets another, since settings may have changed."""
        for table in self._tables.values():
            self._drop_planned(table)
        renewed = [new for table in self._tables.values() if (new := table.renewed()) is not None]
        self._tables = {table.mapping: table for table in renewed}
        self._of_source = {}
        for table in renewed:
            self._of_source.setdefault(table.mapping.source, []).append(table)

    def retire(self) -> None:
        """Forget the tables too: they, or their mappings, are others now."""
        self.clear()
        for table in self._tables.values():
            table.live = False
        self._tables.clear()
        self._of_source.clear()

    def _mark_dirty(self, table: CachedTable) -> None:
        """Note that any row may have changed in another way than through this mapping."""
        if table.dirty:
            return  # nothing has been cached since
        for word in list(table.items):
            self.drop(table, word)
        self._drop_missing(table)
        table.changed = dict.fromkeys(table.changed)
        table.syncing = dict.fromkeys(table.syncing)
        self._drop_planned(table)
        table.dirty = True

    def _mark_all_dirty(self) -> None:
        for table in self._tables.values():
            self._mark_dirty(table)
