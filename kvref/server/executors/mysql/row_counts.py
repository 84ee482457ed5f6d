"""How many rows the tables of a database server have: counted when `stats` needs it, which waits only shortly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from kvref.engine.operations import CountRows, LockWaitError
from kvref.errors import KvrefError
from kvref.server.executors.mysql.pool import Pool

_log = logging.getLogger("kvref.server")

WAIT: Final = 0.25  # seconds after which the last count is shown: monitoring reads `stats` while a database is slow
MAX_TABLES: Final = 1000  # tables; a profile may read a mapping repeatedly


class RowCounts:
    """The numbers of rows by table.

    Args:
        pool: has a link for each question.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[str, int] = {}
        self._asked: dict[str, asyncio.Task[None]] = {}

    async def of(
        self, operation: CountRows, start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> int | None:
        """Return about how many rows a table has, as of now or of the last answer; None: not known.

        Args:
            operation: names the table.
            start: starts what may go on after this has returned.
        """
        source = operation.mapping.source
        task = self._asked.get(source)
        if task is None:
            task = self._asked[source] = start(self._ask(operation))
        await asyncio.wait({task}, timeout=WAIT)
        return self._known.get(source)

    async def _ask(self, operation: CountRows) -> None:
        source = operation.mapping.source
        try:
            async with self._pool.outside() as link:
                number = await self._pool.in_thread(link.execute, operation)
            if len(self._known) >= MAX_TABLES:
                self._known.clear()
            self._known[source] = number
        except (KvrefError, LockWaitError) as error:
            self._known.pop(source, None)
            _log.debug("the rows of %s are not counted: %s", source, error)
        finally:
            del self._asked[source]
