"""Counters of commands, connections and bytes, and which of them a command adds to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Final

from kvref.engine.prefixes import Prefixes
from kvref.protocol import commands as c
from kvref.protocol.command_table import ROWS
from kvref.protocol.replies import Reply


@dataclass(slots=True)
class Counters:
    """Counters since start or `stats reset`; each is named as `stats` names it."""

    cmd_get: int = 0
    cmd_set: int = 0
    cmd_flush: int = 0
    cmd_touch: int = 0
    cmd_meta: int = 0
    get_hits: int = 0
    get_misses: int = 0
    delete_misses: int = 0
    delete_hits: int = 0
    incr_misses: int = 0
    incr_hits: int = 0
    decr_misses: int = 0
    decr_hits: int = 0
    cas_misses: int = 0
    cas_hits: int = 0
    cas_badval: int = 0
    touch_hits: int = 0
    touch_misses: int = 0
    get_expired: int = 0
    store_too_large: int = 0
    store_no_memory: int = 0
    total_items: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    total_connections: int = 0
    auth_cmds: int = 0
    auth_errors: int = 0
    rejected_conns: int = 0
    idle_kicks: int = 0
    foreign_protocol_conns: int = 0
    crawler_reclaimed: int = 0
    prefixes: Prefixes = field(default_factory=Prefixes)

    def got(self, word: bytes, *, hits: int, misses: int) -> None:
        """Count what a word of a get found."""
        self.prefixes.got(word, hit=hits > 0)
        self.count_gets(hits, misses)

    def found(self) -> None:
        """Count a key that a get looked up and found; no prefix of it."""
        self.cmd_get += 1
        self.get_hits += 1

    def count_gets(self, hits: int, misses: int) -> None:
        """Count keys that gets looked up; no prefixes of them."""
        self.cmd_get += hits + misses
        self.get_hits += hits
        self.get_misses += misses

    def add(self, names: Iterable[str], times: int = 1) -> None:
        for name in names:
            setattr(self, name, getattr(self, name) + times)

    def expired(self) -> None:
        """Count a row that a command has looked up and found to be expired."""
        self.get_expired += 1

    def item_stored(self) -> None:
        self.add(STORED_ITEM)

    def touched(self, word: bytes, *, hit: bool) -> None:
        """Count what a word of a gat found."""
        self.prefixes.got(word, hit=hit)
        self.cmd_touch += 1
        self.touch_hits += hit
        self.touch_misses += not hit

    def count(self, command: c.Command, reply: Reply, *, missing_counted: bool) -> None:
        """Count a command by its reply (count-001, count-002), incr of a missing key as a hit if `missing_counted`."""
        names = counted(command, reply, missing_counted=missing_counted)
        if names:
            self.add(names)
        if isinstance(command, c.Store):
            self.prefixes.stored(command.word)
        elif isinstance(command, c.Delete):
            self.prefixes.deleted(command.word)

    def totals(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in COUNTED}

    def reset(self) -> None:
        for name in COUNTED:
            setattr(self, name, 0)
        self.prefixes.clear()


def counted(command: c.Command, reply: Reply, *, missing_counted: bool) -> Iterable[str]:
    """Return the counters, by name, to which a command adds one; the arguments are those of `Counters.count`."""
    counters = ROWS[type(command)].counters
    return () if counters is None else counters(command, reply, missing_counted)


STORED_ITEM: Final = ("total_items",)  # what an item adds to that a storage command has stored
COUNTED: Final = tuple(counter.name for counter in fields(Counters) if counter.name != "prefixes")


def counters_of(name: str) -> tuple[str, ...]:
    """Return the counters that add up to the commands of a name of `CommandRow.metrics`; raises KeyError for others."""
    results = tuple(f"{name}_{result}" for result in ("hits", "misses", "badval") if f"{name}_{result}" in COUNTED)
    if results:
        return results
    if f"cmd_{name}" not in COUNTED:
        raise KeyError(f"{name!r}: Counters has neither {name}_hits nor cmd_{name}")
    return (f"cmd_{name}",)
