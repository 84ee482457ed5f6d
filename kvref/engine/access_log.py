"""When items were last accessed, and whether they were read after they were written: the flags h and l of `mg`, `me`.

memcached keeps both in the item: a write sets the time and clears the hit; the first read after it sets the hit and
leaves the time, later ones set the time too (`do_item_bump` and `do_item_update` in items.c). Here commands append what
they did to a log, which takes them some ten nanoseconds, and only a command that shows h or l reads the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Final, NamedTuple

from kvref.collations.comparison import order
from kvref.collations.names import known as known_collation
from kvref.engine.mapping import Column, Kind

LOGGED: Final = 1 << 14  # accesses of a mapping that are remembered until a client first requests them


class Change(Enum):
    """What a command other than a get did to an item."""

    STORED = "stored"
    OVERWRITTEN = "overwritten"  # in place: a number of no more digits; an add that finds an item counts as this
    TOUCHED = "touched"
    MARKED = "marked"  # with another cas number or expiry time; which is not an access


# The key of an item that was returned; with what another command did to it; with the content of the item whose accesses
# a command has shown; or the UNIX time of what follows.
Event = bytes | tuple[bytes, Change | int] | float


class ItemAccess(NamedTuple):
    """What is known of an item.

    Args:
        time: UNIX second that `l` counts from, 0 if it is not known.
        hit: the item was read after it was written.
        content: a hash of the item that a command has shown last; None: it was written since, or never shown.
    """

    time: int = 0
    hit: bool = False
    content: int | None = None


UNKNOWN: Final = ItemAccess()


class AccessLog:
    """Accesses to the items of a mapping, in their order.

    Args:
        limit: number of accesses to store, the oldest is dropped first; None: all, until `take`.

    Attributes:
        at: is called with the UNIX time of the accesses that follow.
        fetched: is called with the key of an item that was returned.
        fetched_all: is called with several of them.
        noted_all: is called with several accesses of any kind.
    """

    __slots__ = ("_events", "at", "fetched", "fetched_all", "noted_all")

    at: Callable[[float], None]
    fetched: Callable[[bytes], None]
    fetched_all: Callable[[Iterable[bytes]], None]
    noted_all: Callable[[Iterable[Event]], None]

    def __init__(self, limit: int | None = LOGGED) -> None:
        self._restart(limit)

    def changed(self, key: bytes, change: Change) -> None:
        """Note what a command other than a get did to an item."""
        self._events.append((key, change))

    def tick(self, now: float) -> None:
        """Note the UNIX time for accesses that come without, instead of the last one if there was none in between."""
        if self._events and isinstance(self._events[-1], float):
            self._events[-1] = now
        else:
            self._events.append(now)

    def take(self) -> deque[Event]:
        """Return what was noted, and keep all from now on: it is taken again soon."""
        events = self._events
        self._restart(None)
        return events

    def _restart(self, limit: int | None) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self.at = self.fetched = self._events.append
        self.fetched_all = self.noted_all = self._events.extend


def identity_of(key: Column) -> Callable[[bytes], Hashable]:
    """Return the function from a key to what its spellings have in common, if its collation is known here."""
    if key.kind is Kind.INTEGER:
        return lambda word: int(word) if word.isdigit() else word
    collation = known_collation(key.collation.lower()) if key.kind is Kind.TEXT else None
    if collation is None:
        return bytes.lower if key.collation.upper() == "NOCASE" else bytes  # SQLite has no other that is not binary
    folded, decode = order(collation).folded, key.charset.decode

    def identity(word: bytes) -> Hashable:
        try:
            return folded(decode(word))
        except UnicodeDecodeError:
            return word

    return identity


def shown(access: ItemAccess, content: int) -> ItemAccess:
    """Return what is known of an item that has a content now: if it had another one, SQL has written it."""
    of_another = access.content is not None and access.content != content
    return ItemAccess(access.time, hit=access.hit and not of_another, content=content)


def replay(
    events: Iterable[Event], identity: Callable[[bytes], Hashable], known: Callable[[Hashable], ItemAccess]
) -> dict[Hashable, ItemAccess]:
    """Return what is known of the items of a log after its events, by the identity of their keys.

    Args:
        known: returns what was known of an item before.
    """
    items: dict[Hashable, ItemAccess] = {}
    now = 0
    for event in events:
        if isinstance(event, bytes):
            key = identity(event)
            time, hit, content = items.get(key) or known(key)
            items[key] = ItemAccess((now or time) if hit else time, hit=True, content=content)
        elif isinstance(event, tuple):
            word, change = event
            key = identity(word)
            time, hit, _ = access = items.get(key) or known(key)
            if isinstance(change, int):
                items[key] = shown(access, change)
            elif change is Change.STORED:
                items[key] = ItemAccess(now)
            elif change is Change.OVERWRITTEN or (change is Change.TOUCHED and hit):
                items[key] = ItemAccess(now or time, hit)
            else:
                items[key] = ItemAccess(time, hit or change is Change.TOUCHED)
        else:
            now = int(event)
    return items
