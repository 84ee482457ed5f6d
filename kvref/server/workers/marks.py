"""Marks of rows that all workers share."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final

from kvref.engine.access_log import ItemAccess
from kvref.engine.shared_state import LIMIT, Mark, Marks
from kvref.server.workers.shared_memory import CELL, MASK, Lock, Memory, anonymous

_WAYS: Final = 8  # entries of a bucket
_MARK: Final = 4  # cells: the item, its content, the number, when it was written
_STALE: Final = 1
_TAKEN: Final = 2
# Bits of an access; its second is in those above.
_KNOWN: Final = 1
_HIT: Final = 2
_SHOWN: Final = 4
_SECOND: Final = 3


class _Table:
    """Numbers by item and content; one is never 0."""

    def __init__(self) -> None:
        self._cells = anonymous((1 + LIMIT * _MARK) * CELL).cast("Q")  # the first counts writes

    @property
    def written(self) -> bool:
        return bool(self._cells[0])

    def get(self, item: int) -> tuple[int, int]:
        """Return the content and the number of an item, zeros for none."""
        cells = self._cells
        for at in self._bucket(item):
            if cells[at] == item:
                return cells[at + 1], cells[at + 2]
        return 0, 0

    def put(self, item: int, content: int, number: int) -> None:
        """Store the content and the number of an item, instead of any others."""
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
        self.accesses = _Table()
        self.requested = anonymous(CELL)


class WorkerMarks(Marks):
    """Marks that all workers see."""

    def __init__(self, memory: Memory, tables: MarkTables) -> None:
        super().__init__()
        self._memory = memory
        self._tables = tables
        self._has_lock = False

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        if self._has_lock:
            yield
            return
        with self._memory.locked(Lock.MARKS):
            self._has_lock = True
            try:
                yield
            finally:
                self._has_lock = False

    @property
    def any(self) -> bool:
        return self._tables.marks.written

    def _mark_at(self, item: Hashable) -> tuple[int, Mark]:
        with self.exclusive():
            content, bits = self._tables.marks.get(_item(item))
        return content, Mark(stale=bool(bits & _STALE), taken=bool(bits & _TAKEN))

    def _store_mark(self, item: Hashable, mark: tuple[int, Mark]) -> None:
        content, flags = mark
        with self.exclusive():
            self._tables.marks.put(_item(item), content, flags.stale * _STALE | flags.taken * _TAKEN)

    @property
    def requested(self) -> bool:
        return bool(self._tables.requested[0])

    def request(self) -> None:
        self._tables.requested[0] = 1

    def _access(self, at: Hashable) -> ItemAccess:
        content, number = self._tables.accesses.get(_item(at))
        return ItemAccess(number >> _SECOND, bool(number & _HIT), content if number & _SHOWN else None)

    def _store_access(self, at: Hashable, access: ItemAccess) -> None:
        shown = access.content is not None
        number = access.time << _SECOND | shown * _SHOWN | access.hit * _HIT | _KNOWN
        self._tables.accesses.put(_item(at), access.content or 0, number)


def _item(at: Hashable) -> int:
    return hash(at) & MASK
