"""Cache policies, and the memory cache of `cache_only` and `caching`: bounded, in one process, never on disk."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Final

from kvref.protocol import commands as c
from kvref.protocol.command_table import PolicyKind, policy_kinds


class Policy(Enum):
    """Where a command looks; the values are the plugin's words in the order of their ENUM."""

    TABLE = "innodb_only"
    CACHE = "cache_only"
    BOTH = "caching"
    OFF = "disabled"


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies in force, one for each kind of command; they hold for all mappings (tx:policy-042)."""

    get: Policy = Policy.TABLE
    set: Policy = Policy.TABLE
    delete: Policy = Policy.TABLE
    flush: Policy = Policy.TABLE
    table_only: bool = field(init=False, repr=False, compare=False)  # every command goes to its table

    def __post_init__(self) -> None:
        """Note once what most servers have for each command."""
        object.__setattr__(self, "table_only", {getattr(self, kind.value) for kind in PolicyKind} == {Policy.TABLE})

    @property
    def fills_cache(self) -> bool:
        """Return whether what is stored goes into the memory cache."""
        return self.set in (Policy.CACHE, Policy.BOTH)

    @property
    def in_memory(self) -> tuple[str, Policy] | None:
        """Return the first kind of command that meets the memory cache, None where none does."""
        kinds = ((kind.value, getattr(self, kind.value)) for kind in PolicyKind)
        return next(((kind, policy) for kind, policy in kinds if policy in (Policy.CACHE, Policy.BOTH)), None)

    def of(self, command: c.Command) -> Policy:
        """Return where a command looks; TABLE for one that looks for no items."""
        return Policy.TABLE if self.table_only else self.combined(*policy_kinds(command))

    def combined(self, *kinds: PolicyKind) -> Policy:
        """Return the policy of a command of several kinds: the last one decides, unless any of them is OFF."""
        policy = Policy.TABLE
        for kind in kinds:
            policy = getattr(self, kind.value)
            if policy is Policy.OFF:
                break
        return policy


# The key of an item in the cache: table and row key, or an empty table and the client's word.
Key = tuple[str, bytes]

LIMIT: Final = 64 << 20  # bytes, memcached's -m
# Bytes that memcached's engine counts for an item in addition to key and value (more:policy-130: `bytes` of `stats`).
HEADER: Final = 56
# memcached's clock begins two seconds before the server's start, so that no time of it is 0.
BEFORE_START: Final = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One item.

    Args:
        flags: 0 to 2^32-1.
        expiry: UNIX second from which it is over; 0: never.
        since: UNIX second in which it was written.
    """

    flags: int
    data: bytes
    cas: int
    expiry: int
    since: int


class Cache:
    """Items by key; the least recently used one is evicted if the cache is full.

    Args:
        started: UNIX second of the start.
        numbers: cas numbers of the items of the cache.
        limit: bytes it may hold, as `stats` counts them.
    """

    def __init__(self, started: int = 0, numbers: Iterator[int] | None = None, limit: int = LIMIT) -> None:
        self.numbers = count(1) if numbers is None else numbers
        self._limit = limit
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._writers: dict[Key, object] = {}
        self._flushed_at = 0
        self._size = 0
        self._evictions = 0
        self._total = 0
        self.began = started - BEFORE_START

    def restart(self, started: int) -> None:
        """Forget everything: a reload of the plugin begins with an empty cache (more:policy-143)."""
        self.clear()
        self.began = started - BEFORE_START
        self._flushed_at = self._evictions = self._total = 0

    def find(self, key: Key, now: int) -> Entry | None:
        """Return an item that has not expired, and mark it as used."""
        entry = self.peek(key, now)
        if entry is None:
            self.remove(key)
        else:
            self._entries.move_to_end(key)
        return entry

    def all_keys(self) -> list[Key]:
        """Return where its items stand, expired ones included, those first that were not used for the longest time."""
        return list(self._entries)

    def peek(self, key: Key, now: int) -> Entry | None:
        """Return an item that has not expired, without marking it as used."""
        entry = self._entries.get(key)
        return None if entry is None or self._is_expired(entry, now) else entry

    def _is_expired(self, entry: Entry, now: int) -> bool:
        return 0 < entry.expiry <= now or (0 < self._flushed_at <= now and entry.since <= self._flushed_at)

    def put(self, key: Key, entry: Entry) -> bool:
        """Store an item in place of any other with this key; return whether it fits into the cache."""
        self.remove(key)
        size = _size(key, entry)
        if size > self._limit:
            return False
        while self._size + size > self._limit:
            self.remove(next(iter(self._entries)))
            self._evictions += 1
        self._entries[key] = entry
        self._size += size
        self._total += 1
        return True

    def remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= _size(key, entry)

    def clear(self) -> None:
        """Drop all items; what is written but not committed now does not come in any more."""
        self._entries.clear()
        self._writers.clear()
        self._size = 0

    def flush(self, delay: int, now: int) -> None:
        """Drop all items, now or after `delay` seconds those written before; 0 or less is now (more:policy-120)."""
        if delay <= 0:
            self.clear()
        else:
            self._flushed_at = self.expiry_of(delay, now) - 1

    def expiry_of(self, exptime: int, now: int) -> int:
        """Return the UNIX second of an exptime: up to 30 days are relative, larger numbers absolute; 0 is 0."""
        return now + exptime if 0 < exptime <= 60 * 60 * 24 * 30 else exptime

    def write(self, key: Key) -> object:
        """Note an uncommitted write of a row; return a token for `commit` and `give_up`."""
        writer = object()
        self._writers[key] = writer
        return writer

    def commit(self, key: Key, writer: object, entry: Entry | None) -> None:
        """Store a committed row, unless a later write of the same row is in progress.

        Args:
            writer: the token that `write` returned.
            entry: the row; None if it was deleted.
        """
        latest = self._writers.get(key) is writer
        self.give_up(key, writer)
        if entry is None or not latest:
            self.remove(key)
        else:
            self.put(key, entry)

    def give_up(self, key: Key, writer: object) -> None:
        """Forget a write that was rolled back."""
        if self._writers.get(key) is writer:
            del self._writers[key]

    def rows(self) -> dict[str, str]:
        return {
            "evictions": str(self._evictions),
            "curr_items": str(len(self._entries)),
            "total_items": str(self._total),
            "bytes": str(self._size),
        }


def _size(key: Key, entry: Entry) -> int:
    return HEADER + len(key[1]) + len(entry.data)


class Pending:
    """Rows that this connection has written in the open batch, by their place in the cache."""

    __slots__ = ("_cache", "_rows")

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._rows: dict[Key, tuple[object, Entry | None]] | None = None  # without a write, as in most connections

    def wrote(self, key: Key, entry: Entry | None) -> None:
        """Note a row after a write, None if it was deleted; the caller has the row's lock."""
        if self._rows is None:
            self._rows = {}
        self._rows[key] = self._cache.write(key), entry

    def holds(self, key: Key) -> bool:
        """Return whether this connection has written the row: it must see its own write, not the cached item."""
        return self._rows is not None and key in self._rows

    def committed(self) -> None:
        rows, self._rows = self._rows or {}, None
        for key, (writer, entry) in rows.items():
            self._cache.commit(key, writer, entry)

    def discarded(self) -> None:
        rows, self._rows = self._rows or {}, None
        for key, (writer, _) in rows.items():
            self._cache.give_up(key, writer)
