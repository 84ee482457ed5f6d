"""Gets answered from rows that are kept, if these are as new as the server is; others by SELECT."""

from __future__ import annotations

import time
from collections.abc import Mapping as MappingOf
from typing import Final, NamedTuple

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell
from kvref.errors import StoreError
from kvref.server.executors.mysql.pool import DedicatedConnection
from kvref.server.executors.mysql.reads import CellsOfWords, RowReader, Rows
from kvref.storage.config.containers import Container
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.binlog.eligibility import refusal
from kvref.storage.mysql.binlog.follower import Follower
from kvref.storage.mysql.binlog.positions import LogError, Position, executed
from kvref.storage.mysql.binlog.row_cache import CachedTable, RowCache
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.fast_path import PlainTable
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Spelling

# Seconds that a batch waits for the follower: about what a SELECT takes.
PATIENCE: Final = 0.002
# Seconds after which the position that decides what is kept is read again, where no kept row needs it.
MAX_AGE: Final = 0.01


class _Found(NamedTuple):
    """What a batch has read: the position if it was queried, a refusal if the table was examined, and rows."""

    executed: Position | None
    refusal: str | None
    cells: CellsOfWords


class CachingReader:
    """Answer from kept rows and keep what is read, see `RowReader`.

    One batch runs at a time.

    Args:
        reader: reads what is not kept.
        connection: a dedicated connection, to the server whose log is followed.
        isolation: isolation settings; the level may change.
        cache: of the server's rows.
        follower: keeps the cache up to date; it ends with the reader.
    """

    def __init__(
        self,
        reader: RowReader,
        connection: DedicatedConnection,
        isolation: Isolation,
        cache: RowCache,
        follower: Follower,
    ) -> None:
        self._reader = reader
        self._connection = connection
        self._isolation = isolation
        self._cache = cache
        self._follower = follower
        self._executed: Position | None = None
        self._executed_at = 0.0

    async def rows(self, mapping: Mapping, keys: MappingOf[Spelling, Cell]) -> Rows:
        """See `RowReader`."""
        return await self._reader.rows(mapping, keys)

    async def cells(self, table: PlainTable, words: list[bytes]) -> CellsOfWords:
        """See `RowReader`."""
        cache, container = self._cache, table.mapping.row
        assert isinstance(container, Container)
        if cache.applied is None or not self._isolation.reads_committed:
            cache.misses += len(words)
            return await self._reader.cells(table, words)
        cached = cache.table(table.select, (container.db_schema or "", container.db_table or ""))
        if cached.refusal:
            cache.misses += len(words)
            return await self._reader.cells(table, words)
        hits = [word for word in words if word in cached.rows]
        missing = words if not hits else [word for word in words if word not in cached.rows]
        found, certain = await self._read(table, cached, missing, for_hits=bool(hits))
        late = await self._take(cached, hits, found)
        cache.hits += len(hits) - len(late)
        cache.misses += len(missing) + len(late)
        if late:
            more, rest_certain = await self._reader.cells(table, late)
            return found | more, certain and rest_certain
        return found, certain

    async def close(self) -> None:
        """See `RowReader`."""
        await self._follower.close()
        await self._reader.close()

    async def _read(
        self, table: PlainTable, cached: CachedTable, missing: list[bytes], *, for_hits: bool
    ) -> CellsOfWords:
        """Read rows, and what the server has executed where that is not known well enough."""
        now, cache = time.monotonic(), self._cache
        known = self._executed
        outdated = known is None or now - self._executed_at > (cache.staleness or MAX_AGE)
        if for_hits and known is not None:
            outdated = outdated or not cache.staleness or not cache.covers(known)
        if not (outdated or missing):
            return {}, True
        examines = cached.refusal is None
        mariadb = cache.mariadb
        answer: _Found = await self._connection.call(
            _look, table, missing, mariadb if outdated or examines else None, examines
        )
        if answer.executed is not None:
            if known is not None and not answer.executed.covers(known):
                cache.end()  # the log was reset, and numbers come again
                self._follower.reconnect()
            self._executed, self._executed_at = answer.executed, now
        if self._executed is None:
            return answer.cells
        if answer.refusal is not None:
            cache.examined(cached, answer.refusal, self._executed)
        kept = {word: cells for word, cells in answer.cells[0].items() if cells[0] == word}
        if kept:
            cache.keep(cached, kept, self._executed)
        return answer.cells

    async def _take(self, cached: CachedTable, hits: list[bytes], found: dict[bytes, Cells]) -> list[bytes]:
        """Add kept rows to what was found; return the words for which there is none, or none that is new enough."""
        if not hits:
            return []
        cache, began = self._cache, time.monotonic()
        reached = self._executed is not None and await cache.reached(self._executed, PATIENCE)
        now = time.monotonic()
        cache.lag = now - began
        if not reached:
            cache.behind += len(hits)
            return hits
        cache.age = now - self._executed_at
        late = []
        for word in hits:
            cells = cached.rows.get(word)
            if cells is None:
                late.append(word)
            else:
                found[word] = cells
        return late


def _look(
    connection: MySQLConnection, table: PlainTable, words: list[bytes], mariadb: bool | None, examines: bool
) -> _Found:
    """Return what the server has executed, whether a table may be cached, and then rows; in this order."""
    position, why = None, None
    if mariadb is not None:
        try:
            position = executed(connection.say, mariadb=mariadb)
        except LogError:
            examines = False  # it cannot be compared: nothing is kept
    if examines:
        try:
            ((_, created, *_),) = connection.say(f"SHOW CREATE TABLE {table.mapping.source}")
            why = refusal(str(created), table.mapping.key.name)
        except StoreError as error:
            why = str(error)
    return _Found(position, why, table.read(connection, words) if words else ({}, True))
