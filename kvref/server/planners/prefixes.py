"""Plan commands while `stats detail` counts prefixes of keys: each command is a plan, which counts."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import CachedRow, Plan
from kvref.engine.plans.prefixes import PrefixCounting
from kvref.engine.plans.record import record_of
from kvref.engine.plans.words import Words
from kvref.server.planners.base import PlanQueue
from kvref.server.scheduler import Work
from kvref.server.slots import Slots
from kvref.storage.planned_rows import KnownRows, Source

_NO_ROWS: Final[dict[bytes, CachedRow]] = {}
_NOTHING: Final[frozenset[bytes]] = frozenset()


class UnknownRows:
    """Rows of a mapping of which a planner knows nothing, so that it answers nothing directly."""

    rows: Mapping[bytes, CachedRow] = _NO_ROWS
    missing: Set[bytes] = _NOTHING

    def __init__(self, rows: KnownRows) -> None:
        self._rows = rows
        self.source: Source = rows.source
        self.plan_write = rows.plan_write
        self.hits = 0  # nothing is shown directly

    @property
    def largest(self) -> int:
        return self._rows.largest


class CountingWork:
    """Plans that count prefixes, in front of the work of a mapping."""

    def __init__(self, work: Work[KnownRows]) -> None:
        self.work = work
        self.bound: Bound = work.bound
        self.rows = UnknownRows(work.rows)
        self.plans = self

    @property
    def writers(self) -> Any:
        return self.work.writers

    def __len__(self) -> int:
        return len(self.work.plans)

    def append(self, plan: Plan) -> None:
        counting = PrefixCounting(self.bound, plan, record_of(plan))
        self.work.plans.append((counting.decide, *plan[1:]))


class WordsWithoutMapping:
    """Words without the name of a mapping: the prefix of such a word is that of the whole word."""

    name = b""

    def __init__(self, words: Words) -> None:
        self.session = words.session
        self.runs, self.leads_to_table = words.runs, words.leads_to_table

    def key_of_bound(self, _word: bytes) -> None:
        """Return None: what names a mapping is for the parser."""


class CountingQueue:
    """Hands plans of `CountingWork` over to a scheduler."""

    def __init__(self, scheduler: PlanQueue) -> None:
        self._scheduler = scheduler

    def add(self, work: CountingWork, slots: Slots) -> None:
        self._scheduler.add(work.work, slots)
