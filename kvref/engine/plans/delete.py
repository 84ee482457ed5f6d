"""Decide delete."""

from __future__ import annotations

from kvref.engine.counters import counted
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, CachedRow, Decision
from kvref.protocol import commands as c
from kvref.protocol.replies import Status

_RECORD = c.Delete(b"")


class Deletion:
    """Decide deletes of one mapping, by the rules of `kvref.engine.verbs.delete`."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._deleted = tuple(counted(_RECORD, Status.DELETED, missing_counted=False))
        self._missed = tuple(counted(_RECORD, Status.NOT_FOUND, missing_counted=False))

    def delete(self, row: CachedRow, _word: bytes, quiet: bool) -> Decision:
        """Decide a delete; the command is whether it has noreply."""
        status, new = self.removed(row, 0)
        return b"" if quiet else status.value, new, None

    def removed(self, row: CachedRow, number: int) -> tuple[Status, CachedRow | None]:
        """Return the outcome of a delete and the row afterwards, None if it stays; see `delete.refusal`.

        Args:
            number: the cas number that it must have, 0 for any.
        """
        bound = self._bound
        if bound.hides(row):
            bound.counted.append(self._missed)
            return Status.NOT_FOUND, None
        if number and bound.session.is_another(row[CAS], number):
            return Status.EXISTS, None
        bound.counted.append(self._deleted)
        return Status.DELETED, ABSENT
