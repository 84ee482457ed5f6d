"""Decide set, add, replace, append, prepend, cas and delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NoReturn

from kvref.engine.access_log import Change
from kvref.engine.counters import STORED_ITEM, counted
from kvref.engine.items import storage, times
from kvref.engine.operations import Cell
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, FLAGS, HIT, ROWID, CachedRow, Decision, RemovedError
from kvref.engine.values import RefusedError, ascii_width, has_text, shown_flags
from kvref.protocol import commands as c
from kvref.protocol.hits import SHOWN
from kvref.protocol.replies import Status

VERBS: Final = ("set", "add", "replace", "append", "prepend", "cas")
MAX_CACHED_FLAGS: Final = 1 << 12  # contents of the flags column, by what clients have sent
_STORED: Final = Change.STORED
_STORED_LINE: Final = Status.STORED.value
# What a storage command is answered, by the bytes of the reply.
OUTCOMES: Final = {
    status.value: status for status in (Status.STORED, Status.NOT_STORED, Status.EXISTS, Status.NOT_FOUND)
}

# A storage command: verb, flags, exptime, data, cas number, noreply.
Stored = tuple[str, int, int, bytes, int, bool]


class Storage:
    """Decide storage commands of one mapping, by the rules of `kvref.engine.items.storage`."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._mapping = bound.mapping
        self._rules = bound.rules
        # What the column has of flags that passed the check, and what a get shows of that.
        self._flags: dict[int, tuple[int | None, int]] = {}
        self._never = times.fit_time(bound.mapping, times.time_of(bound.session, 0, 0))
        self._names = {verb: _counted(verb) for verb in VERBS}
        self._stored = self._names["set"][Status.STORED] + STORED_ITEM
        first = bound.mapping.values[0]
        self._width = ascii_width(first) if bound.one_text else -1
        self._has_text = has_text(first)
        self._begins_before_key = bound.rules.unfit_key_fails  # the plugin opens its table before (more:keyfail-001)
        self._checks_appended = storage.checks_numbers(bound.rules, "append")

    def decider(self, verb: str) -> Callable[[CachedRow, bytes, Stored], Decision]:
        """Return what decides a verb."""
        match verb:
            case "set":
                return self.set
            case "append" | "prepend":
                return self.append
            case _:
                return self.conditional

    def set(self, row: CachedRow, word: bytes, command: Stored) -> Decision:
        """Decide a set, or a command whose condition holds."""
        verb, flags, exptime, data, _, quiet = command
        bound = self._bound
        if self._begins_before_key:
            bound.writing = True
        if not row[HIT]:
            bound.key(word)  # a row proves its key
        expiry = self._expiry(exptime) if exptime else self._never
        stored, seen = self._flags.get(flags) or self._fit_flags(flags)
        bound.writing = True
        cas = bound.next_cas()  # taken before the value is looked at (columns:cas-017)
        new: CachedRow
        cells: tuple[Cell, ...]
        if len(data) <= self._width and data.isascii():
            cells = (data.decode("ascii") if self._has_text else data,)
            new = SHOWN % (word, seen, len(data), data), row[ROWID], stored, cas, expiry, None
        else:
            try:
                cells = bound.values_of(data)
            except RefusedError as unfit:
                self._refuse(row, verb, unfit)
            new = bound.row(word, cells, row[ROWID], stored, cas, expiry)
        bound.counted.append(self._stored)
        bound.events.append((word, _STORED))
        reply = b"" if quiet else _STORED_LINE
        if bound.all_mapped:
            return reply, new, (*cells, stored, cas, expiry)
        if exptime < 0 and times.keeps_no_item(bound.session, self._mapping, exptime):
            return reply, ABSENT if row[HIT] else None, None
        return reply, new, bound.parameters(cells, stored, cas, expiry)

    def has_usual_numbers(self, command: Stored) -> bool:
        """Return whether the columns are known to hold the flags and the time of a command, whatever row it finds."""
        return not command[2] and command[1] in self._flags

    def conditional(self, row: CachedRow, word: bytes, command: Stored) -> Decision:
        """Decide an add, a replace or a cas."""
        verb, flags, exptime, _, number, quiet = command
        if self._begins_before_key:
            self._bound.writing = True
        if not row[HIT]:
            storage.storage_key(self._bound.key, verb, word, self._rules)
        if exptime:
            self._expiry(exptime)
        if flags not in self._flags:
            self._fit_flags(flags)
        self._bound.writing = True
        unmet = self._unmet(row, verb, number)
        if unmet is None:
            reply, new, parameters = self.set(row, word, command)
            self._bound.counted[-1] = self._names[verb][Status.STORED] + STORED_ITEM
            return reply, new, parameters
        if verb == "add" and row[HIT] and unmet is Status.NOT_STORED:
            self._bound.events.append((word, Change.OVERWRITTEN))  # an access, see `storage.found_by_add`
        return self._refused(verb, unmet, quiet=quiet)

    def append(self, row: CachedRow, word: bytes, command: Stored) -> Decision:
        """Decide an append or a prepend."""
        verb, flags, exptime, data, number, quiet = command
        bound, session, mapping = self._bound, self._bound.session, self._mapping
        if self._begins_before_key:
            bound.writing = True
        if not row[HIT]:
            bound.key(word)
        if self._checks_appended:
            storage.check_numbers(session, mapping, _record(command, word), bound.now)
        bound.writing = True
        unmet = self._unmet(row, verb, number)
        if unmet is not None:
            return self._refused(verb, unmet, quiet=quiet)
        stored, expiry = row[FLAGS], row[EXPIRY]
        if self._rules.append_takes_request:
            stored = storage.fit_flags(mapping, flags)
            expiry = times.fit_time(mapping, times.time_of(session, exptime, bound.now, from_now=True))
        cells = storage.appended(session, mapping, verb, flags, data, bound.cells(row), bound.values_of)
        cas = bound.next_cas()
        bound.counted.append(self._names[verb][Status.STORED] + STORED_ITEM)
        bound.events.append((word, Change.STORED))
        new = bound.row(word, cells, row[ROWID], stored, cas, expiry)
        parameters = (*cells, stored, cas, expiry) if bound.all_mapped else bound.parameters(cells, stored, cas, expiry)
        return b"" if quiet else _STORED_LINE, new, parameters

    def _unmet(self, row: CachedRow, verb: str, number: int) -> Status | None:
        """Return the reply to a command whose condition does not hold, None where it holds."""
        present = bool(row[HIT]) and not (row[EXPIRY] and self._bound.is_missing(row))
        unmet = storage.unmet(self._bound.session, verb, present, row[CAS], number)
        if unmet is not None and verb == "add":
            self._bound.next_cas()  # the number is taken by then (more:clock-001)
        return unmet

    def _refused(self, verb: str, reply: Status, *, quiet: bool) -> Decision:
        self._bound.counted.append(self._names[verb][reply])
        return b"" if quiet else reply.value, None, None

    def _refuse(self, row: CachedRow, verb: str, unfit: RefusedError) -> NoReturn:
        if row[HIT] and verb == "set" and self._bound.session.refused_set_removes:
            raise RemovedError(unfit.reply) from None
        raise unfit

    def _expiry(self, exptime: int) -> int | None:
        """Return the expiry to write; raises RefusedError if the column cannot hold it and the profile checks that."""
        time = times.time_of(self._bound.session, exptime, self._bound.now)
        if not self._rules.wraps_integers:
            times.check_time(self._mapping, time)
        return times.fit_time(self._mapping, time)

    def _fit_flags(self, flags: int) -> tuple[int | None, int]:
        """Return the flags to write and those that a get shows then, and keep both; raises as `_expiry`."""
        if not self._rules.wraps_integers:
            storage.check_flags(self._mapping, flags)
        if len(self._flags) >= MAX_CACHED_FLAGS:
            self._flags.clear()
        cell = storage.fit_flags(self._mapping, flags)
        stored = self._flags[flags] = cell, shown_flags(cell)
        return stored


