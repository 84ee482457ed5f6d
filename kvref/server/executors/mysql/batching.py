"""Combine commands of many connections in common statements, if each command is a transaction of its own.

While a statement runs, the look-ups of all other connections queue; then one SELECT answers all those of a mapping
(`reads.py`). Writers share a transaction (`writes.py`). A command that is unusual, rejected, blocked by a
lock or based on outdated data runs alone (`executor.py`) and is never queued again, so that it delays no other command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from kvref.engine import operations as ports
from kvref.engine.mapping import Mapping
from kvref.errors import ConfigError
from kvref.server.executors.mysql.batch_queue import BatchQueue, Fallback
from kvref.server.executors.mysql.cached_reads import CachingReader
from kvref.server.executors.mysql.command import Command, Runner
from kvref.server.executors.mysql.fast_path import KeptRows
from kvref.server.executors.mysql.plain_commands import Plain, PlainChange, PlainGet, PlainLone, PlainRead, PlainReads
from kvref.server.executors.mysql.pool import DedicatedConnection
from kvref.server.executors.mysql.reads import ReadBatcher, RowReader, SQLReader
from kvref.server.executors.mysql.replica_reads import CurrentSecondary, ReplicaReads
from kvref.server.executors.mysql.writes import WriteBatcher
from kvref.storage.base import PRIMARY
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.binlog.follower import Follower
from kvref.storage.mysql.fast_path import PlainRemovals, PlainTable
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.store import MySQLStore
from kvref.storage.plans import bytes_of_row

About = Mapping | PlainTable | PlainRemovals  # what the commands of one batch have in common

MIN_CONNECTIONS: Final = 4  # with fewer all of them are for single commands
MIN_TOGETHER: Final = 2
MAX_BYTES: Final = 16 << 20  # of rows that one SELECT returns, if no value is longer than the longest that is counted
# Rows that are kept need no statement: so many times as many gets may be answered together.
WIDER: Final = 8
_BYTES_OF_KEY: Final = 1024  # in a statement


def dedicated_connections(store: MySQLStore, isolation: Isolation) -> int:
    """Return how many connections carry out commands of several clients together: one reads, another one writes.

    With batches, each client writes in its own transaction, and a read is combined with others only for the row cache.

    Raises:
        ConfigError: too few for the row cache.
    """
    login, cached = store.login, store.row_cache is not None
    few = login.most(batches=isolation.batches) < MIN_CONNECTIONS or login.together < MIN_TOGETHER
    if login.reads != PRIMARY and isolation.batches:
        raise ConfigError(
            f"store {login.text}: reads={login.reads} needs daemon_memcached_r_batch_size=1 and"
            " daemon_memcached_w_batch_size=1, because batches are transactions on the primary"
        )
    if few and (cached or login.reads != PRIMARY):
        what = "the row cache" if cached else f"reads={login.reads}"
        raise ConfigError(
            f"store {login.text}: {what} needs connections={MIN_CONNECTIONS} and coalesce={MIN_TOGETHER} or more"
        )
    if few:
        return 0
    return int(cached) if isolation.batches else 2


class Batching:
    """The batches of one executor.

    Args:
        store: the store of the rows.
        isolation: isolation settings.
        connect: returns a dedicated connection.
        runner: continues commands.

    Attributes:
        up_to_date: see `PlainBatcher`.
        secondary: answers gets, None if only the primary does.
        fallback: carries out commands that leave their batches, and knows which tables are locked.
    """

    up_to_date: Callable[[float], bool]

    def __init__(
        self, store: MySQLStore, isolation: Isolation, connect: Callable[[], DedicatedConnection], runner: Runner
    ) -> None:
        self._store = store
        self._isolation = isolation
        self._own_transactions = isolation.batches
        self.up_to_date = runner.up_to_date
        self.fallback = Fallback(runner)
        reading, self._writing = connect(), connect()
        self._reader: RowReader
        self.secondary: CurrentSecondary | None
        self._kept: KeptRows | None = None
        self._follower = None if store.row_cache is None else Follower(store.login, store.row_cache)
        caching = self.caching(reading)
        if caching is not None:
            self._reader = self._kept = caching
        else:
            self._reader = SQLReader(store, reading)
        reads = ReadBatcher(store, self._reader, self.fallback)
        writes = WriteBatcher(store, self._writing, self.fallback)
        times = 1 if store.row_cache is None else WIDER
        self._reads = Queued(reads.carry_out, partial(self._width, reading, times=times), runner)
        self._writes = Queued(writes.carry_out, partial(self._width, self._writing), runner)
        # Of plain gets, whose replies have no CAS value.
        self._plain_reads, self._replicas, self.secondary = self._reads, None, None
        if store.login.reads != PRIMARY:
            self.secondary = CurrentSecondary(store)
            self._replicas = ReplicaReads(store, self.secondary, self.fallback, self._add_to_primary)
            self._plain_reads = Queued(self._replicas.carry_out, partial(self._width, reading), runner)
        writes.put_back = self._writes.queue.put_back
        self.fallback.queues += [self._reads.queue, self._writes.queue]

    async def close(self) -> None:
        """Close the connections; nothing may run."""
        await self._reader.close()
        await self._writing.close()
        if self._replicas is not None:
            await self._replicas.close()

    def caching(self, connection: DedicatedConnection) -> CachingReader | None:
        """Return what reads with a connection and keeps rows in the row cache; None without one."""
        cache, store = self._store.row_cache, self._store
        if cache is None or self._follower is None:
            return None
        reader = SQLReader(store, connection)
        width = partial(self._width, connection)
        return CachingReader(reader, store, connection, self._isolation, cache, self._follower, width)

    def takes(self, command: Command) -> bool:
        """Take a command that waits for a look-up, where that may be answered with others; tell whether it is taken."""
        operation = command.operation
        if not isinstance(operation, ports.Lookup) or not self._goes_together(command, operation):
            return False
        command.turn = self._reader.turn
        plain = operation.plain and not command.transaction.primary_only
        work = self._writes if operation.for_update else self._plain_reads if plain else self._reads
        work.add(self._store.alike(operation.mapping), command)
        return True

    @property
    def kept(self) -> KeptRows | None:
        """See `PlainBatcher`."""
        return self._kept if self._isolation.reads_committed else None

    def table(self, mapping: Mapping) -> PlainTable:
        """Return the table of a mapping, as long as its version is live."""
        return self._store.plain(self._store.alike(mapping))

    def spelling(self, mapping: Mapping, key: ports.Cell) -> Spelling | None:
        """Return the identity of a key; None if only the server can compare it with others."""
        identities = self._store.identities(mapping)
        return identities.spelled(key) if identities.known else None

    def takes_reads(self, mapping: Mapping) -> bool:
        """Return whether simple gets are batched."""
        return self._isolation.reads_together and not self.fallback.avoids(mapping)

    def takes_writes(self, mapping: Mapping) -> bool:
        """Return whether simple sets are batched."""
        return not self.fallback.avoids(mapping)

    def add_get(self, mapping: Mapping, get: PlainGet) -> None:
        """Queue a get."""
        get.turn = self._reader.turn
        primary = get.with_cas or get.primary
        (self._reads if primary else self._plain_reads).add(self._store.alike(mapping), get)

    def add_read(self, table: PlainTable, read: PlainLone | PlainRead | PlainReads) -> None:
        """Queue a get of a plain word, or of several."""
        read.turn = self._reader.turn
        work = self._reads if read.primary else self._plain_reads
        work.add(table, read, read.weight)

    def together(self, table: PlainTable) -> int:
        """Return how many words one `PlainReads` may have."""
        return self._reads.width(table)

    def add_write(self, table: PlainTable | PlainRemovals, write: PlainChange) -> None:
        """Queue a set or a delete."""
        self._writes.add(table, write)

    def _add_to_primary(self, about: About, get: Command | PlainLone | PlainRead | PlainReads | PlainGet) -> None:
        get.turn = self._reader.turn
        self._reads.add(about, get, get.weight)

    def _goes_together(self, command: Command, lookup: ports.Lookup) -> bool:
        """Return whether a look-up can be batched, and set the identity of its row on the command."""
        rules = self._isolation
        if self._own_transactions and (
            lookup.for_update or command.transaction.connection is not None or not rules.reads_committed
        ):
            return False
        if not (lookup.for_update or rules.reads_together):
            return False
        if self.fallback.avoids(lookup.mapping):
            return False
        spelling = self.spelling(lookup.mapping, lookup.key)
        if spelling is None:
            return False
        command.spelling = spelling
        if lookup.for_update:
            try:
                command.identity = self._store.identities(lookup.mapping).identity(spelling)
            except UnicodeDecodeError:
                return False  # the server says what is wrong with it
        return True

    def _width(self, connection: DedicatedConnection, about: About, *, times: int = 1) -> int:
        """Return how many commands of a mapping may go together, so that neither question nor answer is too large.

        Args:
            connection: that the question is for.
            about: the mapping.
            times: how many such questions there may be.
        """
        mapping = about if isinstance(about, Mapping) else about.mapping
        width = min(self._store.login.together, MAX_BYTES // bytes_of_row(mapping))
        longest = connection.longest
        return times * max(1, width if longest is None else min(width, longest // _BYTES_OF_KEY))


class Queued:
    """A queue of commands, and the task that carries them out while there are any.

    Args:
        carry_out: carries out commands of one batch.
        width: returns how many of a mapping may be in one.
        runner: starts the task.
        gather: queues what has arrived meanwhile, before the queue is found to be empty; None: it is queued at once.
    """

    def __init__(
        self,
        carry_out: Callable[[Any, list[Any]], Awaitable[None]],
        width: Callable[[Any], int],
        runner: Runner,
        gather: Callable[[], None] | None = None,
    ) -> None:
        self.queue: BatchQueue[About, Command | Plain] = BatchQueue()
        self._carry_out = carry_out
        self.width = width
        self._gather = gather
        self._runner = runner
        self._running = False

    def add(self, about: About, command: Command | Plain, weight: int = 1) -> None:
        """Queue a command behind the others of its kind, see `BatchQueue`."""
        self.queue.add(about, command, weight)
        if not self._running:
            self._running = True
            self._runner.start(self._run())

    async def _run(self) -> None:
        try:
            while self.queue:
                await self._carry_out(*self.queue.take(self.width))
                # Clients that just received a reply send the next command: give the loop a turn, so that the next
                # statement serves all of them.
                await asyncio.sleep(0)
                if self._gather is not None:
                    self._gather()
        finally:
            self._running = False
