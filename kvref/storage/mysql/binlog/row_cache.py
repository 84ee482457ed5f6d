"""Rows of a database server kept for gets; events of the server's binary log drop them.

A kept row reflects every transaction of `applied` that changed it. A follower adds transactions to `applied`; a reader
may use a kept row if `applied` covers what the server had executed when the request arrived. All runs in the thread of
the event loop.

The event of a transaction can arrive before readers see the transaction. A row that was read is therefore kept only if
everything that was applied to it so far was executed before the read (`RowCache.put`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Final

from kvref.engine.plans.plan import EXPIRY, FLAGS, HIT, MAX_CACHED, VALUES, CachedRow
from kvref.storage.mysql.binlog.eligibility import OPTIONS_TABLE, Terms
from kvref.storage.mysql.binlog.events import Change, KeyTypes, Table
from kvref.storage.mysql.binlog.local_log import LocalLog, Mark
from kvref.storage.mysql.binlog.positions import LogEnd, Point, Position, Settled
from kvref.storage.mysql.mapped_table import StoredKey
from kvref.storage.rows import MAX_CACHED_TABLES, evicted

_log = logging.getLogger("kvref.storage")

_OPTIONS: Final = {OPTIONS_TABLE: KeyTypes.NONE}

# Bytes in addition to key, reply and cells: two tuples, a bytes object for the key, and a slot in a dict.
OVERHEAD: Final = 33 + 56 + 100 + 80 + 56
OVERHEAD_OF_CELL: Final = 33 + 8
MAX_RECENT: Final = 256  # transactions of which it is not known yet whether readers see them


class CachedTable:
    """The kept rows of one table in one form: with the columns of one mapping, or of several that have the same.

    Attributes:
        table: schema and name, in lower case.
        types: of its keys.
        rows: by the key as the table stores it; none while they may not be used.
        refusal: why no row of it may be kept, empty if there is no reason; None: not examined since the last change of
            definitions or options.
        staleness: see `Terms`.
        live: it belongs to the cache.
    """

    def __init__(self, table: Table, types: KeyTypes) -> None:
        self.table = table
        self.types = types
        self.rows: dict[StoredKey, CachedRow] = {}
        self.refusal: str | None = None
        self.staleness = 0.0
        self.live = True


class RowCache:
    """The kept rows of one database server.

    Attributes:
        limit: bytes of rows, keys and what keeping them takes; 0 keeps nothing.
        staleness: of mappings for which no option is set, see `Terms`.
        applied: the transactions whose changes are taken into account; None while no log is followed.
        log: the files of that log; None if they are not on this machine.
        hits, misses: gets answered from it, and those for which the database was queried.
        stale: those of the misses whose row was cached and not known to be current.
        evictions: rows that others displaced.
        lag: seconds for which the last batch of gets waited for the follower.
        age: seconds between the query of the position that the last answers were compared with, and these answers:
            they are out of date by no more.
        wanted: the tables of which rows are kept, and what keys they have; replaced, never changed.
        version: grows with each table; a change that was read under an older one may lack the newer tables.
    """

    def __init__(self, limit: int, staleness: float = 0.0) -> None:
        self.limit = limit
        self.staleness = staleness
        self.size = 0
        self.applied: Position | None = None
        self.log: LocalLog | None = None
        self.hits = self.misses = self.stale = self.evictions = 0
        self.lag = self.age = 0.0
        self.version = 0
        self.wanted: Mapping[Table, KeyTypes] = _OPTIONS
        self._tables: dict[Hashable, CachedTable] = {}
        self._of_table: dict[Table, list[CachedTable]] = {}
        self._recent: list[tuple[Point, Change]] = []
        self._floor: Position | None = None  # nothing read before this was executed may be kept
        self._settled = Settled()
        self._waiting: list[tuple[Position | Mark, asyncio.Future[None]]] = []

    def numbers(self) -> dict[str, int]:
        """Return what is counted, by the names of the rows of `stats` without `row_cache_`, and `following`: 0 or 1."""
        return {
            "hits": self.hits,
            "misses": self.misses,
            "stale": self.stale,
            "evictions": self.evictions,
            "lag_us": round(self.lag * 1e6),
            "age_us": round(self.age * 1e6),
            "following": int(self.applied is not None),
        }

    def table(self, form: Hashable, table: Table, types: KeyTypes = KeyTypes.NONE) -> CachedTable:
        """Return the kept rows of a table in one form, the same for what reads the same cells in the same way."""
        found = self._tables.get(form)
        if found is None:
            if len(self._tables) >= MAX_CACHED_TABLES:
                self.clear()
                for each in self._tables.values():
                    each.live = False
                self._tables.clear()
                self._of_table.clear()
            schema, name = table
            found = self._tables[form] = CachedTable((schema.lower(), name.lower()), types)
            self._of_table.setdefault(found.table, []).append(found)
            # The follower, in its thread, reads the version first.
            self.wanted = _OPTIONS | {
                each: reduce(or_, [cached.types for cached in forms]) for each, forms in self._of_table.items()
            }
            self.version += 1
            self._raise_floor()
        return found

    def begin(self, applied: Position, log: LocalLog | None = None) -> None:
        """Keep rows from now on: a follower has begun behind a position. The cache closes the log."""
        self.end()
        self.applied, self.log = applied, log
        self._settled = Settled()
        self._raise_floor()  # a read may have begun before

    def end(self) -> None:
        """Keep nothing: no log is followed any more."""
        self.clear()
        self.applied = None
        if self.log is not None:
            self.log.close()
            self.log = None

    def take(self, change: Change | None, version: int, end: LogEnd | None = None) -> None:
        """Drop what a transaction has changed, if any; changes come in the order of the log.

        `version`: of the cache when its events were read. `end`: of what was read; None where the log does not say it.
        """
        if self.applied is None:
            return
        if change is not None:
            self._apply(change, version, self.applied)
        if self.log is not None and end is not None:
            self.log.read_to(end)
        self._notify()

    def _apply(self, change: Change, version: int, applied: Position) -> None:
        retires = change.everything or OPTIONS_TABLE in change.keys
        everything = retires or version != self.version
        if everything:
            self.clear(retire=retires)
        else:
            for table, keys in change.keys.items():
                for cached in self._of_table.get(table, ()):
                    self._drop(cached, keys)
        if change.point is None:
            if everything or change.keys:
                self._raise_floor()  # a transaction without a number
            return
        applied.add(change.point)
        if change.transaction:
            self._settled.passed(change.point)
        if everything or change.keys:
            self._recent.append((change.point, change._replace(everything=everything)))
            if len(self._recent) > MAX_RECENT:
                self._raise_floor()

    def written(self) -> Mark | None:
        """Return what `covers` must hold of for kept rows that are as new as the server is now; None: it is unknown."""
        return None if self.log is None else self.log.written()

    def covers(self, executed: Position | Mark) -> bool:
        """Return whether kept rows are as new as this position."""
        if isinstance(executed, Mark):
            return self.log is not None and self.log.has_read(executed)
        return self.applied is not None and self.applied.covers(executed)

    async def reached(self, executed: Position | Mark, seconds: float) -> bool:
        """Return whether kept rows are as new as a position, at most so many seconds later."""
        if self.covers(executed):
            return True
        if self.applied is None:
            return False
        future = asyncio.get_running_loop().create_future()
        waiter = executed, future
        self._waiting.append(waiter)
        try:
            await asyncio.wait({future}, timeout=seconds)
        finally:
            self._waiting.remove(waiter)
        return self.covers(executed)

    def settled(self, executed: Position, at: float) -> Position | None:
        """Return what readers see for certain of what the server has executed, see `Settled.of`."""
        return self._settled.of(executed, at)

    def examined(self, cached: CachedTable, terms: Terms, executed: Position) -> None:
        """Take the terms of a mapping, unless definitions or options may have changed since the position `executed`."""
        if self._is_current(cached.table, None, executed):
            if terms.refusal and not terms.chosen:
                _log.warning("rows of %s.%s are not cached: %s", *cached.table, terms.refusal)
            cached.refusal, cached.staleness = terms.refusal, terms.staleness

    def put(self, cached: CachedTable, rows: Mapping[StoredKey, CachedRow], executed: Position) -> None:
        """Keep rows, by the key as the table stores it, that no change has overtaken.

        `executed`: the position of the server before they were read.
        """
        if cached.refusal != "" or self.applied is None or not cached.live:
            return
        self._recent = [each for each in self._recent if not executed.has(each[0])]
        if self._floor is not None and executed.covers(self._floor):
            self._floor = None
        if self._floor is not None:
            return
        for word, row in rows.items():
            if word not in cached.rows and self._is_current(cached.table, word, executed):
                self._put(cached, word, row)

    def clear(self, *, retire: bool = True) -> None:
        for cached in self._tables.values():
            cached.rows.clear()
            if retire:
                cached.refusal = None
        self.size = 0

    def _is_current(self, table: Table, word: StoredKey | None, executed: Position) -> bool:
        """Return whether nothing that was applied to a row, or to definitions, is missing in what was executed."""
        if self._floor is not None and not executed.covers(self._floor):
            return False
        for point, change in self._recent:
            if not change.everything:
                if word is None or table not in change.keys:
                    continue
                keys = change.keys[table]
                if keys is not None and word not in keys:
                    continue
            if not executed.has(point):
                return False
        return True

    def _raise_floor(self) -> None:
        """Require of later fills that they see all that is applied by now."""
        self._recent.clear()
        self._floor = None if self.applied is None else self.applied.copy()

    def _put(self, cached: CachedTable, word: StoredKey, row: CachedRow) -> None:
        size = _size(word, row)
        if size > min(self.limit, MAX_CACHED):
            return
        if self.size + size > self.limit:
            self._make_room(cached, size)
        cached.rows[word] = row
        self.size += size

    def _make_room(self, cached: CachedTable, size: int) -> None:
        for table in (cached, *self._tables.values()):
            while self.size + size > self.limit and table.rows:
                leaving = evicted(table.rows)
                self._drop(table, leaving)
                self.evictions += len(leaving)

    def _drop(self, cached: CachedTable, keys: Iterable[StoredKey] | None) -> None:
        for word in list(cached.rows) if keys is None else keys:
            if word in cached.rows:
                self.size -= _size(word, cached.rows.pop(word))

    def _notify(self) -> None:
        for executed, future in self._waiting:
            if not future.done() and self.covers(executed):
                future.set_result(None)


def _size(word: StoredKey, row: CachedRow) -> int:
    cells = row[HIT], *(row[VALUES] or ()), *row[FLAGS : EXPIRY + 1]
    # A text may take four bytes for each character.
    content = sum(
        [
            OVERHEAD_OF_CELL + (len(each) if isinstance(each, bytes) else 4 * len(each) if isinstance(each, str) else 0)
            for each in cells
            if each is not None
        ]
    )
    return (len(word) if isinstance(word, bytes) else 0) + content + OVERHEAD
