"""Where the numbers of metrics are: in the one process that serves, or in memory that workers share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import kvref
from kvref.profiles import Profile
from kvref.server.telemetry.event_counters import EventCounters
from kvref.server.workers.shared_state import totals
from kvref.storage.stores import scheme_of

if TYPE_CHECKING:
    from kvref.server.server import Server
    from kvref.server.workers.plan import Plan


class Source(Protocol):
    """Where the numbers are; all of it may be read in any thread or process."""

    tally: EventCounters
    started: float  # UNIX time
    info: dict[str, str]  # what serves: version, profile, store, workers

    def totals(self) -> dict[str, int]:
        """Return the counters of `stats` by name."""

    def connections(self) -> int:
        """Return how many clients are connected."""

    def pids(self) -> list[int]:
        """Return the processes, first the one that listens."""


class OneProcess:
    """The numbers of a server of one process, for its other threads.

    Args:
        server: the server.
        dsns: of its stores.
    """

    def __init__(self, server: Server, dsns: Iterable[str]) -> None:
        self._server = server
        self.tally = server.scope.tally
        self.started = server.started
        self.info = _info(server.profile, dsns, 1)

    def totals(self) -> dict[str, int]:
        """Return the counters of `stats` by name."""
        return self._server.shared.counters.totals()

    def connections(self) -> int:
        """Return how many clients are connected."""
        return len(self._server.connections)

    def pids(self) -> list[int]:
        """Return this process."""
        return [os.getpid()]


class Workers:
    """The numbers of a server of several processes, for any of them.

    Args:
        plan: with the memory that they share.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.tally = plan.tally
        self.started = time.time() - (time.monotonic() - plan.since)
        self.info = _info(plan.profile, [plan.dsn], plan.workers)

    def totals(self) -> dict[str, int]:
        """Return the counters of `stats` by name, of all workers."""
        return totals(self._plan.memory)

    def connections(self) -> int:
        """Return how many clients are connected."""
        return self._plan.memory.connections()

    def pids(self) -> list[int]:
        """Return the parent and its workers; what serves the metrics themselves is left out."""
        return [self._plan.pid, *(process.pid for process in self.tally.processes if process.pid)]


def _info(profile: Profile, dsns: Iterable[str], workers: int) -> dict[str, str]:
    return {
        "version": kvref.__version__,
        "profile": profile.name,
        "store": ",".join(sorted({scheme_of(dsn).prefix.partition(":")[0] for dsn in dsns})),
        "workers": str(workers),
    }
