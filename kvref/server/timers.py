"""Timers of a server, and the batches of idle connections that one of them commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, Protocol, TypeVar

SECOND: Final = 1.0  # interval of the checks that a profile does not decide
OLD: Final = 5.0  # seconds (CONN_IDLE_TIME_TO_BK_COMMIT of 5.6)
MAX_COMMITS: Final = 6  # connections that 5.6 commits at once (BK_MAX_PROCESS_COMMIT is passed by one)


class Client(Protocol):
    """A connection, with the loop times at which its batch began and of its last reply."""

    @property
    def batch_since(self) -> float | None: ...
    @property
    def quiet_since(self) -> float: ...
    def commit_idle(self) -> None: ...


C = TypeVar("C", bound=Client)


class Timer:
    """Call a function repeatedly in the running loop; `period` returns the seconds until the next call."""

    def __init__(self, call: Callable[[], object], period: Callable[[], float] = lambda: SECOND) -> None:
        self._call = call
        self._period = period
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(period(), self._tick)

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(self._period(), self._tick)
        self._call()


def oldest_first(clients: Iterable[C]) -> list[tuple[float, C]]:
    """Return the connections with a batch, each behind the loop time at which its batch began, in this order."""
    batches = [(since, client) for client in clients if (since := client.batch_since) is not None]
    return sorted(batches, key=itemgetter(0))


@dataclass(frozen=True, slots=True)
class IdleRule:
    """Which batches a tick commits, by the fact `idle.commits`."""

    commits: str

    def period(self, interval: int) -> float:
        """Return the seconds between two ticks, from innodb_api_bk_commit_interval."""
        return SECOND if self.commits == "idle" else interval

    def due(self, clients: Iterable[C], interval: int, now: float) -> list[C]:
        """Return the connections to commit at some loop time, those with the oldest batches first."""
        batches = oldest_first(clients)
        if self.commits == "older-than-5s":
            return [client for since, client in batches if now - since > OLD][:MAX_COMMITS]
        every = self.commits == "every-open"
        return [client for _, client in batches if every or now - client.quiet_since >= interval]

    def commit(self, clients: Iterable[Client], interval: int) -> None:
        """Commit the batches that are due."""
        for client in self.due(clients, interval, asyncio.get_running_loop().time()):
            client.commit_idle()