def _record(command: Stored, word: bytes) -> c.Store:
    verb, flags, exptime, _, number, quiet = command
    return c.Store(verb, word, flags, exptime, b"", number, quiet)


@cache
def _counted(verb: str) -> dict[Status, tuple[str, ...]]:
    """Return the names of the counters of a verb by its reply."""
    record: Any = c.Store(verb, b"", 0, 0, b"")
    return {reply: tuple(counted(record, reply, missing_counted=False)) for reply in OUTCOMES.values()}


_DELETED: Final = tuple(counted(c.Delete(b""), Status.DELETED, missing_counted=False))
_MISSED: Final = tuple(counted(c.Delete(b""), Status.NOT_FOUND, missing_counted=False))


class Deletion:
    """Decide deletes of one mapping."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def delete(self, row: CachedRow, _word: bytes, quiet: bool) -> Decision:
        """Decide a delete; the command is whether it has noreply."""
        status, new = self.removed(row, 0)
        return b"" if quiet else status.value, new, None

    def removed(self, row: CachedRow, number: int) -> tuple[Status, CachedRow | None]:
        """Return the outcome and the row afterwards, None if it stays; `number` is its required cas number, 0: any."""
        bound = self._bound
        bound.writing = True
        if bound.is_missing(row):
            bound.counted.append(_MISSED)
            return Status.NOT_FOUND, None
        if number and bound.session.is_another(row[CAS], number):
            return Status.EXISTS, None
        bound.counted.append(_DELETED)
        return Status.DELETED, ABSENT
