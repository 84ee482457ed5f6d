"""Gets answered from rows that are kept, if these are as new as the server is; others by SELECT."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

from kvref.engine.mapping import Mapping as TableMapping
from kvref.engine.plans.plan import ABSENT, CachedRow
from kvref.errors import StoreError
from kvref.server.executors.mysql.pool import DedicatedConnection
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.binlog.eligibility import Terms, terms
from kvref.storage.mysql.binlog.follower import Follower
from kvref.storage.mysql.binlog.local_log import Mark
from kvref.storage.mysql.binlog.positions import LogError, Position, executed
from kvref.storage.mysql.binlog.row_cache import CachedTable, RowCache
from kvref.storage.mysql.cached_rows import shown_for
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.plans import Found, MySQLRows
from kvref.storage.mysql.row_identity import StoredKey
from kvref.storage.mysql.store import MySQLStore

# Seconds that a group waits for the follower: about what a SELECT takes.
PATIENCE: Final = 0.002
# Seconds after which the position that decides what is kept is read again, where no kept row needs it.
MAX_AGE: Final = 0.01


class _Group(NamedTuple):
    """Gets of one mapping.

    Args:
        rows: of the mapping.
        cached: its kept rows.
        words: by what a row is kept under; the word itself where only the server knows that.
        repeated: words that are requested once more, by what they are kept under.
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
    """Answer from kept rows, and keep what is read.

    One group runs at a time.

    Args:
        store: whose rows.
        connection: a dedicated connection, to the server whose log is followed.
        isolation: isolation settings; the level may change.
        cache: of the server's rows.
        follower: keeps the cache up to date; it ends with the reader.
        width: returns how many rows of a mapping one SELECT may read; a group may have more words.
    """

    def __init__(
        self,
        store: MySQLStore,
        connection: DedicatedConnection,
        isolation: Isolation,
        cache: RowCache,
        follower: Follower,
        width: Callable[[TableMapping], int],
    ) -> None:
        self._store = store
        self._connection = connection
        self._isolation = isolation
        self._cache = cache
        self._follower = follower
        self._width = width
        self._executed: Position | None = None
        self._executed_at = 0.0
        self._covered: Position | None = None  # the last one that kept rows were found to be as new as
        self._commit = -1  # the store's last commit before that query

    async def read(self, rows: MySQLRows, words: list[bytes]) -> tuple[Mapping[bytes, CachedRow], Set[bytes]]:
        """Return the rows of some words, see `read_parts`, from kept rows as far as they are new enough.

        Args:
            rows: of the mapping.
            words: of all gets; one that is there twice counts twice.
        """
        kept = rows.cached
        cached = None if kept is None else self._open(kept.table())
        width = self._width(rows.mapping)
        if kept is None or cached is None:
            self._cache.misses += len(words)
            read: tuple[Mapping[bytes, CachedRow], Set[bytes]] = await self._connection.call(
                read_parts, rows, [*dict.fromkeys(words)], width
            )
            return read
        spellings = {word: kept.stored_key(word) for word in words}
        keys = {word: word if spelling is None else spelling for word, spelling in spellings.items()}
        sought = {key: word for word, key in keys.items()}
        repeated: list[StoredKey] = []
        if len(words) > len(sought):
            again = Counter(map(keys.__getitem__, words))
            again.subtract(sought.keys())
            repeated = [*again.elements()]
        found = await self._answer(_Group(rows, cached, sought, repeated, width))
        shown = dict.fromkeys(words, ABSENT)
        for word, key in keys.items():
            row = found.get(key)
            if row is not None:
                shown[word] = shown_for(row, word)
        return shown, set()

    def may_show(self, cached: CachedTable) -> bool:
        """Return whether kept rows may be shown now without a query; a batch of reads counts what its groups answer."""
        if self._isolation.read_batch:
            return False
        if not self._isolation.reads_committed or (self._cache.log is None and not cached.staleness):
            return False
        return self._is_new_enough(cached)

    async def close(self) -> None:
        """End the follower; no read may be running."""
        await self._follower.close()

    def _open(self, cached: CachedTable) -> CachedTable | None:
        """Return the kept rows of a table, None where none may be used just now."""
        usable = self._cache.applied is not None and self._isolation.reads_committed and not cached.refusal
        return cached if usable else None

    def _is_new_enough(self, cached: CachedTable) -> bool:
        """Return whether kept rows are as new as the server, or out of date by no more than they may be."""
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
        """Return the rows of a group, kept ones as far as they are new enough."""
        cache, rows = self._cache, group.cached.rows
        missing = [key for key in group.words if key not in rows]
        hits = [key for key in group.words if key in rows]
        began = time.monotonic()
        written = cache.written() if hits else None
        found = await self._read(group, missing, for_hits=bool(hits) and written is None)
        as_new = bool(hits) and await self._reached(written, began, len(hits))
        late = [key for key in hits if not as_new or key not in rows]
        read = {*missing, *late}
        again = sum(key in read for key in group.repeated)
        cache.hits += len(hits) - len(late) + len(group.repeated) - again
        cache.misses += len(read) + again
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
        outdated = known is None or now - self._executed_at > (cached.staleness or MAX_AGE)
        if for_hits and known is not None:
            outdated = outdated or not cached.staleness or commit != self._commit or not cache.covers(known)
        if not (outdated or missing):
            return {}
        examines = cached.refusal is None
        answer: _Read = await self._connection.call(
            _look, group, missing, outdated or examines, cache.staleness if examines else None
        )
        if answer.executed is not None:
            if known is not None and not answer.executed.covers(known):
                cache.end()  # the log was reset, and numbers come again
                self._follower.reconnect()
            self._executed, self._executed_at = answer.executed, now
            self._commit = commit
        self._keep(group, answer)
        return {key: each.row for key, each in answer.rows.items()}

    def _keep(self, group: _Group, answer: _Read) -> None:
        """Keep the rows that were read, as far as it is known when."""
        cache = self._cache
        settled = None if self._executed is None else cache.settled(self._executed, self._executed_at)
        if settled is None:
            return
        if answer.terms is not None:
            cache.examined(group.cached, answer.terms, settled)
        kept = {key: each.row for key, each in answer.rows.items() if group.rows.stored_key(each) == key}
        if kept:
            cache.put(group.cached, kept, settled)

    async def _reached(self, written: Mark | None, began: float, hits: int) -> bool:
        """Return whether kept rows are as new as the server was, or become so soon.

        Args:
            written: by the server when the group began; None: what it had executed decides.
            began: when that was.
            hits: how many words wait.
        """
        cache, waited = self._cache, time.monotonic()
        executed = written or self._executed
        reached = executed is not None and await cache.reached(executed, PATIENCE)
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


def _find(connection: MySQLConnection, group: _Group, keys: Iterable[StoredKey]) -> dict[StoredKey, Found]:
    """Return the rows of some words of a group, by what they are kept under; it blocks."""
    words = {group.words[key]: key for key in keys}
    parts = [*words]
    found: dict[bytes, Found] = {}
    for at in range(0, len(parts), group.width):
        found |= group.rows.find(connection, parts[at : at + group.width])
    return {words[word]: each for word, each in found.items()}


def _look(
    connection: MySQLConnection, group: _Group, missing: list[StoredKey], queries: bool, staleness: float | None
) -> _Read:
    """Return what the server has executed, whether a mapping may be cached, and then rows; in this order.

    Args:
        connection: outside a transaction.
        group: see `_Group`.
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
            found = terms(connection.query, group.rows.mapping, staleness)
        except StoreError as error:
            found = Terms(str(error))
    return _Read(position, found, _find(connection, group, missing) if missing else {})
