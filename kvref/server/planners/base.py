"""What the planners of one mapping share: how a command becomes a plan, and why they stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, Protocol

from kvref.engine.access_log import Event
from kvref.engine.plans.words import Words
from kvref.protocol.command_table import TIMED_VERBS
from kvref.protocol.rules import MAX_KEY, WireRules
from kvref.protocol.usual_words import UsualWords
from kvref.server.scheduler import Work
from kvref.server.slots import Slots
from kvref.server.telemetry.command_times import CommandTimes
from kvref.storage.planned_rows import KnownRows

MAX_COMMANDS: Final = 512  # of one connection in one turn of the event loop
MAX_BYTES: Final = 64 << 10  # of replies that are known at once, in one turn
MAX_READ: Final = 2 << 20  # bytes of values that the plans of one connection may read in one turn
MAX_VALUE: Final = 1 << 20  # bytes of a value
# What a planner of a verb returns instead of the offset after the command.
INCOMPLETE: Final = -1
UNUSUAL: Final = -2


class Stop(Enum):
    """Why a planner stops before the end of the input."""

    END = auto()  # it does not: all is planned
    INCOMPLETE = auto()  # the rest of a command has still to come
    UNUSUAL = auto()  # the command is for the parser
    TURN = auto()  # the other connections come first


class InputPlanner(Protocol):
    """Plans the commands of a connection, see `kvref.server.planner.Planner`.

    `gets`: what input begins with that `hit` may answer.
    """

    @property
    def gets(self) -> bytes | tuple[bytes, ...]: ...
    @property
    def fresh(self) -> Callable[[float], bool]: ...
    def hit(self, data: bytes) -> bytes | None: ...
    def take(self, data: bytes, slots: Slots, times: CommandTimes | None) -> tuple[int, Stop]: ...


class TextPlanner(InputPlanner, Protocol):
    """Plans the text commands of a connection; `frames` plans its binary commands."""

    @property
    def frames(self) -> InputPlanner: ...


class PlanQueue(Protocol):
    """Takes plans, see `kvref.server.scheduler.Scheduler`."""

    def add(self, work: Any, slots: Slots) -> None:
        """Carry out the plans of a mapping, and complete the current replies of a connection."""


class Planning:
    """Plan commands of one mapping.

    Attributes:
        direct_reads: reads that were answered without a plan and that a batch has not counted, see `Batch.reads_of`.
    """

    def __init__(self, work: Work[KnownRows], words: Words, scheduler: PlanQueue, wire_rules: WireRules) -> None:
        self._work = work
        self._words = words
        self._rows = work.rows
        self._source = work.rows.source
        self._scheduler = scheduler
        self._counters, self._accesses = work.bound.counters, work.bound.accesses
        self._all_switch = work.bound.rules.all_verbs_switch
        self.direct_reads = 0
        self._counts_each_key = work.bound.rules.counts_each_key
        self._misses = 0  # of gets that were answered directly and are not counted yet
        self._further = 0  # keys of these gets that count as no reads of their own
        self._direct: list[Event] = []  # keys of the hits among these gets
        self._lines = UsualWords(wire_rules)
        self._is_word = self._lines.word.fullmatch
        self._max_word = wire_rules.key_limit
        self._takes_all = self._lines.takes(b"k" * MAX_KEY, MAX_VALUE)

    def _key(self, word: bytes, *, switches: bool = True) -> bytes | None:
        """Return the key of a word, which may name this mapping if `switches`; None if it may be something else."""
        if word in self._rows.rows or self._is_word(word):
            return word
        return self._named_key(word) if switches else None

    def _named_key(self, word: bytes) -> bytes | None:
        """Return the key in a word that names this mapping, None if it may be something else."""
        name = self._words.name
        if not (name and word.startswith(name)):
            return self._lines.key_after_name(word, self._words.key_of_bound)
        key = word[len(name) :]
        return key if len(word) <= self._max_word and self._is_word(key) else None

    def _is_over(self, expiry: int) -> bool:
        """Return whether an expiry, which is not 0, is over now."""
        return self._work.bound.rules.is_expired(expiry, int(time.time()))

    def _reply_hits(self, hits: list[bytes], keys: list[bytes], slots: Slots) -> bool:
        """Fill the next places with the hits of consecutive gets; return False if they are too long for one turn.

        Args:
            keys: of the rows; further ones are left out.
        """
        size = sum(map(len, hits))
        if size > MAX_BYTES:
            return False
        out = slots.begin()
        out.extend(hits)
        if out.names is not None:
            out.names += [TIMED_VERBS[b"get"]] * len(hits)
        slots.size += size
        self._direct += keys[: len(hits)]
        return True

    def _plan_write(self, decide: Callable[..., object], key: bytes, command: object, slots: Slots) -> None:
        """Plan a command that may write."""
        self._rows.plan_write(key)
        out = slots.current
        assert out is not None, "called while input is planned"
        self._work.writers.add(out)
        self._work.plans.append((decide, key, command, out, len(out)))
        out.append(b"")

    def _plan_read(
        self,
        decide: Callable[..., object],
        key: bytes | tuple[bytes, ...],
        command: object,
        slots: Slots,
        *,
        passes: bool = True,
    ) -> None:
        """Plan a command that writes nothing; with `passes`, others' gets of the row may be answered before it."""
        slots.direct = False
        if isinstance(key, tuple):
            slots.reads += len(key)
        else:
            slots.reads += 1
            if not passes:
                self._rows.plan_write(key)
        out = slots.current
        assert out is not None, "called while input is planned"
        self._work.plans.append((decide, key, command, out, len(out)))
        out.append(b"")

    def _settle_direct(self) -> None:
        self.direct_reads += len(self._direct) + self._misses - self._further
        self._further = 0
        self._counters.count_gets(len(self._direct), self._misses)
        if self._direct:
            self._rows.hits += len(self._direct)
            self._accesses.at(time.time())
            self._accesses.noted_all(self._direct)
            self._direct.clear()
        self._misses = 0
