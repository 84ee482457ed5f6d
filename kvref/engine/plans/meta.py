"""Decide the meta commands mg, ms, md and ma, which consist of the other verbs (memcached 1.6, proto_text.c).

The command of a plan is its record. The state that memcached keeps in an item in addition to its value (stale, won,
fetched) is in `shared_state.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Generic, TypeVar

from kvref.engine.access_log import Change, ItemAccess
from kvref.engine.cache.memory import Entry
from kvref.engine.counters import counted
from kvref.engine.items import meta as items
from kvref.engine.items import times
from kvref.engine.mapping import Mapping
from kvref.engine.plans import retrieve as gets
from kvref.engine.plans.arithmetic import Arithmetic
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.deciders import Deciders
from kvref.engine.plans.plan import (
    ABSENT,
    CAS,
    EXPIRY,
    FLAGS,
    HIT,
    CachedRow,
    Decision,
    Parameters,
    RemovedError,
    Renewal,
)
from kvref.engine.plans.store import Stored
from kvref.engine.session import Session
from kvref.engine.shared_state import Mark, content_of
from kvref.engine.values import shown_flags, wrapped
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.replies import MetaCode, Status

_CODES: Final = {status.value: code for status, code in items.CODES.items()}
_EXISTS: Final = Status.EXISTS.value
_STORED: Final = Status.STORED.value
_TOP: Final = 1 << 64


class GroupMarks:
    """The marks that all connections share: the next command sees a change, which `Bound.discard` takes back."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._marks = bound.session.shared.marks
        self.exclusive, self.of = self._marks.exclusive, self._marks.of

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

    def access(self, mapping: Mapping, key: bytes, entry: Entry) -> ItemAccess:
        """See `Marks.access`: what was noted before, and what the commands of the group have noted."""
        events = self._bound.events
        if not events:
            return self._marks.access(mapping, key, entry)
        access = self._marks.access(mapping, key, entry, [float(self._bound.now), *events])
        events.append((key, content_of(entry)))
        return access


T = TypeVar("T")
# The reply, as `encoded` of `MetaReads` returns it; the rest as of `Decision`.
MetaDecision = tuple[T, CachedRow | None, Parameters | None]
MetaCommand = c.MetaGet | c.MetaSet | c.MetaDelete | c.MetaArithmetic


class MetaReads(Generic[T]):
    """Decide the meta commands of one mapping that write nothing.

    Args:
        session: it has the rights of the connections.
        encoded: returns what a decision has for a reply: its bytes for plans, itself for steps.
    """

    def __init__(self, bound: Bound, session: Session, encoded: Callable[[MetaCommand, r.Meta], T]) -> None:
        self._bound = bound
        self._session = session
        self._encoded = encoded
        self._marks = GroupMarks(bound)

    def get(self, row: CachedRow, word: bytes, command: c.MetaGet) -> tuple[T, None, None]:
        """Decide an mg without T and N."""
        found = None if not row[HIT] or self._bound.count_expired(row) else self._found(row, word)
        return self._encoded(command, self._shown(command, found)), None, None

    def _shown(self, command: c.MetaGet, found: items.Found | None, *, created: bool = False) -> r.Meta:
        """Return the reply to an mg that sets no time, and count it."""
        bound = self._bound
        if found is None:
            bound.counted.append(gets.MISSED)
            return r.Meta(MetaCode.MISSED)
        bound.counted.append(gets.FOUND)
        return items.answer(self._session, self._marks, command, found, found, bound.now, created=created)

    def _found(self, row: CachedRow, word: bytes) -> items.Found:
        bound = self._bound
        cas, expiry = (row[CAS] or 0) % _TOP, max(row[EXPIRY] or 0, 0)
        entry = Entry(shown_flags(row[FLAGS]), bound.data(row), cas, expiry, bound.now)
        return items.Found((bound.mapping.identity, word), entry, bound.mapping)


