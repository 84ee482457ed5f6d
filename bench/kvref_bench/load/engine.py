"""Load workers as processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """Run workers in local processes, which end with the block.

    Args:
        workers: at most so many at once, 1 to 1024.
        cpus: they are pinned to, in turn; none: the kernel decides.
    """
    # Started anew, not forked: a fork would share this process's event loop and threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_leave_interrupts_to_the_coordinator) as executor:
        yield Local(executor, workers, tuple(cpus))


def _leave_interrupts_to_the_coordinator() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
