"""Rows of the store in memory, for plans."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, Protocol

from kvref.engine import operations
from kvref.engine.operations import Cell, Row
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, HIT, CachedRow
from kvref.engine.values import RefusedError, to_bytes
from kvref.storage.plans import Overlay, RefusedWriteError, SplitGroupError, Write, WriteKind, written_row

LARGEST: Final = 4 << 10  # bytes of a row of the demo table: 1,024 characters


class Lookups(Protocol):
    """What the rows need of the store."""

    def execute(self, operation: operations.Operation) -> Any:
        """Answer one operation."""

    def identity(self, key: Cell) -> Hashable:
        """Return what equal keys have in common; `key` is as the wire has it."""


class Always:
    """The mapping never changes."""

    live = True


class MemoryRows:
    """The rows of the only mapping, see `PlannedRows`; there is no row cache: each row is looked up.

    Args:
        store: has the rows.
        bound: rules of the commands.
    """

    rows: Final[dict[bytes, CachedRow]] = {}
    missing: Final[frozenset[bytes]] = frozenset()
    largest: Final = LARGEST
    source: Final = Always()

    def __init__(self, store: Lookups, bound: Bound) -> None:
        self._store = store
        self._bound = bound
        self._mapping = bound.mapping
        self.hits = 0

    def plan_write(self, word: bytes) -> None:
        """Do nothing: no row is shown without a plan."""

    def release(self) -> None:
        """Do nothing, see `plan_write`."""

    def begin(self) -> bool:
        """Return True: there are no other writers."""
        return True

    def read_many(self, words: Sequence[bytes], *, written: bool) -> Overlay:
        """See `PlannedRows`."""
        overlay = Overlay()
        absent: dict[object, bytes] = {}
        for word in words:
            if word in overlay.rows or word in overlay.aliases:
                continue
            try:
                cell = self._bound.key(word)
            except RefusedError:
                overlay.rows[word] = ABSENT
                continue
            found: Row | None = self._store.execute(operations.Lookup(self._mapping, cell))
            if found is None:
                key = absent.setdefault(self._store.identity(cell), word)
                overlay.rows[key] = ABSENT
            else:
                key = to_bytes(found.key)
                overlay.rows[key] = self._bound.row(key, found.values, 0, found.flags, found.cas, found.expiry)
            if key != word:
                overlay.aliases[word] = key
        if written and overlay.aliases and self._bound.rules.renames_key:
            raise SplitGroupError
        return overlay

    def apply_many(self, writes: Sequence[Write]) -> None:
        """See `PlannedRows`; the store refuses none."""
        for write in writes:
            cause = self._store.execute(self._operation(write))
            if cause is not None:
                raise RefusedWriteError(cause)

    def _operation(self, write: Write) -> operations.Insert | operations.Update | operations.Remove:
        kind, word, spelled, new, _, parameters = write
        key: Cell = self._bound.key(word)
        if kind is WriteKind.DELETE:
            return operations.Remove(self._mapping, key)
        clears = self._bound.rules.clears_unmapped
        if kind is WriteKind.INSERT:
            row = written_row(self._mapping, self._bound.key(spelled), parameters)
            return operations.Insert(self._mapping, row, clears)
        before: Row = self._store.execute(operations.Lookup(self._mapping, key))
        if kind is WriteKind.RENEW:
            before.cas, before.expiry = new[CAS], new[EXPIRY]
            return operations.Update(self._mapping, key, before, clears, value_unchanged=True)
        stored = self._bound.key(spelled) if self._bound.rules.renames_key else before.key
        assert new[HIT], "an update leaves a row"
        return operations.Update(self._mapping, key, written_row(self._mapping, stored, parameters), clears)
