"""Count the prefixes of keys that planned commands name, as `stats detail` shows them; see `Counters.count`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kvref.engine.plans import retrieve
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import Plan
from kvref.protocol import commands as c

_FOUND = (retrieve.FOUND, retrieve.TOUCHED)
_LOOKED_UP = (*_FOUND, retrieve.MISSED, retrieve.UNTOUCHED)


class PrefixCounting:
    """Decide a planned command, and count the prefixes of its words once it is carried out."""

    __slots__ = ("_bound", "_record", "plan")

    def __init__(self, bound: Bound, plan: Plan, record: c.Command) -> None:
        self._bound = bound
        self._record = record
        self.plan = plan

    def decide(self, row: Any, word: Any, command: Any) -> Any:
        before, done = len(self._bound.counted), False
        try:
            decision = self.plan[0](row, word, command)
            done = True
        finally:
            self._count(self._record, self._bound.counted[before:], done=done)
        return decision

    def _count(self, command: c.Command, counted: Sequence[tuple[str, ...]], *, done: bool) -> None:
        """Note what to count; `done`: the command is not rejected (`record.rejected` counts those that are)."""
        prefixes, effects = self._bound.counters.prefixes, self._bound.effects
        found = [each in _FOUND for each in counted if each in _LOOKED_UP]
        match command:
            case c.Get() | c.GetAndTouch():
                effects += [
                    partial(prefixes.got, word, hit=hit) for word, hit in zip(command.words, found, strict=False)
                ]
            case c.MetaGet() | c.MetaSet():
                effects += [partial(prefixes.got, command.word, hit=hit) for hit in found]
                effects += [partial(prefixes.stored, command.word) for each in counted if _is_of_store(each)]
            case c.MetaDelete() if not command.stale and (_is_of_delete(counted) or (done and command.cas)):
                effects.append(partial(prefixes.deleted, command.word))
            case c.Store() if done:
                effects.append(partial(prefixes.stored, command.word))
            case c.Delete() if done:
                effects.append(partial(prefixes.deleted, command.word))
            case _:
                pass


def _is_of_store(names: tuple[str, ...]) -> bool:
    return bool(names) and (names[0] == "cmd_set" or names[0].startswith("cas_"))


def _is_of_delete(counted: Sequence[tuple[str, ...]]) -> bool:
    return any(names in (("delete_hits",), ("delete_misses",)) for names in counted)


def note_rejected(bound: Bound, command: c.Command) -> None:
    """Note what a command counts that is rejected."""
    prefixes = bound.counters.prefixes
    if isinstance(command, c.Store):
        bound.effects.append(partial(prefixes.stored, command.word))
    elif isinstance(command, c.Delete):
        bound.effects.append(partial(prefixes.deleted, command.word))
