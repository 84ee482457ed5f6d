"""Counters of `stats`, and of key prefixes, that all workers share."""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import Final

from kvref.engine.counters import COUNTED, Counters
from kvref.engine.prefixes import MAX_PREFIXES, Prefixes, Uses
from kvref.server.workers.shared_memory import CELL, COUNTING, MASK, PREFIX_GENERATION, Memory, WorkerSlot, anonymous

# An entry of a prefix: a byte for its length, its bytes, and from the next cell on its four counters.
_MAX_PREFIX: Final = 255
_NUMBERS: Final = (1 + _MAX_PREFIX) // 8
_ENTRY: Final = _NUMBERS + 4  # cells


class SharedPrefixes:
    """Shared memory for the prefixes of each worker."""

    def __init__(self, workers: int) -> None:
        size = (2 + MAX_PREFIXES * _ENTRY) * 8
        self.bytes = [anonymous(size) for _ in range(workers)]
        self.cells = [each.cast("Q") for each in self.bytes]


class WorkerPrefixes(Prefixes):
    """Counters by prefix of one worker, which shows them to the others.

    Args:
        memory: whether prefixes are counted, and how often they were reset.
        places: of all workers; the first two cells have the number of the last reset, and the number of prefixes.
    """

    __slots__ = ("_changed", "_generation", "_memory", "_numbers", "_places", "_worker")

    def __init__(self, memory: Memory, places: SharedPrefixes, worker: int) -> None:
        self.by_beginning = False
        self._memory = memory
        self._places = places
        self._worker = worker
        self._changed: set[bytes] = set()
        self._generation = places.cells[worker][0]
        self._uses: dict[bytes, Uses] = self._of_worker(worker)
        self._numbers = {prefix: number for number, prefix in enumerate(self._uses)}

    @property
    def counting(self) -> bool:
        return bool(self._memory[COUNTING])

    @counting.setter
    def counting(self, on: bool) -> None:
        self._memory[COUNTING] = int(on)

    def all(self) -> dict[bytes, Uses]:
        self.publish()
        together: dict[bytes, Uses] = {}
        for worker in range(self._memory.workers):
            for prefix, uses in self._of_worker(worker).items():
                known = together.setdefault(prefix, Uses())
                known.get += uses.get
                known.hit += uses.hit
                known.set += uses.set
                known.delete += uses.delete
        return together

    def clear(self) -> None:
        self._memory[PREFIX_GENERATION] += 1
        self._reset()

    def publish(self) -> None:
        if not self._changed:
            return
        cells, raw = self._places.cells[self._worker], self._places.bytes[self._worker]
        for prefix in self._changed:
            uses, number = self._uses[prefix], self._numbers.get(prefix)
            new = number is None
            if number is None:
                number = self._numbers[prefix] = len(self._numbers)
            at = 2 + number * _ENTRY
            if new:
                raw[at * 8] = len(prefix)
                raw[at * 8 + 1 : at * 8 + 1 + len(prefix)] = prefix
            for place, count in enumerate((uses.get, uses.hit, uses.set, uses.delete), at + _NUMBERS):
                cells[place] = count
            if new:
                cells[1] = number + 1
        self._changed.clear()

    def _of(self, word: bytes) -> Uses | None:
        if not self._memory[COUNTING]:
            return None
        if self._generation != self._memory[PREFIX_GENERATION]:
            self._reset()
        uses = super()._of(word)
        if uses is not None:
            self._changed.add(self.counted_as(word) or b"")
        return uses

    def _reset(self) -> None:
        self._uses.clear()
        self._numbers.clear()
        self._changed.clear()
        cells = self._places.cells[self._worker]
        cells[1] = 0
        cells[0] = self._generation = self._memory[PREFIX_GENERATION]

    def _of_worker(self, worker: int) -> dict[bytes, Uses]:
        cells, raw = self._places.cells[worker], self._places.bytes[worker]
        if cells[0] != self._memory[PREFIX_GENERATION]:
            return {}
        found = {}
        for number in range(cells[1]):
            at = 2 + number * _ENTRY
            start = at * 8 + 1
            found[bytes(raw[start : start + raw[at * 8]])] = Uses(*cells[at + _NUMBERS : at + _ENTRY])
        return found


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
