"""Counters of `stats` that all workers share."""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import Final

from kvref.engine.counters import COUNTED, Counters
from kvref.server.workers.prefixes import WorkerPrefixes
from kvref.server.workers.shared_memory import CELL, MASK, Memory, WorkerSlot

_VALUES: Final = attrgetter(*COUNTED)
_AT: Final = len(WorkerSlot)
_GETS, _HITS, _MISSES, _READ, _WRITTEN = (
    _AT + COUNTED.index(name) for name in ("cmd_get", "get_hits", "get_misses", "bytes_read", "bytes_written")
)
_CELLS: Final = struct.Struct(f"@{len(COUNTED)}Q")  # native: each number is written whole


class WorkerCounters(Counters):
    """Counters of one worker; `totals` has those of all."""

    __slots__ = ("_memory", "_shown", "_slot")

    def __init__(self, memory: Memory, prefixes: WorkerPrefixes, worker: int) -> None:
        self._memory = memory
        self._slot = memory.slot(worker)
        super().__init__(prefixes=prefixes)
        for name, count in zip(COUNTED, self._slot[_AT:], strict=True):
            setattr(self, name, count)
        self._shown = prefixes

    def publish(self) -> None:
        _CELLS.pack_into(self._slot, _AT * CELL, *_VALUES(self))
        self._shown.publish()

    def publish_get(self) -> None:
        """Show the others what one get counts, which is a fraction of the work."""
        slot = self._slot
        slot[_GETS], slot[_HITS], slot[_MISSES] = self.cmd_get, self.get_hits, self.get_misses
        slot[_READ], slot[_WRITTEN] = self.bytes_read, self.bytes_written

    def totals(self) -> dict[str, int]:
        self.publish()
        return totals(self._memory)

    def reset(self) -> None:
        before = self._memory.reset
        self.publish()
        for cell, number in enumerate(_sums(self._memory)):
            before[cell] = number
        self.prefixes.clear()


def totals(memory: Memory) -> dict[str, int]:
    """Return the counters of all workers since the last `stats reset`, as they have shown them."""
    sums = zip(COUNTED, _sums(memory), memory.reset, strict=True)
    return {name: (number - before) & MASK for name, number, before in sums}


def _sums(memory: Memory) -> list[int]:
    slots = [memory.slot(worker)[_AT:] for worker in range(memory.workers + 1)]
    return [sum(numbers) & MASK for numbers in zip(*slots, strict=True)]
