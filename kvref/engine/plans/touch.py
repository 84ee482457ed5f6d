"""Decide touch, and gat and gats of one word."""

from __future__ import annotations

from kvref.engine.accesses import Change
from kvref.engine.counters import counted
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, HIT, CachedRow, Decision, Renewal
from kvref.engine.plans.retrieve import with_cas
from kvref.engine.verbs import retrieve
from kvref.engine.verbs.store import OVER
from kvref.protocol import commands as c
from kvref.protocol.fast_path import END, renamed
from kvref.protocol.replies import Status

_RECORD = c.Touch(b"", 0)


class Touching:
    """Decide touch and gat of one mapping, by the rules of `kvref.engine.verbs.retrieve`.

    Args:
        bound: the mapping.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._touched = tuple(counted(_RECORD, Status.TOUCHED, missing_counted=False))
        self._missed = tuple(counted(_RECORD, Status.NOT_FOUND, missing_counted=False))

    def touch(self, row: CachedRow, word: bytes, command: tuple[int, bool]) -> Decision:
        """Decide a touch; the command is its time and whether it has noreply."""
        exptime, quiet = command
        found, new, parameters = self._retimed(row, word, exptime)
        if not found:
            return b"" if quiet else b"NOT_FOUND\r\n", None, None
        return b"" if quiet else b"TOUCHED\r\n", new, parameters

    def get_and_touch(self, row: CachedRow, key: bytes, command: tuple[int, bool, bytes]) -> Decision:
        """Decide a gat or gats of one word; the command is its time, whether cas numbers are shown, and the word."""
        exptime, cas, word = command
        found, new, parameters = self._retimed(row, key, exptime)
        if not found:
            return END, None, None
        item = with_cas(row[HIT], row) if cas else row[HIT]
        return (item if word is key else renamed(item, key, word)) + END, new, parameters

    def _retimed(self, row: CachedRow, word: bytes, exptime: int) -> tuple[bool, CachedRow | None, Renewal | None]:
        """Return whether there is a row, the row with its new time, and what is written; see `retrieve.retimed`."""
        bound = self._bound
        mapping = bound.mapping
        time = retrieve.time_asked(bound.session, mapping, exptime, bound.now)
        if bound.hides(row):
            bound.counted.append(self._missed)
            return False, None, None
        bound.counted.append(self._touched)
        bound.events.append((word, Change.TOUCHED))
        if mapping.expiry is None:
            return True, ABSENT if time == OVER else None, None
        if row[EXPIRY] == time:
            return True, None, None
        hit, rowid, flags, cas, _, cells = row
        renewed = (time,) if mapping.cas is None else (row[CAS], time)
        return True, (hit, rowid, flags, cas, time, cells), Renewal(renewed)
