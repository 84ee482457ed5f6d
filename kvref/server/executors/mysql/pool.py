"""Connections to a database server: at most so many at once, kept for the next command, each used in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

from kvref.errors import ConfigError, StoreError
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.store import MySQLStore

# In addition to one thread for each connection: it reads the configuration again.
_MORE_THREADS: Final = 1


class Pool:
    """The connection pool of one store, in the running loop.

    Args:
        store: the store.
        isolation: isolation settings.
        apart: number of the store's connections that are dedicated and use threads of this pool.

    Raises:
        ConfigError: too few connections for batches.
    """

    def __init__(self, store: MySQLStore, isolation: Isolation, apart: int = 0) -> None:
        self._store = store
        self._isolation = isolation
        self._loop = asyncio.get_running_loop()
        most = store.login.most(batches=isolation.batches)
        self._threads = ThreadPoolExecutor(most + _MORE_THREADS, thread_name_prefix="kvref-mysql")
        # Batches can use all pool permits: a check of the tables during them needs a connection outside the permits.
        self.most = most - apart - (1 if isolation.batches else 0)
        if not self.most:
            raise ConfigError(f"store {store.login.text}: connections=1 is too few for batches: set at least 2")
        self._places = asyncio.Semaphore(self.most)
        self._idle: list[MySQLConnection] = []
        self._beside: MySQLConnection | None = None
        self._beside_in_use = asyncio.Lock()

    async def in_thread(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Call what blocks."""
        return await self._loop.run_in_executor(self._threads, call, *arguments)

    async def take(self) -> MySQLConnection:
        """Wait for a link that is not in use; `give_back` must follow.

        Raises:
            StoreError: none became free in time, or the server is not reached.
        """
        try:
            async with asyncio.timeout(self._store.patience):
                await self._places.acquire()
        except TimeoutError as error:
            patience = self._store.patience
            raise StoreError(
                f"none of {self.most} connections to the database became free within {patience:g} s"
            ) from error
        try:
            while self._idle:
                link = self._idle.pop()
                if not link.retired:
                    return link
                await self.in_thread(link.close)
            return await self._open()
        except BaseException:
            self._places.release()
            raise

    async def give_back(self, link: MySQLConnection) -> None:
        """Take a link back that `take` gave; what is open in it is rolled back."""
        try:
            if link.in_transaction:
                await self.in_thread(link.roll_back)
            if link.lost:
                # What ended it, such as a restart, has most likely ended those that wait for use too.
                lost, self._idle = [link, *self._idle], []
                for each in lost:
                    await self.in_thread(each.close)
            elif link.retired:
                await self.in_thread(link.close)
            else:
                self._idle.append(link)
        finally:
            self._places.release()

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[MySQLConnection]:
        """Give a link outside every transaction; raises StoreError as `take`."""
        if not self._isolation.batches:
            link = await self.take()
            try:
                yield link
            finally:
                await self.give_back(link)
            return
        async with self._beside_in_use:
            link = self._beside = self._beside or await self._open()
            try:
                yield link
            finally:
                if link.lost or link.retired:
                    self._beside = None
                    await self.in_thread(link.close)

    async def close(self) -> None:
        """Close the links that are not in use; nothing else may run."""
        for link in [*self._idle, *([self._beside] if self._beside else [])]:
            await self.in_thread(link.close)
        self._threads.shutdown(wait=False)

    async def _open(self) -> MySQLConnection:
        link: MySQLConnection = await self.in_thread(self._store.link, self._isolation)
        return link
