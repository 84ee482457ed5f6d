"""Connections to a database server: their threads, the pool, dedicated connections, and counting rows through them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from kvref.engine.operations import CountRows, LockWaitError
from kvref.errors import ConfigError, KvrefError, StoreError
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import LostError
from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.server")

_Call = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[object, ...]]


class Threads:
    """Threads of the running loop for calls that block, started when they are needed.

    A call wakes a thread once and the event loop once. `loop.run_in_executor` takes two futures, a semaphore and a
    further turn of the loop for the same.
    """

    def __init__(self, most: int, name: str) -> None:
        self._max_threads = most
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()  # None ends a thread
        self._started = 0
        self._unfinished = 0  # calls

    def call(self, what: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Call what blocks; return a future of its result. A cancelled future does not stop its call."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._unfinished += 1
        if self._unfinished > self._started and self._started < self._max_threads:
            self._started += 1
            Thread(target=self._work, name=f"{self._name}_{self._started}", daemon=True).start()
        self._calls.put((future, what, arguments))
        return future

    def close(self) -> None:
        """End each thread after the calls that were made so far."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while self._carry_out():
            pass

    def _carry_out(self) -> bool:
        """Run the next call and forget it; return whether there was one."""
        call = self._calls.get()
        if call is None:
            return False
        future, what, arguments = call
        try:
            try:
                result = what(*arguments)
            except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
                self._loop.call_soon_threadsafe(self._end, future, None, error)
            else:
                self._loop.call_soon_threadsafe(self._end, future, result, None)
        except RuntimeError:
            _log.debug("the event loop was closed before a call in a thread has ended")
        return True

    def _end(self, future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
        self._unfinished -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


# In addition to one thread for each connection: it reads the configuration again.
_MORE_THREADS: Final = 1


class Pool:
    """The connection pool of one store, in the running loop; raises ConfigError for too few connections for batches.

    Args:
        dedicated: number of the store's connections that are not pooled but use threads of this pool.

    Attributes:
        in_thread: calls what blocks, see `Threads.call`.
    """

    def __init__(self, store: MySQLStore, isolation: Isolation, dedicated: int = 0) -> None:
        self._store = store
        self._isolation = isolation
        most = store.login.max_connections(batches=isolation.batches)
        self._threads = Threads(most + _MORE_THREADS, "kvref-mysql")
        self.in_thread = self._threads.call
        # Batches can use all pool permits: a check of the tables during them needs a connection outside the permits.
        self.most = most - dedicated - (1 if isolation.batches else 0)
        if not self.most:
            raise ConfigError(f"store {store.login.text}: connections=1 is too few for batches: set at least 2")
        self._permits = asyncio.Semaphore(self.most)
        self._idle: list[MySQLConnection] = []
        self._outside = DedicatedConnection(store, isolation, self, brief=False)
        self._outside_in_use = asyncio.Lock()

    async def take(self) -> MySQLConnection:
        """Wait for a connection, to be given back; raises StoreError if none is free in time, or the server is down."""
        try:
            async with asyncio.timeout(self._store.reply_timeout):
                await self._permits.acquire()
        except TimeoutError as error:
            patience = self._store.reply_timeout
            raise StoreError(
                f"none of {self.most} connections to the database became free within {patience:g} s"
            ) from error
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.retired:
                    return connection
                await self.in_thread(connection.close)
            opened: MySQLConnection = await self.in_thread(self._store.connect, self._isolation)
        except BaseException:
            self._permits.release()
            raise
        return opened

    async def give_back(self, connection: MySQLConnection) -> None:
        """Take a connection back that `take` gave; what is open in it is rolled back."""
        try:
            if connection.in_transaction:
                await self.in_thread(connection.roll_back)
            if connection.lost:
                # What ended it, such as a restart, has most likely ended those that wait for use too.
                lost, self._idle = [connection, *self._idle], []
                for each in lost:
                    await self.in_thread(each.close)
            elif connection.retired:
                await self.in_thread(connection.close)
            else:
                self._idle.append(connection)
        finally:
            self._permits.release()

    async def call_outside(self, what: Callable[..., Any], *arguments: object) -> Any:
        """Call what blocks with a connection outside every transaction; raises as `take`, and what the call raises."""
        if not self._isolation.batches:
            connection = await self.take()
            try:
                return await self.in_thread(what, connection, *arguments)
            finally:
                await self.give_back(connection)
        async with self._outside_in_use:
            return await self._outside.call(what, *arguments)

    async def close(self) -> None:
        """Close the connections that are not in use; nothing else may run."""
        await self._outside.close()
        for connection in self._idle:
            await self.in_thread(connection.close)
        self._threads.close()


class DedicatedConnection:
    """One connection, used by one task at a time, in a thread; with `brief`, it waits at most a second for a lock."""

    def __init__(self, store: MySQLStore, isolation: Isolation, pool: Pool, *, brief: bool = True) -> None:
        self._open = partial(store.connect, isolation, brief=brief)
        self._pool = pool
        self._connection: MySQLConnection | None = None

    @property
    def in_transaction(self) -> bool:
        """Return whether anything is open in it."""
        return self._connection is not None and self._connection.in_transaction

    @property
    def longest(self) -> int | None:
        """Return how many bytes a statement may have; None: not known yet."""
        return None if self._connection is None else self._connection.max_packet

    @property
    def last_gtid(self) -> str:
        """Return the GTID of its last commit with reads=session; "": it has none, or it is not known."""
        return "" if self._connection is None else self._connection.last_gtid

    def call(self, what: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Call what blocks with the connection; raises StoreError if the server is not reached, and as the call."""
        return self._pool.in_thread(self._call, what, *arguments)

    async def check(self) -> None:
        """Run a query, on a new connection if the old one is lost; raises StoreError if the server does not answer."""
        try:
            await self.call(MySQLConnection.query, "SELECT 1")
        except LostError:
            await self.call(MySQLConnection.query, "SELECT 1")

    async def close(self) -> None:
        """Close it; nothing else may run."""
        if self._connection is not None:
            await self._pool.in_thread(self._connection.close)

    def _call(self, what: Callable[..., Any], *arguments: object) -> Any:
        if self._connection is not None and not self._connection.in_transaction and self._connection.retired:
            self._connection.close()
            self._connection = None
        connection = self._connection = self._connection or self._open()
        try:
            return what(connection, *arguments)
        finally:
            if connection.lost:
                self._connection = None
                connection.close()


MAX_WAIT: Final = 0.25  # seconds after which the last count is shown: monitoring reads `stats` while a database is slow
MAX_TABLES: Final = 1000  # tables; a profile may read a mapping repeatedly


class RowCounts:
    """The numbers of rows by table."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[str, int] = {}
        self._counting: dict[str, asyncio.Task[None]] = {}

    async def of(
        self, operation: CountRows, start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> int | None:
        """Return about how many rows a table has, as of now or of the last count; None: not known."""
        source = operation.mapping.source
        task = self._counting.get(source)
        if task is None:
            task = self._counting[source] = start(self._count(operation))
        await asyncio.wait({task}, timeout=MAX_WAIT)
        return self._known.get(source)

    async def _count(self, operation: CountRows) -> None:
        source = operation.mapping.source
        try:
            number = await self._pool.call_outside(MySQLConnection.execute, operation)
            if len(self._known) >= MAX_TABLES:
                self._known.clear()
            self._known[source] = number
        except (KvrefError, LockWaitError) as error:
            self._known.pop(source, None)
            _log.debug("the rows of %s are not counted: %s", source, error)
        finally:
            del self._counting[source]
