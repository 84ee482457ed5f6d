"""A database connection outside the pool that many commands share: opened when needed, reopened if lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kvref.server.executors.mysql.pool import Pool
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import LostError
from kvref.storage.mysql.store import MySQLStore


class DedicatedConnection:
    """One link, used by one task at a time; it waits for no lock longer than a second.

    Args:
        store: store of the connection.
        isolation: in force.
        pool: has a thread for it.
    """

    def __init__(self, store: MySQLStore, isolation: Isolation, pool: Pool) -> None:
        self._open = partial(store.link, isolation, brief=True)
        self._pool = pool
        self._link: MySQLConnection | None = None

    @property
    def in_transaction(self) -> bool:
        """Return whether anything is open in it."""
        return self._link is not None and self._link.in_transaction

    @property
    def longest(self) -> int | None:
        """Return how many bytes a statement may have; None: not known yet."""
        return None if self._link is None else self._link.longest

    async def call(self, what: Callable[..., Any], *arguments: object) -> Any:
        """Call what blocks with the link and further arguments.

        Raises:
            StoreError: the server is not reached.
            KvrefError, LockWaitError: as `what` does.
        """
        return await self._pool.in_thread(self._call, what, *arguments)

    async def check(self) -> None:
        """Run a query, on a new connection if the old one is lost; raises StoreError if the server does not answer."""
        try:
            await self.call(MySQLConnection.say, "SELECT 1")
        except LostError:
            await self.call(MySQLConnection.say, "SELECT 1")

    async def close(self) -> None:
        """Close it; nothing else may run."""
        if self._link is not None:
            await self._pool.in_thread(self._link.close)

    def _call(self, what: Callable[..., Any], *arguments: object) -> Any:
        if self._link is not None and self._link.retired and not self._link.in_transaction:
            self._link.close()
            self._link = None
        link = self._link = self._link or self._open()
        try:
            return what(link, *arguments)
        finally:
            if link.lost:
                self._link = None
                link.close()
