"""A repeated failure: does it occur always, at times, or only with short waits?"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref_conformance.steps import AwaitReply, AwaitSql, Eventually, Send, StartRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

DEFAULT_TIMES: Final = 5
# Of a whole run: an endpoint that breaks hundreds of cases by hanging must not take an hour.
BUDGET_SECONDS: Final = 60.0
# Of one failure; a hang takes seconds each time.
SHARE_SECONDS: Final = 6.0
SLOWER: Final = 10.0
# No single wait is made longer than this.
LONGEST_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Repeated:
    """The result of the repetitions.

    Args:
        failed: how many broke the requirement again.
        tried: how many there were.
        timing: all did, and one with waits SLOWER times as long did not.
    """

    failed: int
    tried: int
    timing: bool = False

    @property
    def flaky(self) -> bool:
        """Return whether only some of the repetitions broke the requirement."""
        return self.failed < self.tried

    def __str__(self) -> str:
        if not self.tried:
            return "not repeated"
        if self.flaky:
            return f"flaky {self.failed}/{self.tried}"
        word = f"timing: kept with waits {SLOWER:g} times as long" if self.timing else "deterministic"
        return f"{word} ({self.failed}/{self.tried})"


class Repeats:
    """Repeats failures within a budget of time.

    Args:
        times: of each failure, at most; 0 for none.
    """

    def __init__(self, times: int) -> None:
        self.times = times
        self._left = BUDGET_SECONDS

    def of(self, breaks: Callable[[float], bool], *, waits: bool) -> Repeated:
        """Try a failure again.

        Args:
            breaks: runs the conversation on fresh keys with waits multiplied by a factor; returns whether it breaks.
            waits: time is part of it: it hung, or a step waits.
        """
        began = time.monotonic()
        failed = tried = 0
        while tried < self.times and time.monotonic() - began < min(self._left, SHARE_SECONDS):
            try:
                failed += breaks(1.0)
            except SuiteError:
                break  # the set-up is refused: what the failure has left, such as a row, cannot be removed
            tried += 1
        patient = waits and self._left > BUDGET_SECONDS / 2
        timing = bool(patient and tried and failed == tried and not breaks(SLOWER))
        self._left = max(0.0, self._left - (time.monotonic() - began))
        return Repeated(failed, tried, timing)


def waits(case: Case) -> bool:
    """Return whether a case has steps that wait."""
    return any(isinstance(step, AwaitReply | StartRequest | AwaitSql | Eventually) for step in case.steps)


def slowed(step: Step, slower: float) -> Step:
    """Return a step with its waits so many times as long, each up to LONGEST_SECONDS."""
    if isinstance(step, Send | AwaitReply | AwaitSql):
        return replace(step, patience=_longer(step.patience, slower))
    if isinstance(step, Eventually):
        return replace(step, within=_longer(step.within, slower))
    return step


def _longer(seconds: float, slower: float) -> float:
    return max(seconds, min(seconds * slower, LONGEST_SECONDS))
