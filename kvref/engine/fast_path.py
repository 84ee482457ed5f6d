"""Rules for commands that need a single row each: which commands qualify, and what they do.

The fast paths of all stores bypass the parser, the generators of verbs and the executor. They call this module for the
meaning of a command, and this module calls the functions that the verbs call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kvref.engine import values
from kvref.engine.accesses import Change
from kvref.engine.cache.dispatch import entry_of
from kvref.engine.cache.memory import Policy
from kvref.engine.counters import STORED_ITEM, counted
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, Row
from kvref.engine.session import Session
from kvref.engine.values import RefusedError, shown_flags, to_bytes
from kvref.engine.verbs import arithmetic, delete, meta, store
from kvref.protocol import commands as c
from kvref.protocol.binary import item_frame, miss_frame, reply_frame
from kvref.protocol.fast_path import data_of, numbered, shown
from kvref.protocol.opcodes import NOOP
from kvref.protocol.replies import Number, Reply, ServerError, Status

# Any plain get and any plain set, for rules that depend on no row.
GET: Final = c.Get([], with_cas=False)
SET: Final = c.Store("set", b"", 0, 0, b"")
DELETE: Final = c.Delete(b"")
_LOST: Final = ServerError("")
MAX_FLAGS_KEPT: Final = 1 << 12  # contents of the flags column, by what clients have sent


def ordinary_mapping(session: Session) -> Mapping | None:
    """Return the mapping on which the plain commands of a session are just that, None where there is none.

    Args:
        session: of a connection.
    """
    policies = session.shared.directory.policies
    if policies.of(GET) is not Policy.TABLE or policies.of(SET) is not Policy.TABLE:
        return None
    mapping = session.plain_mapping
    if mapping is None or mapping.fault or mapping.blind or mapping.beginning:
        return None
    return mapping


class PlainVerbs:
    """Commands on ordinary rows, by the rules of the verbs.

    Args:
        session: of any connection that may do the same, for what all share.
        mapping: see `ordinary_mapping`.

    Attributes:
        key: returns the key that a set writes; raises RefusedError where the key column cannot hold it.
        value: returns the content of the only value column that a set writes; raises as `key`.
        all_switch: every verb reads names of mappings.
        counts: the profile adds to numbers that are nothing but digits.
        accesses: to the items of the mapping.
    """

    def __init__(self, session: Session, mapping: Mapping) -> None:
        self.mapping = mapping
        self.shared = session.shared
        self._session = session.twin()  # the other one ends with its connection
        self.counters = session.shared.counters
        self.accesses = session.shared.marks.log(mapping)
        self._rules = session.rules
        self.all_switch = session.rules.all_verbs_switch
        self.counts = not session.rules.counts_leading_number
        self.key: Callable[[bytes], Cell] = values.key_reader(mapping.key, session.rules)
        self.value: Callable[[bytes], Cell] = values.value_reader(mapping.values[0], session.rules)
        self._flags: dict[int, int | None] = {}  # what the column has of them
        self._name = b""  # in front of keys in words that name the mapping, once one was seen
        self._generation = session.shared.directory.generation
        self._stored = (*counted(SET, Status.STORED, missing_counted=False), *STORED_ITEM)
        self._lost = tuple(counted(SET, _LOST, missing_counted=False))
        self._next_cas = store.cas_numbers(self._session, mapping)
        self._never = store.fit_time(mapping, store.time_of(session, 0, 0))

    def runs(self, command: c.Command) -> bool:
        """Return whether the listener permits a command and its cache policies lead to the table."""
        policy = self.shared.directory.policies.of(command)
        return policy is Policy.TABLE and self._session.access.refusal(command) is None

    @property
    def unobserved(self) -> bool:
        """Return whether plain commands need no more than the counters of commands: no prefixes of keys are counted."""
        return not self.counters.prefixes.counting

    def looked_up(self, word: bytes) -> Cell:
        """Return the key column's content to look for, None where no row can be found by this key."""
        return self._session.looked_up(self.mapping, word)

    def key_of_bound(self, word: bytes) -> bytes | None:
        """See `Session.key_of_bound`."""
        name = self._name
        if not (name and word.startswith(name)):
            key = self._session.key_of_bound(word)
            if key is not None:
                self._name = self._session.name_of_bound(word) or name
            return key
        # As `Session.key_of_bound` without a look at each part.
        return (word[len(name) :] or None) if self.shared.directory.generation == self._generation else None

    def expired(self, expiry: int | None, now: int) -> bool:
        """Return whether a row that a get has found is expired, and count that.

        Args:
            expiry: the row's.
            now: UNIX time in whole seconds.
        """
        return self._session.finds_expired(expiry, now)

    def row(self, key: bytes, hit: bytes, flags: int | None, cas: int | None, expiry: int | None) -> Row:
        """Return a row of which a get shows `hit`; its cells are bytes."""
        return Row(key, (data_of(hit),), flags, cas, expiry)

    def hit(self, word: bytes, row: Row, *, with_cas: bool = False) -> bytes:
        """Return what a get, or gets, shows of a row, without END, expired or not.

        Args:
            word: as the client sent it.
            row: looked up.
            with_cas: with its cas number.
        """
        item = self._session.item(word, row)
        hit = shown(word, item.flags, item.data)
        return numbered(hit, item.cas) if with_cas else hit

    def frames(self, frames: Sequence[c.Frame], rows: Sequence[Row | None], now: int) -> list[bytes]:
        """Return the replies to binary gets and noops, and count the gets.

        Args:
            frames: of them.
            rows: what each get has looked up; None where there is none, and for a noop.
            now: UNIX time in whole seconds.
        """
        replies: list[bytes] = []
        keys: list[bytes] = []
        misses = 0
        for frame, row in zip(frames, rows, strict=True):
            if frame.opcode == NOOP:
                replies.append(reply_frame(frame))
            elif row is None or self._session.finds_expired(row.expiry, now):
                misses += 1
                replies.append(miss_frame(frame))
            else:
                keys.append(to_bytes(row.key))
                replies.append(item_frame(frame, self._session.item(frame.key, row)))
        self.counters.looked_up(len(keys), misses)
        self.fetched_all(keys, now)
        return replies

    def meta_get(self, command: c.MetaGet, row: Row | None, now: int) -> Reply:
        """Return the reply to a meta get that only reads, and count it.

        Args:
            command: without another time or an item to store.
            row: of its key, which it holds in the spelling of the table; None where there is none.
            now: UNIX time in whole seconds.
        """
        found = None
        if row is not None and not self._session.finds_expired(row.expiry, now):
            at = self.mapping.identity, to_bytes(row.key)
            found = meta.Found(at, entry_of(self._session, row, now), self.mapping, row)
        return meta.read(self._session, command, found, now)

    def reply(self, word: bytes, row: Row, now: int) -> bytes:
        """Return what a get answers of a row, without END: nothing where the row is expired.

        Args:
            word: as the client sent it.
            row: looked up.
            now: UNIX time in whole seconds.
        """
        if self._session.finds_expired(row.expiry, now):
            return b""
        return self.hit(word, row)

    def reply_of_cells(self, word: bytes, flags: int | None, value: bytes, expiry: int | None, now: int) -> bytes:
        """Return what `reply` does of the cells of a row with one value column.

        Args:
            word, now: see `reply`.
            flags, expiry: None for NULL, or no such column.
            value: what `to_bytes` makes of its cell.
        """
        if self._session.finds_expired(expiry, now):
            return b""
        return shown(word, shown_flags(flags), value)

    def written(self, word: bytes, value: bytes, flags: int | None) -> bytes:
        """Return what a get answers of a row after a set, without END.

        Args:
            word: as the client sends it.
            value: what `to_bytes` makes of its cell, see `value`.
            flags: see `options`.
        """
        return shown(word, shown_flags(flags), value)

    def count_get(self, found: bytes) -> None:
        """Count the only word of a get; `found` is as in `count_gets`."""
        if found:
            self.counters.found()
        else:
            self.counters.looked_up(0, 1)

    def count_gets(self, found: Sequence[bytes]) -> None:
        """Count the words of gets.

        Args:
            found: what is answered to each, empty for a miss.
        """
        misses = found.count(b"")
        self.counters.looked_up(len(found) - misses, misses)

    def fetched_all(self, keys: Iterable[bytes], now: float) -> None:
        """Note that items were returned.

        Args:
            keys: of them.
            now: UNIX time.
        """
        self.accesses.at(now)
        self.accesses.fetched_all(keys)

    def fetched(self, key: bytes, now: float) -> None:
        """Note that an item was returned; `now` is UNIX time."""
        self.accesses.at(now)
        self.accesses.fetched(key)

    def stored(self, key: bytes, now: float) -> None:
        """Note that an item was stored; `now` is UNIX time."""
        self.accesses.at(now)
        self.accesses.changed(key, Change.STORED)

    def count_sets(self, times: int, *, stored: bool) -> None:
        """Count sets, and the items where they are stored."""
        self.counters.add(self._stored if stored else self._lost, times)

    def options(self, flags: int, expiry: int | None = None) -> tuple[int | None, int | None, int | None]:
        """Return flags, cas number and expiry that a set writes, None for a column that is not mapped.

        It takes a cas number: nothing may refuse the set any more.

        Args:
            flags: as the client sent them.
            expiry: see `expiry`; None: the set has no time, or there is no column for it.
        """
        try:
            cell = self._flags[flags]
        except KeyError:
            if len(self._flags) >= MAX_FLAGS_KEPT:
                self._flags.clear()
            cell = self._flags[flags] = store.fit_flags(self.mapping, flags)
        return cell, self._next_cas(), self._never if expiry is None else expiry

    def cas_of(self, cas: int | None) -> int:
        """Return the cas number that the reply to the last write shows.

        Args:
            cas: what the row has of it, see `options`.
        """
        return self._session.written_cas if cas is None else cas

    def expiry(self, command: c.Store, now: int) -> int | None:
        """Return the expiry that a storage command writes.

        Args:
            command: set, add or replace.
            now: UNIX time in whole seconds.

        Raises:
            RefusedError: a column cannot hold the command's numbers.
        """
        store.check_numbers(self._session, self.mapping, command, now)
        return store.fit_time(self.mapping, store.time_of(self._session, command.exptime, now))

    def refusal(self, command: c.Store | c.Delete, row: Row | None, now: int) -> Reply | None:
        """Return the reply to a command that writes nothing, counted; None where it writes.

        Args:
            command: set, add, replace or delete.
            row: of its key, None where there is none.
            now: UNIX time in whole seconds.
        """
        reply: Reply | None
        if isinstance(command, c.Store):
            reply = store.refusal(self._session, command, row, now)
            if row is not None and reply is not None and store.found_by_add(command, reply):
                self.accesses.at(now)
                self.accesses.changed(to_bytes(row.key), Change.OVERWRITTEN)
        else:
            row = None if row is None or self._session.hides(row.expiry, now) else row
            reply = delete.refusal(self._session, command, row)
        return None if reply is None else self.count(command, reply)

    def summed(self, command: c.Arithmetic, row: Row | None, now: int) -> tuple[Reply, Row | None]:
        """Return the reply to an incr or decr, not counted, and the row that it writes, None where it writes none.

        Args:
            command: of the text protocol.
            row: of its key, None where there is none.
            now: UNIX time in whole seconds.
        """
        if row is None or self._session.hides(row.expiry, now):
            return Status.NOT_FOUND, None
        try:
            number = arithmetic.whole_number(self._session, row)
            result, new = arithmetic.summed(self._session, command, self.mapping, row, number)
        except RefusedError as refused:
            return refused.reply, None
        return Number(result), new

    def count_stored(self, command: c.Store) -> None:
        """Count a storage command that has stored its item, and the item."""
        self.counters.item_stored()
        self.count(command, Status.STORED)

    def count(self, command: c.Command, reply: Reply) -> Reply:
        """Count a command by its reply, which is returned, as `execute` does."""
        self.counters.count(command, reply, missing_counted=self._rules.answers_missing_key)
        return reply
