"""What is known of one point when it is over; `runs.folder` writes it down, `runs.gates` judges it.

Histograms of workers are added bin by bin, so that nothing is lost.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from kvref_bench.load.histogram import quantile
from kvref_bench.load.records import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvref_bench.load.records import Cell, Timing, WorkerResult
    from kvref_bench.load.work import Work


@dataclass(frozen=True, slots=True)
class Peer:
    """One server that a run measures.

    name: in the run's tables, given by the user or made from kind and version.
    kind: `plugin`, `memcached`, `kvref`, `mysql`, `mariadb`, `other`; version: as it says itself.
    address: HOST:PORT or None; sql: DSN without its password, or None.
    variables: what it says of its own configuration (`SHOW VARIABLES`, `stats settings`).
    containers, ddl: its mapping and table; empty for one without.
    pid: where it runs on this machine.
    verdict: from the report of `kvref conform`: profile, counts by verdict, SHA-256; None: it was not judged.
    """

    name: str
    kind: str
    version: str
    address: str | None = None
    sql: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    containers: list[dict[str, str]] = field(default_factory=list)
    ddl: str = ""
    pid: int | None = None
    verdict: dict[str, object] | None = None


@dataclass(slots=True)
class ServerSample:
    """What the server used and counted in the measured time of a point.

    usage: None if its process is not on this machine.
    counters: differences of its own counters (`stats`, `SHOW GLOBAL STATUS`), those that changed.
    seconds: duration of the usage; a server under load returns its counters late. None: unknown.
    """

    usage: Usage | None
    counters: dict[str, int] = field(default_factory=dict)
    seconds: float | None = None

    def scale(self, seconds: float) -> float:
        """Return the factor from the usage to that of the measured time.

        What it used before the first reading was no less; after the end it does nothing.
        """
        return max(1.0, seconds / self.seconds) if self.seconds else 1.0


@dataclass(slots=True)
class Resource:
    """One reading of a process with its children: CPU seconds since its start, bytes of memory."""

    time: int
    role: str
    pid: int
    user: float
    system: float
    rss: int


@dataclass
class Point:
    """One measurement.

    server: name of the Peer. work: what was requested. settings: of the server at this point.
    kind: of the scenario, `load` or `lag`.
    rate: of the open loop, operations a second; None: closed loop.
    expected_hits: share of gets; None where it is not known.
    ceiling: operations a second of the null responder with the same sessions, depth and sizes; None: not measured.
    load_average: of the machine when it began.
    resources: readings of the server's processes and of the machine, when it began and when it ended.
    """

    series: str
    server: str
    work: Work
    repetition: int
    began: int
    ended: int
    results: list[WorkerResult]
    sample: ServerSample
    settings: dict[str, int] = field(default_factory=dict)
    rate: float | None = None
    expected_hits: float | None = None
    ceiling: float | None = None
    load_average: float | None = None
    resources: list[Resource] = field(default_factory=list)
    kind: Literal["load", "lag"] = "load"

    @cached_property
    def merged(self) -> Merged:
        """What its workers measured together."""
        return Merged.of(self.results)


ERROR: Final = "error"
# Of a lag: further looks at the writes whose `visible` is counted.
NOT_COUNTED: Final = frozenset({"uncommitted", "unlocked"})
# A point that was meant to last 10 s may report 9.998 s: its last second is a whole one.
SLACK: Final = 0.02


@dataclass(frozen=True)
class Merged:
    """All workers of a point as one.

    cells: counts by bin. seconds: the measured time, of the worker that took longest. usage: of all together.
    """

    cells: Mapping[Cell, Mapping[int, int]]
    seconds: float
    usage: Usage

    @classmethod
    def of(cls, results: Iterable[WorkerResult]) -> Merged:
        """Merge what the workers of a point gave back."""
        results = list(results)
        cells: dict[Cell, Counter[int]] = {}
        for result in results:
            for cell, bins in result.histograms.items():
                cells.setdefault(cell, Counter()).update(bins)
        used = [result.usage for result in results]
        usage = Usage(
            sum(each.user for each in used), sum(each.system for each in used), sum(each.rss for each in used)
        )
        return cls(cells, max((result.seconds for result in results), default=0.0), usage)

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

    @property
    def per_second(self) -> float:
        """Operations that all workers together answered in a second; 0 where nothing was measured."""
        return self.ops / self.seconds if self.seconds else 0.0

    def outcome(self, word: str) -> int:
        """Count the operations that ended so."""
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome == word)

    @cached_property
    def by_second(self) -> list[tuple[int, int]]:
        """Operations and errors of each second from 0 on, also of those in which nothing was answered."""
        good: Counter[int] = Counter()
        bad: Counter[int] = Counter()
        for cell, bins in self.cells.items():
            if cell.timing == "service" and cell.kind.outcome not in NOT_COUNTED:
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
    return outcome != ERROR and outcome not in NOT_COUNTED
