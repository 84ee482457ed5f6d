"""Where the numbers of metrics are: in the one process that serves, or in memory that workers share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import kvref
from kvref.profiles import Profile
from kvref.server.telemetry.event_counters import EventCounters
from kvref.server.workers.counters import totals
from kvref.storage.stores import scheme_of

if TYPE_CHECKING:
    from kvref.server.server import Server
    from kvref.server.workers.plan import Plan


@dataclass(frozen=True, slots=True)
class Source:
    """Where the numbers are; all of it may be read in any thread or process.

    Args:
        started: UNIX time.
        info: what serves: version, profile, store, workers.
        pids: returns the processes that serve clients and their parent, first the one that listens.
    """

    tally: EventCounters
    started: float
    info: dict[str, str]
    totals: Callable[[], dict[str, int]]
    connections: Callable[[], int]
    pids: Callable[[], list[int]]


def of_server(server: Server, dsns: Iterable[str]) -> Source:
    """Return the numbers of a server of one process, for its other threads."""
    return Source(
        server.scope.tally,
        server.started,
        _info(server.profile, dsns, 1),
        server.shared.counters.totals,
        lambda: len(server.connections),
        lambda: [os.getpid()],
    )


def of_workers(plan: Plan) -> Source:
    """Return the numbers of a server of several processes, for any of them; `plan` has the memory that they share."""
    return Source(
        plan.tally,
        time.time() - (time.monotonic() - plan.since),
        _info(plan.profile, plan.dsns, plan.workers),
        partial(totals, plan.memory),
        plan.memory.connections,
        lambda: [plan.pid, *(process.pid for process in plan.tally.processes if process.pid)],
    )


def _info(profile: Profile, dsns: Iterable[str], workers: int) -> dict[str, str]:
    return {
        "version": kvref.__version__,
        "profile": profile.name,
        "store": ",".join(sorted({scheme_of(dsn).prefix.partition(":")[0] for dsn in dsns})),
        "workers": str(workers),
    }
