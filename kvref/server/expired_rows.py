"""Removal of expired rows in the background, in batches that leave other commands their turn.

Only tables with an index that begins with the expiry column are searched: in others, each batch would read the whole
table.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kvref.engine.operations import LockWaitError, OperationGen, PurgeExpired, TransactionLostError
from kvref.errors import KvrefError
from kvref.protocol.replies import Reply, ServerError, Status

if TYPE_CHECKING:
    from kvref.engine.mapping import Mapping
    from kvref.engine.session import Shared
    from kvref.server.executors.base import Executor

_log = logging.getLogger("kvref.server")

BATCH: Final = 200  # rows removed in one transaction
DISABLED_PAUSE: Final = 1.0  # seconds between two checks of the setting while it is 0


class ExpiredRows:
    """Remove expired rows for as long as the server runs, at the interval in seconds that is in force."""

    def __init__(self, executor: Executor, shared: Shared, interval: Callable[[], int]) -> None:
        self._executor = executor
        self._shared = shared
        self._interval = interval
        self._transaction = executor.begin()
        self._without_index: set[str] = set()  # tables, each logged once
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        self._task.cancel()
        self._executor.end(self._transaction)

    async def _run(self) -> None:
        while True:
            interval = self._interval()
            await asyncio.sleep(interval or DISABLED_PAUSE)
            if interval and self._interval():
                for mapping in self._mappings():
                    await self._purge(mapping)

    def _mappings(self) -> list[Mapping]:
        """Return one mapping for each table and expiry column."""
        directory = self._shared.directory
        found = {
            (each.identity, each.expiry.name): each
            for each in (*directory.usable, directory.default)
            if each.expiry is not None and not each.fault
        }
        return list(found.values())

    async def _purge(self, mapping: Mapping) -> None:
        """Remove the expired rows of one table; a failure is logged, and the next turn tries again."""
        removed: int | None = BATCH
        failure = ""

        def batch() -> OperationGen:
            nonlocal removed, failure
            before = self._shared.rules.expired_before(int(time.time()))
            try:
                removed = yield PurgeExpired(mapping, before, BATCH)
            except (KvrefError, LockWaitError, TransactionLostError) as error:
                failure = str(error)
            return Status.OK

        while removed == BATCH:
            reply = await self._reply(batch)
            failure = reply.text if isinstance(reply, ServerError) else failure
            if failure:
                _log.warning("expired rows of %s are not removed: %s", mapping.source, failure)
                return
            self._shared.counters.crawler_reclaimed += removed or 0
        if removed is None and mapping.identity not in self._without_index:
            self._without_index.add(mapping.identity)
            column = mapping.expiry.name if mapping.expiry is not None else ""
            _log.warning("expired rows of %s stay: no index begins with its column %s", mapping.source, column)

    async def _reply(self, begin: Callable[[], OperationGen]) -> Reply:
        replied: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def done(reply: Reply) -> None:
            if not replied.done():
                replied.set_result(reply)

        reply = self._executor.run(self._transaction, begin, done)
        self._executor.commit()
        await asyncio.sleep(0)  # other commands have their turn
        return await replied if reply is None else reply
