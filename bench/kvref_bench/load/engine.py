"""Where load workers run: processes here, or a Dask cluster.

The tasks are the same everywhere (`load.worker.run`); an engine is executors, and an address at which its workers
reach this machine.
"""

from __future__ import annotations

import multiprocessing
import socket
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import cause_of, install
from kvref_bench import watch
from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEDULER_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Engine:
    """Where workers run.

    executors: run each task in its own process, in turn. workers: how many at once.
    cpus: to pin them to, by worker; none: not pinned.
    control_host: the address of this machine that they reach.
    facts: for the record of a run.
    """

    executors: Sequence[Executor]
    workers: int
    cpus: Sequence[int] = ()
    control_host: str = "127.0.0.1"
    facts: dict[str, object] = field(default_factory=dict)


@contextmanager
def local(workers: int, cpus: Sequence[int] = ()) -> Iterator[Engine]:
    """Run workers in local processes, which end with the block; at once when the block is left by an error.

    Args:
        workers: maximum number at once, 1 to 1024.
        cpus: processors that they are pinned to, in turn; none: the kernel decides.
    """
    # Spawned, not forked: a fork would share this process's event loop and threads.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, context)
    facts: dict[str, object] = {"kind": "local", "workers": workers, "pinned": list(cpus)}
    try:
        with watch.blocked():
            # Each of these has a process started, as none is idle yet.
            wait([executor.submit(_load) for _ in range(workers)])
        yield Engine((executor,), workers, tuple(cpus), facts=facts)
    except BaseException:
        # A worker in the middle of a point would be waited for.
        for each in set(multiprocessing.active_children()) - others:
            each.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _load() -> None:
    # What a worker needs, so that it does not begin to load it when a point is to begin.
    from kvref_bench.load import worker  # noqa: F401, PLC0415


@contextmanager
def cluster(scheduler: str, control_host: str | None = None) -> Iterator[Engine]:
    """Run workers on all workers of a Dask cluster, one on each.

    Args:
        scheduler: its address, `tcp://HOST:PORT`.
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
        used = sorted(client.scheduler_info(n_workers=-1)["workers"])
        if not used:
            raise BenchError(f"the Dask scheduler {scheduler} has no worker: start `dask worker {scheduler}`")
        # Without a worker named, the scheduler could put two that wait for each other one behind the other.
        executors = [client.get_executor(pure=False, workers=[each], allow_other_workers=False) for each in used]
        host = control_host or _address_towards(scheduler)
        facts = {"kind": "dask", "scheduler": scheduler, "workers": len(used), "addresses": used, "control_host": host}
        yield Engine(executors, len(used), (), host, facts)


def _address_towards(scheduler: str) -> str:
    host, _, port = scheduler.rpartition("://")[2].rpartition(":")
    # Connecting a datagram socket sends nothing; it only looks up the routing table.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))
        return str(probe.getsockname()[0])
