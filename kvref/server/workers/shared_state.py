"""What all workers share: counters of `stats`, mappings as first read, and marks of rows."""

from __future__ import annotations

import fcntl
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from operator import attrgetter
from threading import Lock as ThreadLock
from typing import Any, Final

from kvref.engine.cache.memory import Entry, Key
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.shared_state import LIMIT, Mark, Marks, content_of
from kvref.engine.stats import COUNTED, MAX_PREFIXES, Counters, Prefixes, Uses
from kvref.server.workers.shared_memory import (
    CELL,
    COUNTING,
    FORGOTTEN,
    MASK,
    Lock,
    Memory,
    WorkerSlot,
    anonymous,
)
from kvref.storage.config.containers import Container

_VALUES: Final = attrgetter(*COUNTED)
_AT: Final = len(WorkerSlot)
_GETS, _HITS, _MISSES, _READ, _WRITTEN = (
    _AT + COUNTED.index(name) for name in ("cmd_get", "get_hits", "get_misses", "bytes_read", "bytes_written")
)
_CELLS: Final = struct.Struct(f"@{len(COUNTED)}Q")  # native: each number is written whole
# An entry of a prefix: a byte for its length, its bytes, and from the cell behind them its four counters.
_MAX_PREFIX: Final = 255
_NUMBERS: Final = (1 + _MAX_PREFIX) // 8
_ENTRY: Final = _NUMBERS + 4  # cells


class SharedPrefixes:
    """A place for the prefixes of each worker.

    Args:
        workers: how many.
    """

    def __init__(self, workers: int) -> None:
        size = (2 + MAX_PREFIXES * _ENTRY) * 8
        self.bytes = [anonymous(size) for _ in range(workers)]
        self.cells = [each.cast("Q") for each in self.bytes]


class WorkerPrefixes(Prefixes):
    """Counters by prefix of one worker, which shows them to the others.

    Args:
        memory: whether prefixes are counted, and how often they were forgotten.
        places: of all workers; the first two cells say as of which forgetting they are, and how many there are.
        worker: number of the worker.
    """

    __slots__ = ("_changed", "_forgotten", "_memory", "_numbers", "_places", "_worker")

    def __init__(self, memory: Memory, places: SharedPrefixes, worker: int) -> None:
        self.by_beginning = False
        self._memory = memory
        self._places = places
        self._worker = worker
        self._uses: dict[bytes, Uses] = {}
        self._numbers: dict[bytes, int] = {}
        self._changed: set[bytes] = set()
        self._forgotten = places.cells[worker][0]
        self._uses = self._of_worker(worker)
        self._numbers = {prefix: number for number, prefix in enumerate(self._uses)}

    @property
    def counting(self) -> bool:
        """Return whether prefixes are counted."""
        return bool(self._memory[COUNTING])

    @counting.setter
    def counting(self, on: bool) -> None:
        self._memory[COUNTING] = int(on)

    def all(self) -> dict[bytes, Uses]:
        """Return the counters of all workers by prefix."""
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
        """Let all workers forget their prefixes."""
        self._memory[FORGOTTEN] += 1
        self._forget()

    def publish(self) -> None:
        """Show the others what changed."""
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
        if self._forgotten != self._memory[FORGOTTEN]:
            self._forget()
        uses = super()._of(word)
        if uses is not None:
            self._changed.add(self.counted_as(word) or b"")
        return uses

    def _forget(self) -> None:
        self._uses.clear()
        self._numbers.clear()
        self._changed.clear()
        cells = self._places.cells[self._worker]
        cells[1] = 0
        cells[0] = self._forgotten = self._memory[FORGOTTEN]

    def _of_worker(self, worker: int) -> dict[bytes, Uses]:
        cells, raw = self._places.cells[worker], self._places.bytes[worker]
        if cells[0] != self._memory[FORGOTTEN]:
            return {}
        found = {}
        for number in range(cells[1]):
            at = 2 + number * _ENTRY
            start = at * 8 + 1
            found[bytes(raw[start : start + raw[at * 8]])] = Uses(*cells[at + _NUMBERS : at + _ENTRY])
        return found


class WorkerCounters(Counters):
    """Counters of one worker; `totals` has those of all.

    Args:
        memory: where each shows its own.
        prefixes: of this worker.
        worker: number of the worker.
    """

    __slots__ = ("_memory", "_shown", "_slot")

    def __init__(self, memory: Memory, prefixes: WorkerPrefixes, worker: int) -> None:
        self._memory = memory
        self._slot = memory.slot(worker)
        super().__init__(prefixes=prefixes)
        for name, count in zip(COUNTED, self._slot[_AT:], strict=True):
            setattr(self, name, count)
        self._shown = prefixes

    def publish(self) -> None:
        """Show the others what was counted."""
        _CELLS.pack_into(self._slot, _AT * CELL, *_VALUES(self))
        self._shown.publish()

    def publish_get(self) -> None:
        """Show the others what one get counts, which is a fraction of the work."""
        slot = self._slot
        slot[_GETS], slot[_HITS], slot[_MISSES] = self.cmd_get, self.get_hits, self.get_misses
        slot[_READ], slot[_WRITTEN] = self.bytes_read, self.bytes_written

    def totals(self) -> dict[str, int]:
        """Return the counters of all workers since the last `stats reset`."""
        self.publish()
        return totals(self._memory)

    def reset(self) -> None:
        """Set every counter of all workers to 0."""
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