class MetaWrites(MetaReads[T]):
    """Decide the meta commands of one mapping that may write, see `MetaReads`."""

    def __init__(
        self, bound: Bound, session: Session, deciders: Deciders, encoded: Callable[[MetaCommand, r.Meta], T]
    ) -> None:
        super().__init__(bound, session, encoded)
        self._stores, self._deletion = deciders.stores, deciders.deletion
        self._sums = Arithmetic(bound, numbered=True)

    def get_and_write(self, row: CachedRow, word: bytes, command: c.MetaGet) -> MetaDecision[T]:
        """Decide an mg with T or N."""
        bound = self._bound
        bound.writing = True
        before, created = row, False
        new: CachedRow | None = None
        parameters: Parameters | None = None
        found = None if bound.is_missing(row) else self._found(row, word)
        if found is None and command.vivify is not None:
            items.check_times(bound.session, bound.mapping, command, bound.now)
            shown, new, parameters = self._stored(row, word, ("add", 0, command.vivify, b"", 0, False))
            created = shown == _STORED
            if new is not None and not bound.is_missing(new):
                row, found = new, self._found(new, word)
            elif created and times.expires_at_once(bound.session, command.vivify):
                entry = Entry(0, b"", bound.session.written_cas, times.EXPIRED_SECOND, bound.now)
                found = items.Found((bound.mapping.identity, word), entry, bound.mapping)
        bound.succeeded = found is not None
        if command.exptime is None or found is None:
            return self._encoded(command, self._shown(command, found, created=created)), new, parameters
        bound.counted.append(gets.TOUCHED)
        touched, new, parameters = self._retimed(before, row, found, command.exptime, (new, parameters))
        reply = items.answer(self._session, self._marks, command, found, touched, bound.now, created=created)
        bound.events.append((word, Change.MARKED))  # the reply shows accesses to the item before
        return self._encoded(command, reply), new, parameters

    def set(self, row: CachedRow, word: bytes, command: c.MetaSet) -> MetaDecision[T]:
        inner = command.verb, command.flags, command.exptime, command.data, command.cas, False
        shown, new, parameters = self._stored(row, word, inner)
        if shown == _EXISTS and command.stale and command.verb == "cas":
            found = self._found(row, word)
            if 0 < command.cas < found.entry.cas:
                mark = self._marks.of(found.mapping, word, found.entry)
                inner = "set", command.flags, found.entry.expiry, command.data, 0, False
                shown, new, parameters = self._stored(row, word, inner)
                if new is not None:
                    stored = self._found(new, word)
                    self._marks.mark(stored.mapping, word, stored.entry, replace(mark, stale=True))
        if shown != _STORED or not command.has(b"c"):
            return self._encoded(command, r.Meta(_CODES[shown])), new, parameters
        cas = new[CAS] if new is not None and new[HIT] else self._written_cas
        return self._encoded(command, r.Meta(MetaCode.DONE, r.MetaItem(cas=(cas or 0) % _TOP))), new, parameters

    def delete(self, row: CachedRow, word: bytes, command: c.MetaDelete) -> MetaDecision[T]:
        bound = self._bound
        bound.writing = True
        if command.stale:
            return self._make_stale(row, word, command)
        if command.cas == 0 and not bound.is_missing(row) and (row[CAS] or 0) % _TOP:
            return self._encoded(command, r.Meta(MetaCode.EXISTS)), None, None
        status, new = self._deletion.removed(row, command.cas or 0)
        return self._encoded(command, r.Meta(items.CODES[status])), new, None

    def _make_stale(self, row: CachedRow, word: bytes, command: c.MetaDelete) -> MetaDecision[T]:
        """Decide an md with I."""
        bound, mapping = self._bound, self._bound.mapping
        if bound.is_missing(row):
            return self._encoded(command, r.Meta(MetaCode.NOT_FOUND)), None, None
        if command.cas is not None and command.cas != (row[CAS] or 0) % _TOP:
            return self._encoded(command, r.Meta(MetaCode.EXISTS)), None, None
        items.check_markable(mapping)
        if command.exptime is not None:
            retimed, renewal = self._renewed(row, command.exptime)
            if times.expires_at_once(bound.session, command.exptime):
                bound.events.append((word, Change.MARKED))
                # No client reads it any more, so that no mark is needed.
                return self._encoded(command, r.Meta(MetaCode.DONE)), retimed, renewal
            row = retimed or row
        hit, rowid, flags, _, expiry, cells = row
        new = hit, rowid, flags, bound.next_cas(), expiry, cells
        bound.events.append((word, Change.MARKED))
        self._marks.mark(mapping, word, self._found(new, word).entry, Mark(stale=True))
        parameters = Renewal((new[CAS],) if mapping.expiry is None else (new[CAS], expiry))
        return self._encoded(command, r.Meta(MetaCode.DONE)), new, parameters

    def add(self, row: CachedRow, word: bytes, command: c.MetaArithmetic) -> MetaDecision[T]:
        bound = self._bound
        items.check_times(bound.session, bound.mapping, command, bound.now)
        inner = c.Arithmetic(
            command.increment, word, command.delta,
            initial=command.initial, exptime=command.vivify, cas=command.cas,
        )  # fmt: skip
        result, new, parameters = self._sums.sum(row, word, inner)
        if isinstance(result, Status):
            return self._encoded(command, r.Meta(items.CODES[result])), None, None
        item = r.MetaItem(ttl=0, earlier=0, cas=bound.session.written_cas)  # of a number that is over at once
        if command.shows_item and new is not None and not bound.is_missing(new):
            found = touched = self._found(new, word)
            if command.exptime is not None:
                touched, new, parameters = self._retimed(row, new, found, command.exptime, (new, parameters))
                bound.events.append((word, Change.MARKED))
            item = r.MetaItem(cas=found.entry.cas, ttl=touched.left(bound.now), earlier=found.left(bound.now))
        data = b"%d" % result if command.has(b"v") else None
        return self._encoded(command, r.Meta(MetaCode.DONE, item, data)), new, parameters

    def _stored(self, row: CachedRow, word: bytes, command: Stored) -> Decision:
        """Decide a storage command within another command, which is counted even if it removes its row."""
        try:
            return self._stores[command[0]](row, word, command)
        except RemovedError as removed:
            verb, flags, exptime, data, number, _ = command
            record = c.Store(verb, word, flags, exptime, data, number)
            self._bound.counted.append(tuple(counted(record, removed.reply, missing_counted=False)))
            raise

    @property
    def _written_cas(self) -> int | None:
        """Return the cas number of an item that a command by steps has stored, and that is gone at once."""
        column = self._bound.mapping.cas
        return None if column is None else wrapped(column, self._bound.session.written_cas)

    def _renewed(self, row: CachedRow, exptime: int) -> tuple[CachedRow | None, Renewal | None]:
        """Return a row with another time and what is written, see `gets.renewed`."""
        bound = self._bound
        return gets.renewed(bound, row, times.requested_time(bound.session, bound.mapping, exptime, bound.now))

    def _retimed(
        self,
        before: CachedRow,
        row: CachedRow,
        found: items.Found,
        exptime: int,
        written: tuple[CachedRow | None, Parameters | None],
    ) -> tuple[items.Found, CachedRow | None, Parameters | None]:
        """Return an item with another time, its row, and what is written.

        Args:
            before: the row as the command has found it.
            row: as the item has it now.
            written: the row and the parameters of what the command writes besides.
        """
        new, renewal = self._renewed(row, exptime)
        if new is None:
            return found, *written
        time = times.EXPIRED_SECOND if new is ABSENT else new[EXPIRY] or 0
        touched = replace(found, entry=replace(found.entry, expiry=time))
        if new is ABSENT:
            return touched, ABSENT if before[HIT] else None, None
        parameters = written[1]
        return touched, new, renewal if parameters is None else (*parameters[:-1], new[EXPIRY])
