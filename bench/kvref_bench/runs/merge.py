"""What the workers of one point measured together; histograms are added bin by bin, so that nothing is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kvref_bench.load.histogram import quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvref_bench.load.recorder import Cell, Timing, WorkerResult

ERROR: Final = "error"
# Of a lag: further looks at the writes whose `visible` is counted.
BESIDE: Final = frozenset({"uncommitted", "unlocked"})
# A point that was meant to last 10 s may report 9.998 s: its last second is a whole one.
SLACK: Final = 0.02


@dataclass(frozen=True)
class Merged:
    """All workers of a point as one.

    cells: counts by bin. seconds: the measured time, of the worker that took longest.
    """

    cells: Mapping[Cell, Mapping[int, int]]
    seconds: float

    @classmethod
    def of(cls, results: Iterable[WorkerResult]) -> Merged:
        """Merge what the workers of a point gave back."""
        results = list(results)
        cells: dict[Cell, Counter[int]] = {}
        for result in results:
            for cell, bins in result.histograms.items():
                cells.setdefault(cell, Counter()).update(bins)
        return cls(cells, max((result.seconds for result in results), default=0.0))

    def bins(self, timing: Timing) -> dict[int, int]:
        """Return the counts by bin of what was answered without an error."""
        total: Counter[int] = Counter()
        for cell, bins in self.cells.items():
            if cell.timing == timing and _is_answer(cell.kind.outcome):
                total.update(bins)
        return dict(total)

    @cached_property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """Operations by verb and outcome."""
        total: Counter[tuple[str, str]] = Counter()
        for cell, bins in self.cells.items():
            if cell.timing == "service":
                total[cell.kind] += sum(bins.values())
        return total

    @property
    def ops(self) -> int:
        """Operations that were answered without an error."""
        return sum(count for (_, outcome), count in self.outcomes.items() if _is_answer(outcome))

    def outcome(self, word: str) -> int:
        """Count the operations that ended so."""
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome == word)

    @cached_property
    def by_second(self) -> list[tuple[int, int]]:
        """Operations and errors of each second from 0 on, also of those in which nothing was answered."""
        good: Counter[int] = Counter()
        bad: Counter[int] = Counter()
        for cell, bins in self.cells.items():
            if cell.timing == "service" and cell.kind.outcome not in BESIDE:
                (bad if cell.kind.outcome == ERROR else good)[cell.second] += sum(bins.values())
        last = max(max([*good, *bad], default=-1) + 1, self.whole_seconds)
        return [(good[second], bad[second]) for second in range(last)]

    @property
    def whole_seconds(self) -> int:
        """Seconds of the measured time without a last one that was cut short."""
        return int(self.seconds + SLACK)


def percentile(bins: Mapping[int, int], share: float) -> float | None:
    """Return a quantile in ns, or None where nothing was answered."""
    return float(quantile(bins, share)) if bins else None


def _is_answer(outcome: str) -> bool:
    return outcome != ERROR and outcome not in BESIDE