_OPTIONAL: Final = ("flags", "cas", "expiry")


class KeptMappings:
    """Mappings of one store by name, in an anonymous file; every thread of every worker can use it.

    A row of `containers`, or its table, may change between two readings; then the later reader has to see what the
    earlier one made of it, faults included.
    """

    def __init__(self) -> None:
        self._file = os.memfd_create("kvref-containers")
        self._threads = ThreadLock()  # a lock of the file is one for all threads of a process

    def find(self, name: str) -> Mapping | None:
        """Return the stored mapping of a name, as it was read; of its columns it has only the names."""
        with self._locked():
            return self._read(name)

    def keep(self, name: str, mapping: Mapping) -> Mapping | None:
        """Keep a mapping; returns the one, as `find` does, that is kept already, where there is one."""
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
        return next((_mapping(written) for kept, written in known if kept == name), None)


def _written(mapping: Mapping) -> dict[str, Any]:
    assert isinstance(mapping.row, Container)
    columns = {what: getattr(mapping, what) for what in _OPTIONAL}
    return {
        "row": astuple(mapping.row),
        "names": (mapping.name, mapping.schema, mapping.table, mapping.source, mapping.key.name),
        "values": [column.name for column in mapping.values],
        **{what: column and column.name for what, column in columns.items()},
    }


def _mapping(written: dict[str, Any]) -> Mapping:
    name, schema, table, source, key = written["names"]
    values = tuple(_column(each) for each in written["values"])
    flags, cas, expiry = (written[what] and _column(written[what]) for what in _OPTIONAL)
    row = Container(*written["row"])
    return Mapping(name, schema, table, source, _column(key), values, flags, cas, expiry, row=row)


def _column(name: str) -> Column:
    return Column(name, Kind.TEXT)


_WAYS: Final = 8  # entries of a bucket
_MARK: Final = 4  # cells: the item, its content, what is kept, when it was written
_STALE: Final = 1
_TAKEN: Final = 2


class _Table:
    """Numbers by item and content; one is never 0."""

    def __init__(self) -> None:
        self._cells = anonymous((1 + LIMIT * _MARK) * CELL).cast("Q")  # the first counts writes

    def get(self, item: int, content: int) -> int:
        """Return the number kept for this content of an item, 0 for none."""
        cells = self._cells
        for at in self._bucket(item):
            if cells[at] == item and cells[at + 1] == content:
                return cells[at + 2]
        return 0

    def put(self, item: int, content: int, number: int) -> None:
        """Keep a number for one content of an item, instead of any other."""
        cells = self._cells
        cells[0] += 1
        own = next((at for at in self._bucket(item) if cells[at] == item), None)
        at = min(self._bucket(item), key=lambda at: cells[at + 3]) if own is None else own
        for cell, value in enumerate((item, content, number, cells[0]), at):
            cells[cell] = value

    def _bucket(self, item: int) -> range:
        first = 1 + item % (LIMIT // _WAYS) * _WAYS * _MARK
        return range(first, first + _WAYS * _MARK, _MARK)


class MarkTables:
    """The two tables, made before the workers.

    A table consists of buckets of a few entries; the oldest entry of a bucket is replaced. Items are identified by 64
    bits of a hash, which is the same in every process forked from one.
    """

    def __init__(self) -> None:
        self.marks = _Table()
        self.answered = _Table()


class WorkerMarks(Marks):
    """Marks that all workers see.

    Args:
        memory: has the lock.
        tables: where they are.
    """

    def __init__(self, memory: Memory, tables: MarkTables) -> None:
        super().__init__()
        self._memory = memory
        self._tables = tables
        self._held = False

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep the other workers from the marks."""
        if self._held:
            yield
            return
        with self._memory.locked(Lock.MARKS):
            self._held = True
            try:
                yield
            finally:
                self._held = False

    def of(self, at: Key, entry: Entry) -> Mark:
        """Return what is said of an item."""
        with self.exclusive():
            bits = self._tables.marks.get(_item(at), _content(entry))
        return Mark(stale=bool(bits & _STALE), taken=bool(bits & _TAKEN))

    def mark(self, at: Key, entry: Entry, mark: Mark) -> None:
        """Say this of an item from now on."""
        with self.exclusive():
            self._tables.marks.put(_item(at), _content(entry), mark.stale * _STALE | mark.taken * _TAKEN)

    def answered(self, at: Key, entry: Entry, now: int) -> None:
        """Note that an item was answered to a meta get."""
        with self.exclusive():
            self._tables.answered.put(_item(at), _content(entry), now)

    def answered_at(self, at: Key, entry: Entry) -> int | None:
        """Return the UNIX second in which an item was answered last; None: not that it is known."""
        with self.exclusive():
            return self._tables.answered.get(_item(at), _content(entry)) or None


def _item(at: Key) -> int:
    return hash(at) & MASK


def _content(entry: Entry) -> int:
    return content_of(entry) & MASK
