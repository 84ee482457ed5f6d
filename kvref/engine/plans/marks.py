"""Marks of items and accesses to them, as the decided commands of a group see and change them."""

from __future__ import annotations

from kvref.engine.accesses import Access, Change, identity_of, replay
from kvref.engine.cache.memory import Entry
from kvref.engine.mapping import Mapping
from kvref.engine.plans.bound import Bound
from kvref.engine.shared_state import Mark


class GroupMarks:
    """The marks that all connections share: the next command sees a change, which `Bound.discard` takes back."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._marks = bound.session.shared.marks
        self.exclusive, self.of = self._marks.exclusive, self._marks.of
        self._identity = identity_of(bound.mapping.key)

    def mark(self, mapping: Mapping, key: bytes, entry: Entry, mark: Mark) -> None:
        self._bound.undo.append(self._marks.saved(mapping, key))
        self._marks.mark(mapping, key, entry, mark)

    def take(self, mapping: Mapping, key: bytes, entry: Entry) -> None:
        self._bound.undo.append(self._marks.saved(mapping, key))
        self._marks.take(mapping, key, entry)

    def fetched(self, _mapping: Mapping, key: bytes, _now: int) -> None:
        self._bound.events.append(key)

    def changed(self, _mapping: Mapping, key: bytes, _now: int, change: Change) -> None:
        self._bound.events.append((key, change))

    def access(self, mapping: Mapping, key: bytes, entry: Entry) -> Access:
        """See `Marks.access`: what was noted before, and what the commands of the group have noted."""
        access = self._marks.access(mapping, key, entry)
        if self._bound.events:
            events = replay([float(self._bound.now), *self._bound.events], self._identity, lambda _: access)
            return events.get(self._identity(key), access)
        return access
