"""State that all connections share and no table has: row marks of meta commands, vbuckets, the crawler switch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from kvref.engine.access_log import UNKNOWN, AccessLog, Change, Event, ItemAccess, identity_of, replay, shown
from kvref.engine.cache.memory import Entry
from kvref.engine.mapping import Mapping
from kvref.protocol import commands as c
from kvref.protocol import numbers
from kvref.protocol.replies import ClientError, Line, Reply, Status

_64_BITS: Final = (1 << 64) - 1
LIMIT: Final = 1 << 16  # marks, and as many rows that were answered; the oldest goes

K = TypeVar("K")
T = TypeVar("T")
_Source = tuple[str, str]  # identity of a mapping, collation of its key
_Item = tuple[_Source, Hashable]


@dataclass(frozen=True, slots=True)
class Mark:
    """State of an item.

    Args:
        stale: the value is out of date: the first client that reads it is to recache it.
        taken: a client has received the instruction to recache it.
    """

    stale: bool = False
    taken: bool = False


UNMARKED: Final = Mark()


class Marks:
    """Marks of items, and accesses to them, by item.

    A mark belongs to one content of a row: any write of the row, by any client, ends the mark, a touch does not. If a
    row has no cas number, its expiry time is used instead.

    Args:
        limit: number of each to store.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._marks: OrderedDict[Hashable, tuple[int, Mark]] = OrderedDict()
        self._accesses: OrderedDict[_Item, ItemAccess] = OrderedDict()
        self._logs: dict[_Source, tuple[Callable[[bytes], Hashable], AccessLog]] = {}
        self._requested = False

    def exclusive(self) -> AbstractContextManager[None]:
        """Lock the marks, so that only one client receives the instruction to recache an item."""
        return nullcontext()

    @property
    def any(self) -> bool:
        """Return whether there may be a mark of any item."""
        return bool(self._marks)

    def of(self, mapping: Mapping, key: bytes, entry: Entry) -> Mark:
        """Return the mark of an item, whose key may be in any spelling."""
        if not self.any:
            return UNMARKED
        content, mark = self._mark_at(self._item_of(mapping, key))
        return mark if content == content_of(entry) else UNMARKED

    def mark(self, mapping: Mapping, key: bytes, entry: Entry, mark: Mark) -> None:
        """Set the mark of an item, see `of`."""
        self._store_mark(self._item_of(mapping, key), (content_of(entry), mark))

    def take(self, mapping: Mapping, key: bytes, entry: Entry) -> None:
        """Note that a client has received the instruction to recache an item, see `of`."""
        self.mark(mapping, key, entry, replace(self.of(mapping, key, entry), taken=True))

    def saved(self, mapping: Mapping, key: bytes) -> Callable[[], None]:
        """Return a function that restores the current mark of this item."""
        item = self._item_of(mapping, key)
        return partial(self._store_mark, item, self._mark_at(item))

    def _mark_at(self, item: Hashable) -> tuple[int, Mark]:
        """Return the content that a mark belongs to, and the mark."""
        return self._marks.get(item, (0, UNMARKED))

    def _store_mark(self, item: Hashable, mark: tuple[int, Mark]) -> None:
        _store(self._marks, item, mark, self._limit)

    def _item_of(self, mapping: Mapping, key: bytes) -> _Item:
        self.log(mapping)
        source = mapping.identity, mapping.key.collation
        return source, self._logs[source][0](key)

    def log(self, mapping: Mapping | None) -> AccessLog:
        """Return the log of the accesses to items of a mapping; None: of the memory cache, without one."""
        source = ("", "") if mapping is None else (mapping.identity, mapping.key.collation)
        try:
            return self._logs[source][1]
        except KeyError:
            log = AccessLog()
            self._logs[source] = (bytes if mapping is None else identity_of(mapping.key)), log
            return log

    def fetched(self, mapping: Mapping | None, key: bytes, now: int) -> None:
        """Note that an item was returned."""
        log = self.log(mapping)
        log.at(now)
        log.fetched(key)

    def changed(self, mapping: Mapping | None, key: bytes, now: int, change: Change) -> None:
        """Note what a command other than a get did to an item."""
        log = self.log(mapping)
        log.at(now)
        log.changed(key, change)

    def access(self, mapping: Mapping, key: bytes, entry: Entry, pending: Sequence[Event] = ()) -> ItemAccess:
        """Return what is known of the accesses to an item.

        Args:
            entry: the item: if it has another content than when this was last called, and no command has written it,
                SQL has.
            pending: events that no log has yet; if there are any, the caller adds that the item was shown.
        """
        self.request()
        at = self._item_of(mapping, key)
        with self.exclusive():
            self._settle(at[0])
            before = self._access(at)
            if pending:
                before = replay(pending, self._logs[at[0]][0], self._known(at[0])).get(at[1], before)
            access = shown(before, content_of(entry))
            if not pending and access != before:
                self._store_access(at, access)
        return access

    @property
    def requested(self) -> bool:
        """Return whether a client has requested accesses: only then does `settle` read the logs."""
        return self._requested

    def request(self) -> None:
        self._requested = True

    def tick(self, now: float) -> None:
        """Note the UNIX time, for accesses that come without, and read the logs, so that none grows; once a second."""
        self.settle()
        for _, log in self._logs.values():
            log.tick(now)

    def settle(self) -> None:
        """Read the logs, if a client has requested accesses."""
        if self.requested:
            with self.exclusive():
                for source in self._logs:
                    self._settle(source)

    def _settle(self, source: _Source) -> None:
        identity, log = self._logs[source]
        for key, access in replay(log.take(), identity, self._known(source)).items():
            self._store_access((source, key), access)

    def _known(self, source: _Source) -> Callable[[Hashable], ItemAccess]:
        return lambda key: self._access((source, key))

    def _access(self, at: _Item) -> ItemAccess:
        return self._accesses.get(at, UNKNOWN)

    def _store_access(self, at: _Item, access: ItemAccess) -> None:
        _store(self._accesses, at, access, self._limit)


