"""Gets answered from cached rows that are current; others by SELECT."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

from kvref.engine.plans.plan import ABSENT, CachedRow
from kvref.errors import StoreError
from kvref.server.executors.mysql.pool import DedicatedConnection
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.binlog.eligibility import Terms, terms
from kvref.storage.mysql.binlog.follower import Follower
from kvref.storage.mysql.binlog.local_log import Mark
from kvref.storage.mysql.binlog.positions import LogError, Position, executed
from kvref.storage.mysql.binlog.row_cache import CachedTable, RowCache
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.mapped_table import StoredKey
from kvref.storage.mysql.planned_rows import Found, MySQLRows, shown_for
from kvref.storage.mysql.store import MySQLStore

# Seconds that a group waits for the follower: about what a SELECT takes.
MAX_WAIT: Final = 0.002
# Seconds after which the position that decides what is cached is read again, where no cached row needs it.
MAX_POSITION_AGE: Final = 0.01


class _Group(NamedTuple):
    """Gets of one mapping.

    Args:
        rows: of the mapping.
        cached: its cached rows.
        words: by cache key of the row; by the word itself where only the server knows the row.
        repeated: cache keys of words that are requested once more.
        width: of how many words one statement may read the rows.
    """

    rows: MySQLRows
    cached: CachedTable
    words: Mapping[StoredKey, bytes]
    repeated: Sequence[StoredKey]
    width: int


class _Read(NamedTuple):
    """What a group has read: the position if it was queried, the terms if the mapping was examined, and rows."""

    executed: Position | None
    terms: Terms | None
    rows: dict[StoredKey, Found]


class CachingReader:
    """Answer from cached rows, and cache what is read; one group runs at a time.

    Args:
        connection: a dedicated connection, to the server whose log is followed.
        isolation: its level may change later.
        width: returns how many rows of a mapping one SELECT may read; a group may have more words.
    """

    def __init__(
        self,
        store: MySQLStore,
        connection: DedicatedConnection,
        isolation: Isolation,
        cache: RowCache,
        width: Callable[[MySQLRows], int],
    ) -> None:
        self._store = store
        self._connection = connection
        self._isolation = isolation
        self._cache = cache
        self._follower = Follower(store.login, cache)
        self._width = width
        self._executed: Position | None = None
        self._executed_at = 0.0
        self._covered: Position | None = None  # the last one that cached rows were found to cover
        self._commit = -1  # the store's last commit before that query

    async def read(self, rows: MySQLRows, words: list[bytes]) -> tuple[Mapping[bytes, CachedRow], Set[bytes]]:
        """Return the rows of the words of all gets, see `read_parts`, from cached rows as far as they are current."""
        keys_of = rows.cached
        cached = None if keys_of is None else keys_of.table()
        if self._cache.applied is None or not self._isolation.reads_committed or (cached and cached.refusal):
            cached = None  # no cached row may be used just now
        width = self._width(rows)
        if keys_of is None or cached is None:
            self._cache.misses += len(words)
            read: tuple[Mapping[bytes, CachedRow], Set[bytes]] = await self._connection.call(
                read_parts, rows, [*dict.fromkeys(words)], width
            )
            return read
        spellings = {word: keys_of.stored_key(word) for word in words}
        keys = {word: word if spelling is None else spelling for word, spelling in spellings.items()}
        sought = {key: word for word, key in keys.items()}
        repeated: list[StoredKey] = []
        if len(words) > len(sought):
            more = Counter(map(keys.__getitem__, words))
            more.subtract(sought.keys())
            repeated = [*more.elements()]
        found = await self._answer(_Group(rows, cached, sought, repeated, width))
        shown = dict.fromkeys(words, ABSENT)
        for word, key in keys.items():
            row = found.get(key)
            if row is not None:
                shown[word] = shown_for(row, word)
        return shown, set()

    def may_show(self, cached: CachedTable) -> bool:
        """Return whether cached rows may be shown without a query; a batch of reads counts what its groups answer."""
        if self._isolation.read_batch:
            return False
        if not self._isolation.reads_committed or (self._cache.log is None and not cached.staleness):
            return False
        return self._is_fresh(cached)

    async def close(self) -> None:
        """End the follower; no read may be running."""
        await self._follower.close()

    def _is_fresh(self, cached: CachedTable) -> bool:
        """Return whether cached rows are current, or out of date by no more than they may be."""
        cache, log = self._cache, self._cache.log
        if log is not None and log.is_read():
            cache.age = 0.0
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

    async def _answer(self, group: _Group) -> Mapping[StoredKey, CachedRow]:
        """Return the rows of a group, cached ones as far as they are current."""
        cache, rows = self._cache, group.cached.rows
        missing = [key for key in group.words if key not in rows]
        hits = [key for key in group.words if key in rows]
        began = time.monotonic()
        written = cache.written() if hits else None
        found = await self._read(group, missing, for_hits=bool(hits) and written is None)
        as_new = bool(hits) and await self._wait_until_current(written, began, len(hits))
        late = [key for key in hits if not as_new or key not in rows]
        read = {*missing, *late}
        reread = sum(key in read for key in group.repeated)
        cache.hits += len(hits) - len(late) + len(group.repeated) - reread
        cache.misses += len(read) + reread
        if as_new:
            found |= {key: rows[key] for key in hits if key in rows}
        if late:
            more = await self._connection.call(_find, group, late)
            found |= {key: each.row for key, each in more.items()}
        return found

    async def _read(self, group: _Group, missing: list[StoredKey], *, for_hits: bool) -> dict[StoredKey, CachedRow]:
        """Read rows, and what the server has executed where that is not known well enough."""
        now, cache, cached = time.monotonic(), self._cache, group.cached
        known = self._executed
        commit = self._store.last_commit
        if not (for_hits or missing):
            return {}
        outdated = known is None or now - self._executed_at > (cached.staleness or MAX_POSITION_AGE)
        if for_hits and known is not None:
            outdated = outdated or not cached.staleness or commit != self._commit or not cache.covers(known)
        if not (outdated or missing):
            return {}
        examines = cached.refusal is None
        answer: _Read = await self._connection.call(
            _query, group, missing, outdated or examines, cache.staleness if examines else None
        )
        if answer.executed is not None:
            if known is not None and not answer.executed.covers(known):
                cache.end()  # the log was reset, and numbers are reused
                self._follower.reconnect()
            self._executed, self._executed_at = answer.executed, now
            self._commit = commit
        self._store_rows(group, answer)
        return {key: each.row for key, each in answer.rows.items()}

    def _store_rows(self, group: _Group, answer: _Read) -> None:
        """Cache the rows that were read, if the position at which they were read is known."""
        cache = self._cache
        settled = None if self._executed is None else cache.settled(self._executed, self._executed_at)
        if settled is None:
            return
        if answer.terms is not None:
            cache.examined(group.cached, answer.terms, settled)
        rows = {key: each.row for key, each in answer.rows.items() if group.rows.stored_key(each) == key}
        if rows:
            cache.put(group.cached, rows, settled)

    async def _wait_until_current(self, written: Mark | None, began: float, hits: int) -> bool:
        """Return whether cached rows are current, or become so within MAX_WAIT.

        Args:
            written: by the server when the group began; None: what it had executed decides.
            began: when that was.
            hits: number of words that wait.
        """
        cache, waited = self._cache, time.monotonic()
        executed = written or self._executed
        reached = executed is not None and await cache.reached(executed, MAX_WAIT)
        now = time.monotonic()
        cache.lag = now - waited
        if reached:
            cache.age = now - (began if written else self._executed_at)
        else:
            cache.stale += hits
        return reached


def read_parts(
    connection: MySQLConnection, rows: MySQLRows, words: list[bytes], width: int
) -> tuple[dict[bytes, CachedRow], Set[bytes]]:
    """Return rows of different words, `width` with each statement, and the words whose rows may be locked."""
    found, busy = rows.read_many(connection, words[:width])
    for at in range(width, len(words), width):
        more, busy_too = rows.read_many(connection, words[at : at + width])
        found |= more
        busy |= busy_too
    return found, busy


def _find(connection: MySQLConnection, group: _Group, keys: Iterable[StoredKey]) -> dict[StoredKey, Found]:
    """Return the rows of some words of a group, by cache key; it blocks."""
    words = {group.words[key]: key for key in keys}
    parts = [*words]
    found: dict[bytes, Found] = {}
    for at in range(0, len(parts), group.width):
        found |= group.rows.find(connection, parts[at : at + group.width])
    return {words[word]: each for word, each in found.items()}


def _query(
    connection: MySQLConnection, group: _Group, missing: list[StoredKey], queries: bool, staleness: float | None
) -> _Read:
    """Return what the server has executed if `queries`, whether the mapping may be cached, and then the missing rows.

    Args:
        connection: outside a transaction.
        staleness: see `terms`; None: the mapping is not examined.
    """
    position, found = None, None
    if queries:
        try:
            position = executed(connection.cells, connection.mariadb)
        except LogError:
            staleness = None  # it cannot be compared: nothing is cached
    if staleness is not None:
        try:
            found = terms(connection.query, group.rows.mapping, staleness)
        except StoreError as error:
            found = Terms(str(error))
    return _Read(position, found, _find(connection, group, missing) if missing else {})
