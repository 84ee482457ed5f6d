"""Decide delete."""

from __future__ import annotations

from kvref.engine.counters import counted
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CachedRow, Decision
from kvref.protocol import commands as c
from kvref.protocol.replies import Status

_RECORD = c.Delete(b"")


class Deletion:
    """Decide deletes of one mapping, by the rules of `kvref.engine.verbs.delete`.

    Args:
        bound: the mapping.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._deleted = tuple(counted(_RECORD, Status.DELETED, missing_counted=False))
        self._missed = tuple(counted(_RECORD, Status.NOT_FOUND, missing_counted=False))

    def delete(self, row: CachedRow, _word: bytes, quiet: bool) -> Decision:
        """Decide a delete; the command is whether it has noreply."""
        bound = self._bound
        if bound.hides(row):
            bound.counted.append(self._missed)
            return b"" if quiet else b"NOT_FOUND\r\n", None, None
        bound.counted.append(self._deleted)
        return b"" if quiet else b"DELETED\r\n", ABSENT, None
