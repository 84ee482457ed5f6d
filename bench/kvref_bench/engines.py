"""Where load workers run: processes here, or a Dask cluster.

The tasks are the same everywhere (`load.worker.run`); an engine is an executor, and an address at which its workers
reach this machine.
"""

from __future__ import annotations

import os
import socket
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import cause_of, install
from kvref_bench.errors import BenchError
from kvref_bench.load import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kvref_bench.load.coordinator import Engine

SCHEDULER_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Place:
    """Where the workers of a run are.

    facts: for its record.
    """

    engine: Engine
    facts: dict[str, object]


@contextmanager
def local(workers: int, *, pin: bool = False) -> Iterator[Place]:
    """Run workers in processes of this machine, which end with the block.

    Args:
        workers: at most so many at once, 1 to 1024.
        pin: each to a CPU of its own, in turn.
    """
    cpus = tuple(sorted(os.sched_getaffinity(0))) if pin else ()
    facts: dict[str, object] = {"kind": "local", "workers": workers, "pinned": list(cpus)}
    with engine.local(workers, cpus) as pool:
        yield Place(pool, facts)


@contextmanager
def cluster(scheduler: str, workers: int | None = None, control_host: str | None = None) -> Iterator[Place]:
    """Run workers on a Dask cluster, each on a worker process of its own.

    Args:
        scheduler: its address, `tcp://HOST:PORT`.
        workers: maximum number at once; None: as many as the cluster has.
        control_host: address of this machine as the workers reach it; None: the address that reaches the scheduler.

    Raises:
        BenchError: the package is missing, no scheduler answers, or there is no worker.
    """
    try:
        import distributed  # noqa: PLC0415 -- an extra of its own
    except ModuleNotFoundError as lack:
        raise BenchError(f"--dask needs the package distributed: {install('cluster')}") from lack
    try:
        make: Any = distributed.Client
        client = make(scheduler, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise BenchError(f"no Dask scheduler answers at {scheduler}: {cause_of(error)}") from error
    with client:
        addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
        if not addresses:
            raise BenchError(f"the Dask scheduler {scheduler} has no worker: start `dask worker {scheduler}`")
        used = addresses[:workers]
        facts: dict[str, object] = {"kind": "dask", "scheduler": scheduler, "workers": len(used), "addresses": used}
        # Without a worker named, the scheduler could put two that wait for each other one behind the other.
        executors = [client.get_executor(pure=False, workers=[each], allow_other_workers=False) for each in used]
        host = control_host or _address_towards(scheduler)
        yield Place(engine.Local(_InTurn(executors), len(used), (), host), facts | {"control_host": host})


class _InTurn(Executor):
    """Gives each task to the next of several executors."""

    def __init__(self, executors: Sequence[Executor]) -> None:
        self._executors = executors
        self._next = count()

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._executors[next(self._next) % len(self._executors)].submit(call, *args, **kwargs)


def _address_towards(scheduler: str) -> str:
    host, _, port = scheduler.rpartition("://")[2].rpartition(":")
    # Connecting a datagram socket sends nothing; it only looks up the routing table.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))
        return str(probe.getsockname()[0])
