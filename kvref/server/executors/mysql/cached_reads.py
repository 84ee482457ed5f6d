"""Gets answered from rows that are kept, if these are as new as the server is; others by SELECT."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from collections.abc import Mapping as MappingOf
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from kvref.engine.mapping import Kind, Mapping
from kvref.engine.operations import Cell, Row
from kvref.engine.plans.plan import ABSENT, CachedRow
from kvref.engine.values import shown_flags
from kvref.errors import StoreError
from kvref.protocol.fast_path import shown
from kvref.server.executors.loop_turn import LoopTurn
from kvref.server.executors.mysql.pool import DedicatedConnection
from kvref.server.executors.mysql.reads import CellsOfWords, Read, Rows, Shown, SQLReader, in_parts
from kvref.server.executors.mysql.shared_look import SharedLook
from kvref.storage.config.containers import Container
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.binlog.eligibility import Terms, terms
from kvref.storage.mysql.binlog.events import KeyTypes, Table
from kvref.storage.mysql.binlog.follower import Follower
from kvref.storage.mysql.binlog.local_log import Mark
from kvref.storage.mysql.binlog.positions import LogError, Position, executed
from kvref.storage.mysql.binlog.row_cache import CachedTable, Kept, RowCache
from kvref.storage.mysql.cached_rows import shown_for
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.fast_path import PlainTable
from kvref.storage.mysql.plans import Found, MySQLRows
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.statements import Statements
from kvref.storage.mysql.store import MySQLStore

K = TypeVar("K", bytes, Row)

# Seconds that a batch waits for the follower: about what a SELECT takes.
PATIENCE: Final = 0.002
# Seconds after which the position that decides what is kept is read again, where no kept row needs it.
MAX_AGE: Final = 0.01


class _Batch(NamedTuple):
    """Gets of one table in one form.

    Args:
        mapping: whose table.
        cached: its kept rows.
        read: reads those that are not kept.
        spelled: returns the key of a row as the table spells it.
        kept: returns what is kept of a row.
        turn: see `RowReader`.
    """

    mapping: Mapping
    cached: CachedTable
    read: Read
    spelled: Callable[[Any], Spelling | None]
    kept: Callable[[Any], Kept]
    turn: int


class _Found(NamedTuple):
    """What a batch has read: the position if it was queried, the terms if the mapping was examined, and rows."""

    executed: Position | None
    terms: Terms | None
    rows: tuple[dict[Any, Any], bool]


class CachingReader:
    """Answer from kept rows and keep what is read, see `RowReader`.

    One batch runs at a time.

    Args:
        reader: reads what is not kept.
        store: whose rows.
        connection: a dedicated connection, to the server whose log is followed.
        isolation: isolation settings; the level may change.
        cache: of the server's rows.
        follower: keeps the cache up to date; it ends with the reader.
        width: returns how many rows of a mapping one SELECT may read; a batch may have more keys.
    """

    def __init__(
        self,
        reader: SQLReader,
        store: MySQLStore,
        connection: DedicatedConnection,
        isolation: Isolation,
        cache: RowCache,
        follower: Follower,
        width: Callable[[Mapping], int],
    ) -> None:
        self._reader = reader
        self._store = store
        self._connection = connection
        self._isolation = isolation
        self._cache = cache
        self._follower = follower
        self._width = width
        self._executed: Position | None = None
        self._executed_at = 0.0
        self._executed_in = 0  # the turn that began with the query for it
        self._covered: Position | None = None  # the last one that kept rows were found to be as new as
        self._commit = -1  # the store's last commit before that query
        self._plain: tuple[PlainTable, CachedTable] | None = None  # of the last batch
        self._mapped: tuple[Statements, CachedTable] | None = None  # the same of rows
        self._look = SharedLook(cache)
        self.turn = 0

    async def rows(self, mapping: Mapping, keys: MappingOf[Spelling, Cell], turn: int) -> Rows:
        """See `RowReader`."""
        cached = self._open(self._rows_of(mapping))
        read = in_parts(self._reader.rows_of(mapping, keys), self._width(mapping))
        if cached is None:
            self._cache.misses += len(keys)
            rows: Rows = await self._connection.call(read, [*keys])
            return rows
        identities = self._store.identities(mapping)
        batch = _Batch(mapping, cached, read, lambda row: identities.spelled(row.key), _same, turn)
        return await self._answer(batch, [*keys])

    def hit(self, table: PlainTable, word: bytes, loop_turn: LoopTurn | None) -> bytes | None:
        """See `KeptRows`."""
        cached = self._cells_of(table)
        found = cached.rows.get(word)
        if not isinstance(found, bytes) or not (self._look.holds or self._is_new_enough(cached, loop_turn)):
            return None
        self._cache.hits += 1
        return found

    def hits(self, table: PlainTable, words: list[bytes]) -> list[bytes] | None:
        """See `KeptRows`."""
        return self._kept(self._cells_of(table), words, bytes)

    def hit_rows(self, mapping: Mapping, keys: list[Spelling]) -> list[Row] | None:
        """See `KeptRows`."""
        return self._kept(self._rows_of(mapping), keys, Row)

    def _kept(self, cached: CachedTable, keys: Sequence[Spelling], kind: type[K]) -> list[K] | None:
        """Return what is kept of some keys, None if that is not of one kind, or may not be used without a query."""
        if self._cache.log is None and not cached.staleness:
            return None
        found: list[K] = []
        for key in keys:
            row = cached.rows.get(key)
            if not isinstance(row, kind):
                return None
            found.append(row)
        if not self._is_new_enough(cached):
            return None
        self._cache.hits += len(found)
        return found

    async def cells(self, table: PlainTable, words: list[bytes], turn: int) -> Shown:
        """See `RowReader`."""
        mapping = table.mapping
        cached = self._open(self._cells_of(table))
        read = in_parts(partial(_cells, table), self._width(mapping))
        if cached is None:
            self._cache.misses += len(words)
            found: Shown = await self._connection.call(read, [*dict.fromkeys(words)])
            return found
        batch = _Batch(mapping, cached, read, lambda cells: cells[0], partial(_reply, table), turn)
        return await self._answer(batch, words)

    async def planned(self, rows: MySQLRows, words: list[bytes]) -> tuple[MappingOf[bytes, CachedRow], Set[bytes]]:
        """Return the rows of some words, see `read_parts`, from kept rows as far as they are new enough."""
        kept = rows.kept
        cached = None if kept is None else self._open(kept.table())
        width = self._width(rows.mapping)
        if kept is None or cached is None:
            self._cache.misses += len(words)
            read: tuple[MappingOf[bytes, CachedRow], Set[bytes]] = await self._connection.call(
                read_parts, rows, words, width
            )
            return read
        spellings = {word: kept.spelling(word) for word in words}
        keys = {word if spelling is None else spelling: word for word, spelling in spellings.items()}
        plan = partial(_planned, rows, keys)
        batch = _Batch(rows.mapping, cached, in_parts(plan, width), rows.spelled, _row, self.turn)
        found, _ = await self._answer(batch, [*keys])
        shown = dict.fromkeys(words, ABSENT)
        for word, spelling in spellings.items():
            row = found.get(word if spelling is None else spelling)
            if row is not None:
                shown[word] = shown_for(row.row if isinstance(row, Found) else row, word)
        return shown, set()

    def may_show(self, cached: CachedTable) -> bool:
        """Return whether kept rows may be shown now without a query."""
        if not self._isolation.reads_committed or (self._cache.log is None and not cached.staleness):
            return False
        return self._is_new_enough(cached)

    async def close(self) -> None:
        """See `RowReader`."""
        await self._follower.close()
        await self._reader.close()

    def _rows_of(self, mapping: Mapping) -> CachedTable:
        statements = self._store.statements(mapping)  # others where the mapping has changed
        if self._mapped is not None and self._mapped[0] is statements and self._mapped[1].live:
            return self._mapped[1]
        columns = mapping.key, mapping.values, mapping.flags, mapping.cas, mapping.expiry
        form = mapping.name, statements.select, columns
        cached = self._cache.table(form, _table(mapping), _types(mapping))
        self._mapped = statements, cached
        return cached

    def _cells_of(self, table: PlainTable) -> CachedTable:
        if self._plain is not None and self._plain[0] is table and self._plain[1].live:
            return self._plain[1]
        mapping = table.mapping
        cached = self._cache.table((mapping.name, table.select), _table(mapping), _types(mapping))
        self._plain = table, cached
        return cached

    def _open(self, cached: CachedTable) -> CachedTable | None:
        """Return the kept rows of a table, None where none may be used just now."""
        usable = self._cache.applied is not None and self._isolation.reads_committed and not cached.refusal
        return cached if usable else None

    def _is_new_enough(self, cached: CachedTable, loop_turn: LoopTurn | None = None) -> bool:
        """Return whether kept rows are as new as the server, or out of date by no more than they may be."""
        cache, log = self._cache, self._cache.log
        if log is not None and log.is_read():
            cache.age = 0.0
            if loop_turn is not None:
                self._look.share(loop_turn)
            return True
        if not cached.staleness or self._store.last_commit != self._commit:
            return False
        age = time.monotonic() - self._executed_at
        if age > cached.staleness or self._executed is None:
            return False
        if self._covered is not self._executed:
            if not cache.covers(self._executed):
                return False
            self._covered = self._executed
        cache.age = age
        return True

    async def _answer(self, batch: _Batch, keys: list[Any]) -> tuple[dict[Any, Any], bool]:
        cache, rows = self._cache, batch.cached.rows
        missing = [key for key in keys if key not in rows]
        hits = [key for key in keys if key in rows] if missing else keys
        began = time.monotonic()
        written = cache.written() if hits else None
        found, certain = await self._read(batch, [*dict.fromkeys(missing)], for_hits=bool(hits) and written is None)
        as_new = bool(hits) and await self._reached(written, began, len(hits))
        late = [key for key in hits if not as_new or key not in rows]
        cache.hits += len(hits) - len(late)
        cache.misses += len(missing) + len(late)
        if not missing and not late:
            return rows, False  # a key that leaves it meanwhile may have a row
        if as_new:
            found |= {key: rows[key] for key in hits if key in rows}
        if late:
            more, rest_certain = await self._connection.call(batch.read, [*dict.fromkeys(late)])
            return found | more, certain and rest_certain
        return found, certain

    async def _read(self, batch: _Batch, missing: list[Any], *, for_hits: bool) -> tuple[dict[Any, Any], bool]:
        """Read rows, and what the server has executed where that is not known well enough."""
        now, cache, cached = time.monotonic(), self._cache, batch.cached
        known = self._executed
        commit = self._store.last_commit
        if not (for_hits or missing):
            return {}, True
        outdated = known is None or now - self._executed_at > (cached.staleness or MAX_AGE)
        if for_hits and known is not None and batch.turn >= self._executed_in:
            outdated = outdated or not cached.staleness or commit != self._commit or not cache.covers(known)
        if not (outdated or missing):
            return {}, True
        examines = cached.refusal is None
        queries = outdated or examines
        if queries:
            self.turn += 1
        began = self.turn
        answer: _Found = await self._connection.call(
            _look, batch, missing, queries, cache.staleness if examines else None
        )
        if answer.executed is not None:
            if known is not None and not answer.executed.covers(known):
                cache.end()  # the log was reset, and numbers come again
                self._follower.reconnect()
            self._executed, self._executed_at, self._executed_in = answer.executed, now, began
            self._commit = commit
        if self._executed is None:
            return answer.rows
        settled = cache.settled(self._executed, self._executed_at)
        if settled is None:
            return answer.rows
        if answer.terms is not None:
            cache.examined(cached, answer.terms, settled)
        kept = {key: batch.kept(row) for key, row in answer.rows[0].items() if batch.spelled(row) == key}
        if kept:
            cache.keep(cached, kept, settled)
        return answer.rows

    async def _reached(self, written: Mark | None, began: float, hits: int) -> bool:
        """Return whether kept rows are as new as the server was, or become so soon.

        Args:
            written: by the server when the batch began; None: what it had executed decides.
            began: when that was.
            hits: how many keys wait.
        """
        cache, waited = self._cache, time.monotonic()
        executed = written or self._executed
        reached = executed is not None and await cache.reached(executed, PATIENCE)
        now = time.monotonic()
        cache.lag = now - waited
        if reached:
            cache.age = now - (began if written else self._executed_at)
        else:
            cache.behind += hits
        return reached


def read_parts(
    connection: MySQLConnection, rows: MySQLRows, words: list[bytes], width: int
) -> tuple[dict[bytes, CachedRow], Set[bytes]]:
    """Return the rows of any number of words, and those whose rows others may have locked; it blocks.

    Args:
        connection: see `MySQLRows.read_many`.
        rows: of the mapping.
        words: each once.
        width: of how many one statement may read the rows.
    """
    found, busy = rows.read_many(connection, words[:width])
    for at in range(width, len(words), width):
        more, busy_too = rows.read_many(connection, words[at : at + width])
        found |= more
        busy |= busy_too
    return found, busy


def _planned(
    rows: MySQLRows, words: MappingOf[Spelling, bytes], connection: MySQLConnection, keys: list[Spelling]
) -> tuple[dict[Spelling, Found], bool]:
    found = rows.find(connection, [words[each] for each in keys])
    return {key: found[words[key]] for key in keys if words[key] in found}, True


def _row(found: Found) -> Kept:
    return found.row


def _table(mapping: Mapping) -> Table:
    container = mapping.row
    assert isinstance(container, Container)
    return container.db_schema or "", container.db_table or ""


def _types(mapping: Mapping) -> KeyTypes:
    """Return which cells of a table's rows may be keys, in addition to VARCHAR and VARBINARY."""
    of = {Kind.INTEGER: KeyTypes.INTEGER, Kind.TEXT: KeyTypes.CHAR}  # a text column may be VARCHAR or CHAR
    return of.get(mapping.key.kind, KeyTypes.NONE)


