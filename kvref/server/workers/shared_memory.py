"""What the workers of one server share: numbers in memory made before they are started, locks, and mappings.

A number of 64 bits is written and read whole. Where that is not enough there are locks, which the kernel frees when
their holder dies. What a worker counts stays when it dies: the one in its place goes on from there.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from enum import IntEnum
from typing import Any, Final

from kvref.engine.counters import COUNTED
from kvref.engine.mapping import OPTIONS, Column, Kind, Mapping
from kvref.engine.shared_state import SIZE as VBUCKETS
from kvref.storage.config.containers import Container

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


class SharedMappings:
    """Mappings of one store by name, in an anonymous file; every thread of every worker can use it.

    A row of `containers`, or its table, may change between two readings; then the later reader has to see what the
    earlier one made of it, faults included.
    """

    def __init__(self) -> None:
        self._file = os.memfd_create("kvref-containers")
        self._threads = threading.Lock()  # a lock of the file is one for all threads of a process

    def find(self, name: str) -> Mapping | None:
        """Return the stored mapping of a name, as it was read; of its columns it has only the names."""
        with self._locked():
            return self._read(name)

    def add(self, name: str, mapping: Mapping) -> Mapping | None:
        """Store a mapping, unless one of its name is stored: then return that one, as `find` does."""
        with self._locked():
            found = self._read(name)
            if found is None:
                line = json.dumps([name, _written(mapping)]).encode() + b"\n"
                os.pwrite(self._file, line, os.fstat(self._file).st_size)
            return found

    def clear(self) -> None:
        """Forget all of them: the configuration is read again."""
        with self._locked():
            os.ftruncate(self._file, 0)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _read(self, name: str) -> Mapping | None:
        text = os.pread(self._file, os.fstat(self._file).st_size, 0)
        known = (json.loads(line) for line in text.splitlines())
        return next((_mapping(written) for stored, written in known if stored == name), None)


def _written(mapping: Mapping) -> dict[str, Any]:
    assert isinstance(mapping.row, Container)
    return {
        "row": astuple(mapping.row),
        "names": (mapping.name, mapping.schema, mapping.table, mapping.source, mapping.key.name),
        "values": [column.name for column in mapping.values],
        **{what: column and column.name for what, column in mapping.options.items()},
    }


def _mapping(written: dict[str, Any]) -> Mapping:
    name, schema, table, source, key = written["names"]
    values = tuple(_column(each) for each in written["values"])
    options: dict[str, Any] = {what: written[what] and _column(written[what]) for what in OPTIONS}
    row = Container(*written["row"])
    return Mapping(name, schema, table, source, _column(key), values, **options, row=row)


def _column(name: str) -> Column:
    return Column(name, Kind.TEXT)
