"""Measure once a second in each event loop its delay, the open batches, and whether the store answers.

A health request then only reads numbers, also while the database hangs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from kvref.errors import KvrefError
from kvref.server.idle_commit import Client
from kvref.server.telemetry.event_counters import ProcessEventCounters

EVERY: Final = 1.0  # seconds


class LoopMonitor:
    """Measure until `stop`, in the running loop.

    Args:
        tally: counters of this process.
        clients: returns all connections.
        check: queries the store, and raises KvrefError if it does not answer.
    """

    def __init__(
        self, tally: ProcessEventCounters, clients: Callable[[], Iterable[Client]], check: Callable[[], Awaitable[None]]
    ) -> None:
        self._tally = tally
        self._clients = clients
        self._check = check
        self._loop = asyncio.get_running_loop()
        self._asking: asyncio.Task[None] | None = None
        self._due = self._loop.time()
        self._beat()

    def stop(self) -> None:
        """Beat no more."""
        self._timer.cancel()

    def _beat(self) -> None:
        now = self._loop.time()
        open_now = sum(client.batch_since is not None for client in self._clients())
        self._tally.beat(now - self._due, open_now)
        if self._asking is None:
            self._tally.asked()
            self._asking = self._loop.create_task(self._ask())
        self._due = now + EVERY
        self._timer = self._loop.call_at(self._due, self._beat)

    async def _ask(self) -> None:
        try:
            await self._check()
        except KvrefError as error:
            self._tally.answered(str(error) or type(error).__name__)
        else:
            self._tally.answered()
        finally:
            self._asking = None