def _same(row: Row) -> Row:
    return row


def _reply(table: PlainTable, cells: Cells) -> Kept:
    """Return what a get replies with a row, or its cells if that depends on the time."""
    flags, value, expiry = table.parts(cells)
    word = cells[0]
    assert word is not None, "a row without a key is not found"
    return cells if expiry else shown(word, shown_flags(flags), value)


def _cells(table: PlainTable, connection: MySQLConnection, keys: list[bytes]) -> CellsOfWords:
    return table.read(connection, keys)


def _look(
    connection: MySQLConnection, batch: _Batch, missing: list[Any], queries: bool, staleness: float | None
) -> _Found:
    """Return what the server has executed, whether a mapping may be cached, and then rows; in this order.

    Args:
        connection: outside a transaction.
        batch: see `_Batch`.
        missing: the keys to read.
        queries: the position is needed.
        staleness: see `terms`; None: the mapping is not examined.
    """
    position, found = None, None
    if queries:
        try:
            position = executed(connection.cells, connection.mariadb)
        except LogError:
            staleness = None  # it cannot be compared: nothing is kept
    if staleness is not None:
        try:
            found = terms(connection.say, batch.mapping, staleness)
        except StoreError as error:
            found = Terms(str(error))
    return _Found(position, found, batch.read(connection, missing) if missing else ({}, True))
