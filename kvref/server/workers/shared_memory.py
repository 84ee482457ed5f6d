"""Memory that the workers of one server share: numbers in a mapping made before they are started, and locks for it.

A number of 64 bits is written and read whole. Where that is not enough there are locks, which the kernel frees when
their holder dies. What a worker counts stays when it dies: the one in its place goes on from there.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from kvref.engine.counters import COUNTED
from kvref.engine.shared_state import SIZE as VBUCKETS

CELL: Final = 8  # bytes
MASK: Final = (1 << 64) - 1


class Lock(IntEnum):
    """Locks; the value is the byte of the lock file that is locked."""

    CAS = 0
    MARKS = 1


class WorkerSlot(IntEnum):
    """Cells of one worker, before its counters."""

    PID = 0
    ASSIGNED = 1  # connections that it was handed
    CLOSED = 2  # those of them that are gone
    PEAK = 3  # connections at once


# Cells of all workers: the next cas number, whether prefixes are counted, how often they were reset, whether
# `lru_crawler` is disabled, the verbosity.
NEXT_CAS: Final = 0
COUNTING: Final = 1
PREFIX_GENERATION: Final = 2
_CRAWLER_DISABLED: Final = 3
_VERBOSITY: Final = 4
_RESET: Final = 5  # sums at the last `stats reset`
_FIRST_SLOT: Final = _RESET + len(COUNTED)
_SLOT: Final = len(WorkerSlot) + len(COUNTED)


class Memory:
    """The shared numbers of a server; `first_cas` is where cas numbers begin, unless the store has them."""

    def __init__(self, workers: int, first_cas: int) -> None:
        self.workers = workers
        # After the slots of the workers there is one for the parent's counters.
        self._cells = anonymous((_FIRST_SLOT + (workers + 1) * _SLOT) * CELL).cast("Q")
        self._cells[NEXT_CAS] = first_cas
        self.vbuckets = anonymous(VBUCKETS)
        self.verbosity = self._cells[_VERBOSITY : _VERBOSITY + 1]
        self.crawler = self._cells[_CRAWLER_DISABLED : _CRAWLER_DISABLED + 1]
        self._locks = os.memfd_create("kvref-locks")

    def __getitem__(self, cell: int) -> int:
        return self._cells[cell]

    def __setitem__(self, cell: int, number: int) -> None:
        self._cells[cell] = number & MASK

    def slot(self, worker: int) -> memoryview:
        """Return the cells of one worker: those of WorkerSlot, then its counters."""
        at = _FIRST_SLOT + worker * _SLOT
        return self._cells[at : at + _SLOT]

    @property
    def reset(self) -> memoryview:
        """Return what the counters were at the last `stats reset`."""
        return self._cells[_RESET:_FIRST_SLOT]

    def connections(self) -> int:
        slots = [self.slot(worker) for worker in range(self.workers)]
        return sum(slot[WorkerSlot.ASSIGNED] - slot[WorkerSlot.CLOSED] for slot in slots)

    def count_refused(self) -> None:
        """Count a connection that the parent rejected."""
        slot = self.slot(self.workers)
        slot[len(WorkerSlot) + COUNTED.index("rejected_conns")] += 1

    def cas_numbers(self) -> Iterator[int]:
        """Yield cas numbers that no worker has used."""
        while True:
            with self.locked(Lock.CAS):
                number = self._cells[NEXT_CAS]
                self._cells[NEXT_CAS] = number + 1
            yield number

    @contextmanager
    def locked(self, what: Lock) -> Iterator[None]:
        """Keep the other workers from something for the block; not to be entered twice."""
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, what)
        try:
            yield
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, what)


def anonymous(size: int) -> memoryview:
    """Return zeroed bytes shared by all processes forked from this one; untouched pages need no memory."""
    return memoryview(mmap.mmap(-1, size))