def content_of(entry: Entry) -> int:
    """Return a hash of an item's content, 64 bits, which is the same in every process forked from this one."""
    return hash((entry.cas or -entry.expiry, entry.flags, entry.data)) & _64_BITS


def _store(entries: OrderedDict[K, T], at: K, value: T, limit: int) -> None:
    entries[at] = value
    entries.move_to_end(at)
    if len(entries) > limit:
        entries.popitem(last=False)


# Bytes of a number, and of a state.
_MAX_NUMBER_LENGTH: Final = {"set": 31, "get": 7, "delete": 7}
_MAX_STATE_LENGTH: Final = 31
# The stored form: one number for each vbucket, 0 for a vbucket that no client has set.
_STATES: Final = (b"dead", b"active", b"replica", b"pending")
SIZE: Final = 1 << 16  # vbuckets


class VBuckets:
    """The states of a server's vbuckets: number 0 is active at the start, all others are dead.

    Rules: set_vbucket, get_vbucket and rm_vbucket in default_engine.c, as recorded in more:bin-211.

    Args:
        states: SIZE bytes that hold them, as another holder of the same bytes left them; None: new ones.
    """

    def __init__(self, states: bytearray | memoryview | None = None) -> None:
        self._states = bytearray(SIZE) if states is None else states
        if states is None:
            self.reset()

    def reset(self) -> None:
        self._states[:] = bytes([_STATES.index(b"active")]).ljust(SIZE, b"\0")

    def rows(self) -> list[tuple[str, str]]:
        """Return the rows of `stats vbucket`: the vbuckets that are not dead."""
        return [(f"vb_{number}", _STATES[state].decode()) for number, state in enumerate(self._states) if state]

    def answer(self, command: c.VBucket) -> Reply:
        """Set, return or delete a state."""
        if len(command.word) > _MAX_NUMBER_LENGTH[command.verb]:
            return ClientError("Key is too large.")
        if command.verb == "set" and len(command.state) > _MAX_STATE_LENGTH:
            return ClientError("Value is too large.")
        state = command.state.split(b"\0")[0]
        if command.verb == "set" and state not in _STATES:
            return ClientError("Invalid state.")
        read = numbers.unsigned(command.word.split(b"\0")[0])
        number = None if read is None else read % (1 << 32)  # safe_strtoul keeps 32 bits
        if number is None or number >= SIZE:
            return ClientError("Value out of range.")
        if command.verb == "get":
            return Line(_STATES[self._states[number]])
        if command.verb == "delete":
            self._states[number] = 0
            return Status.OK
        self._states[number] = _STATES.index(state)
        return Line(b"Configured")


class Verbosity:
    """The level that `stats settings` shows, 0 at the start; `number` is memory shared with other processes."""

    def __init__(self, number: list[int] | memoryview | None = None) -> None:
        self._number = [0] if number is None else number

    @property
    def level(self) -> int:
        return self._number[0]

    @level.setter
    def level(self, level: int) -> None:
        self._number[0] = level


class Crawler:
    """A switch for all connections, on at the start; `disabled` is memory shared with other processes, 0 for on."""

    def __init__(self, disabled: bytearray | memoryview | None = None) -> None:
        self._disabled = bytearray(1) if disabled is None else disabled

    @property
    def enabled(self) -> bool:
        """Return whether `lru_crawler metadump` and `lru_crawler crawl` are carried out."""
        return not self._disabled[0]

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._disabled[0] = int(not on)
