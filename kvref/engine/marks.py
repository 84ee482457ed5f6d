"""State of rows for meta commands that tables have no column for: in memory, bounded, never on disk.

A mark belongs to one content of a row: any write of the row, by any client, ends the mark, a touch does not. If a row
has no cas number, its expiry time is used instead.
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
    """State of an item.

    Args:
        stale: the value is out of date: the first client that reads it is to recache it.
        taken: a client has received the instruction to recache it.
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
        """Lock the marks, so that only one client receives the instruction to recache an item."""
        return nullcontext()

    def of(self, at: Key, entry: Entry) -> Mark:
        """Return the mark of an item."""
        content, mark = self._marks.get(at, (0, Mark()))
        return mark if content == content_of(entry) else Mark()

    def mark(self, at: Key, entry: Entry, mark: Mark) -> None:
        """Set the mark of an item."""
        _keep(self._marks, at, (content_of(entry), mark), self._limit)

    def take(self, at: Key, entry: Entry) -> None:
        """Note that a client has received the instruction to recache an item."""
        self.mark(at, entry, replace(self.of(at, entry), taken=True))

    def answered(self, at: Key, entry: Entry, now: int) -> None:
        """Note that a meta get has returned an item."""
        _keep(self._answered, at, (content_of(entry), now), self._limit)

    def answered_at(self, at: Key, entry: Entry) -> int | None:
        """Return the UNIX second in which an item was last returned; None: unknown."""
        content, when = self._answered.get(at, (0, 0))
        return when if when and content == content_of(entry) else None


def content_of(entry: Entry) -> int:
    """Return a hash of an item's content, which is the same in every process forked from this one."""
    return hash((entry.cas or -entry.expiry, entry.flags, entry.data))


def _keep(kept: OrderedDict[Key, T], at: Key, value: T, limit: int) -> None:
    kept[at] = value
    kept.move_to_end(at)
    if len(kept) > limit:
        kept.popitem(last=False)
