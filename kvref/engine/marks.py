"""What meta commands remember of rows beside the tables, which have no place for it: in memory, bounded, never on disk.

A mark is about one content of a row: any write of it, by whom ever, ends the mark, and a touch does not. Where a row
has no cas number its time stands for it.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from kvref.engine.cache.memory import Entry, Key

LIMIT: Final = 1 << 16  # marks, and as many rows that were answered; the oldest goes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """What is said of an item.

    Args:
        stale: its value is old: who asks first is told to make it anew.
        taken: somebody has been told.
    """

    stale: bool = False
    taken: bool = False


class Marks:
    """Marks of items, and when they were answered, by place and content.

    Args:
        limit: how many of each are kept.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._marks: OrderedDict[Key, tuple[int, Mark]] = OrderedDict()
        self._answered: OrderedDict[Key, tuple[int, int]] = OrderedDict()

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep others who share the marks from them, so that only one is told to make an item anew."""
        return nullcontext()

    def of(self, at: Key, entry: Entry) -> Mark:
        """Return what is said of an item."""
        content, mark = self._marks.get(at, (0, Mark()))
        return mark if content == content_of(entry) else Mark()

    def mark(self, at: Key, entry: Entry, mark: Mark) -> None:
        """Say this of an item from now on."""
        _keep(self._marks, at, (content_of(entry), mark), self._limit)

    def take(self, at: Key, entry: Entry) -> None:
        """Note that somebody has been told to make an item anew."""
        self.mark(at, entry, replace(self.of(at, entry), taken=True))

    def answered(self, at: Key, entry: Entry, now: int) -> None:
        """Note that an item was answered to a meta get."""
        _keep(self._answered, at, (content_of(entry), now), self._limit)

    def answered_at(self, at: Key, entry: Entry) -> int | None:
        """Return the UNIX second in which an item was answered last; None: not that it is known."""
        content, when = self._answered.get(at, (0, 0))
        return when if when and content == content_of(entry) else None


def content_of(entry: Entry) -> int:
    """Return what tells one content of an item from another, the same in every process that was forked off this one."""
    return hash((entry.cas or -entry.expiry, entry.flags, entry.data))


def _keep(kept: OrderedDict[Key, T], at: Key, value: T, limit: int) -> None:
    kept[at] = value
    kept.move_to_end(at)
    if len(kept) > limit:
        kept.popitem(last=False)
