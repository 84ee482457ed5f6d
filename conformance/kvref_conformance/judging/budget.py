"""The time that a run and a case may take, and the hangs after which the rest of a chapter is not tried."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from kvref_conformance.steps import Pause

if TYPE_CHECKING:
    from kvref_conformance.case import Case

# Seconds of a run; the longest known, on MySQL 5.6 at level quirk, takes less than an hour.
DEFAULT_SECONDS: Final = 7200.0
DEFAULT_HANGS: Final = 5
DEFAULT_FAILURES: Final = 0
TIME_LIMIT: Final = "the time limit of the run"
# Seconds of a case beyond its pauses; a hang alone takes up to 20.
CASE_SECONDS: Final = 60.0


class OverTime(BaseException):
    """The time limit of the run is reached in a generated case; no Exception, so that nothing is shortened for it."""


class Budget:
    """Time and hangs of one run.

    Args:
        seconds: limit of the run; 0 for none.
        hangs: after so many cases that hung, the rest of their chapter is not tried; 0 tries all.
        failures: after so many cases that failed, no further one is tried; 0 tries all.
        case_seconds: limit of a case beyond its pauses.
    """

    def __init__(
        self,
        seconds: float = DEFAULT_SECONDS,
        hangs: int = DEFAULT_HANGS,
        failures: int = DEFAULT_FAILURES,
        case_seconds: float = CASE_SECONDS,
    ) -> None:
        self.case_seconds = case_seconds
        self._max_failures = failures
        self._failures = 0
        self._seconds = seconds
        self._end = time.monotonic() + seconds if seconds else float("inf")
        self._most = hangs
        self._hangs: Counter[str] = Counter()

    def spent(self) -> str:
        """Return why nothing more is tried; "" before the time limit of the run and its last failure."""
        if self._max_failures and self._failures >= self._max_failures:
            return f"{self._failures} cases failed: --max-failures 0 runs all"
        if time.monotonic() < self._end:
            return ""
        return f"{TIME_LIMIT} of {self._seconds:g} s is reached: --time-limit SECONDS sets another"

    def refusal(self, chapter: str) -> str:
        """Return why no further case of a chapter is tried; "" where one is."""
        if reason := self.spent():
            return reason
        if not self._most or self._hangs[chapter] < self._most:
            return ""
        return f"{self._most} cases of the chapter {chapter} hung, the rest is not run: --max-hangs 0 runs all"

    def count_hang(self, chapter: str) -> None:
        """Take note of a case that hung."""
        self._hangs[chapter] += 1

    def count_failure(self) -> None:
        """Take note of a case that failed."""
        self._failures += 1

    def deadline(self, case: Case) -> float:
        """Return when a case that begins now must end, on the monotonic clock."""
        pauses = sum(step.seconds for step in case.steps if isinstance(step, Pause))
        return min(time.monotonic() + self.case_seconds + pauses, self._end)
