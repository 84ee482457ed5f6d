"""A secondary of a replication group that answers gets; the primary answers what it cannot.

No command of a connection is written while its gets wait for the secondary. Nothing here waits for a connection to be
opened, and a secondary whose answer is an error or comes late is left, so that it delays few gets.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Set
from functools import partial
from typing import Any, Final

from kvref.errors import KvrefError
from kvref.log_throttle import LogThrottle
from kvref.server.executors.mysql.command import LastWrite
from kvref.server.executors.mysql.pool import Threads
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import RetryableError
from kvref.storage.mysql.store import COMMITTED, MySQLStore, Replicas

_log = logging.getLogger("kvref.server")

WAIT: Final = 0.1  # seconds that gets wait until a secondary has executed the writes of their connections
PAUSE: Final = 1.0  # seconds between two attempts to open a connection, and between two checks of an open one
# Seconds for which no get waits for a secondary that was late: a get whose write it may lack goes to the primary.
LAG_PAUSE: Final = 1.0
_LOG_SECONDS: Final = 10.0


class Secondary:
    """One connection to one secondary, opened in the background and closed after an error, and counts of gets."""

    def __init__(self, store: MySQLStore) -> None:
        assert store.replica_counts is not None, "the store counts what secondaries answer"
        self.counts = store.replica_counts
        self._connect = partial(MySQLConnection, Replicas(store), COMMITTED, brief=True)
        self._loop = asyncio.get_running_loop()
        self._threads = Threads(1, "kvref-secondary")
        self._opening: asyncio.Task[None] | None = None
        self._retry_at = -math.inf  # when the next connection may be opened (loop time)
        self._checked = 0.0  # when the server was last seen to be a secondary (loop time)
        self._lagging_until = -math.inf  # loop time
        self._throttle = LogThrottle(_LOG_SECONDS)
        self._connection: MySQLConnection | None = None

    @property
    def ready(self) -> bool:
        """Return whether there is a connection; if there is none, one is opened in the background."""
        if self._connection is None and self._opening is None and self._loop.time() >= self._retry_at:
            self._opening = self._loop.create_task(self._open())
        return self._connection is not None

    async def call(self, what: Callable[..., Any], *arguments: object) -> Any:
        """Call what blocks with the connection, which must be there.

        Raises:
            NoSecondaryError: the server is not a secondary any more.
            KvrefError, LockWaitError: as `what` does.
        """
        connection, now = self._connection, self._loop.time()
        assert connection is not None, "it is ready"
        try:
            if now - self._checked > PAUSE:
                await self._threads.call(connection.require_secondary)
                self._checked = now
            return await self._threads.call(what, connection, *arguments)
        except RetryableError:
            raise  # it lags behind DDL, and can be read
        except Exception as error:
            if self._connection is connection:  # no other call has found the error before
                self._back_off(error)
                self._connection = None
                self._threads.call(connection.close)
            raise

    async def close(self) -> None:
        """Close the connection; no call may run."""
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            await self._threads.call(self._connection.close)
        self._threads.close()

    async def _open(self) -> None:
        try:
            self._connection = await self._threads.call(self._connect)
            self._checked = self._loop.time()
        except KvrefError as error:
            self._back_off(error)
        finally:
            self._opening = None

    def _back_off(self, error: Exception) -> None:
        self._retry_at = self._loop.time() + PAUSE
        if self._throttle.suppressed() is not None:
            _log.warning("gets are read from the primary: %s", error)

    async def late(self, writes: Set[LastWrite]) -> set[LastWrite]:
        """Return those of some writes that it has not executed; raises as `call`."""
        connection = self._connection
        late = {each for each in writes if each.gtid is not None and each.reached is not connection}
        known = {each for each in late if each.gtid}
        if known and self._loop.time() >= self._lagging_until:
            gtids = ",".join(sorted({each.gtid or "" for each in known}))
            waits = f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {WAIT})"  # 1 after a timeout
            if await self.call(MySQLConnection.cells, waits) == [[b"0"]]:
                late -= known
                for each in known:
                    each.reached = connection
            else:
                self._lagging_until = self._loop.time() + LAG_PAUSE
        return late
