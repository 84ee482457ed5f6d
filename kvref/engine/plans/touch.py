"""Decide touch, gat and gats."""

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
TOUCHED = tuple(counted(_RECORD, Status.TOUCHED, missing_counted=False))
MISSED = tuple(counted(_RECORD, Status.NOT_FOUND, missing_counted=False))


class Touching:
    """Decide touch and gat of one mapping, by the rules of `kvref.engine.verbs.retrieve`.

    Args:
        bound: the mapping.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def touch(self, row: CachedRow, word: bytes, command: tuple[int, bool]) -> Decision:
        """Decide a touch; the command is its time and whether it has noreply."""
        exptime, quiet = command
        found, new, parameters = self.retimed(row, word, exptime)
        if not found:
            return b"" if quiet else b"NOT_FOUND\r\n", None, None
        return b"" if quiet else b"TOUCHED\r\n", new, parameters

    def get_and_touch(self, row: CachedRow, key: bytes, command: tuple[int, bool, bytes]) -> Decision:
        """Decide a gat or gats of one word; the command is its time, whether cas numbers are shown, and the word."""
        exptime, cas, word = command
        found, new, parameters = self.retimed(row, key, exptime)
        if not found:
            return END, None, None
        item = with_cas(row[HIT], row) if cas else row[HIT]
        return (item if word is key else renamed(item, key, word)) + END, new, parameters

    def retimed(self, row: CachedRow, word: bytes, exptime: int) -> tuple[bool, CachedRow | None, Renewal | None]:
        """Return whether there is a row, the row with its new time, and what is written; see `retrieve.touched`."""
        bound = self._bound
        time = retrieve.time_asked(bound.session, bound.mapping, exptime, bound.now)
        if bound.hides(row):
            bound.counted.append(MISSED)
            return False, None, None
        bound.counted.append(TOUCHED)
        bound.events.append((word, Change.TOUCHED))
        new, parameters = renewed(bound, row, time)
        return True, new, parameters


def renewed(bound: Bound, row: CachedRow, time: int) -> tuple[CachedRow | None, Renewal | None]:
    """Return a row with another time, None if nothing is written, and what is written; see `retrieve.retimed`.

    Args:
        bound: the mapping.
        row: as it is.
        time: UNIX second, see `retrieve.time_asked`.
    """
    mapping = bound.mapping
    if mapping.expiry is None:
        return ABSENT if time == OVER else None, None
    if row[EXPIRY] == time:
        return None, None
    hit, rowid, flags, cas, _, cells = row
    return (hit, rowid, flags, cas, time, cells), Renewal((time,) if mapping.cas is None else (row[CAS], time))
