"""Load workers as processes of this machine."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref_bench import interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor


@dataclass(frozen=True, slots=True)
class Local:
    """An engine of local processes; see `coordinator.Engine` for the fields."""

    executor: Executor
    workers: int
    cpus: Sequence[int] = ()
    control_host: str = "127.0.0.1"


@contextmanager
def local(workers: int, cpus: Sequence[int] = ()) -> Iterator[Local]:
    """Run workers in local processes, which end with the block; at once when the block is left by an error.

    Args:
        workers: maximum number at once, 1 to 1024.
        cpus: processors that they are pinned to, in turn; none: the kernel decides.
    """
    # Spawned, not forked: a fork would share this process's event loop and threads.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, context)
    try:
        with interrupt.held_back():
            # Each of these has a process started, as none is idle yet.
            wait([executor.submit(_load) for _ in range(workers)])
        yield Local(executor, workers, tuple(cpus))
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
