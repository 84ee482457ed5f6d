"""Durations of commands, from the start of each to the sending of its reply, in shared histograms.

They are measured only while metrics are served. A command that gets no reply (noreply, a quiet opcode without an error)
is not counted.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from kvref.protocol.command_table import TIMED
from kvref.server.workers.shared_memory import CELL, anonymous

MICROSECOND: Final = 1e-6


class Histogram:
    """Durations by class; one thread or process at a time may write.

    Args:
        cells: `cells_of(bounds)` of them; the first one is the sum in microseconds, the others are the classes.
        bounds: upper bounds of the classes in seconds, in ascending order; one more class has the rest.
    """

    def __init__(self, cells: memoryview[int], bounds: Sequence[float]) -> None:
        self._cells = cells
        self._bounds = bounds

    def observe(self, seconds: float) -> None:
        cells = self._cells
        cells[1 + bisect_left(self._bounds, seconds)] += 1
        cells[0] += int(seconds / MICROSECOND)

    def read(self) -> tuple[list[int], float]:
        """Return the number of durations in each class, and their sum in seconds."""
        return list(self._cells[1:]), self._cells[0] * MICROSECOND


def cells_of(bounds: Sequence[float]) -> int:
    return len(bounds) + 2


def summed(histograms: Sequence[Histogram], bounds: Sequence[float]) -> tuple[list[tuple[str, float]], float]:
    """Return histograms as one of Prometheus: cumulative counts by upper bound, and the sum in seconds."""
    classes, seconds = [0] * (len(bounds) + 1), 0.0
    for each in histograms:
        numbers, took = each.read()
        classes = [one + more for one, more in zip(classes, numbers, strict=True)]
        seconds += took
    labels = [*map(str, bounds), "+Inf"]
    return [(label, sum(classes[: n + 1])) for n, label in enumerate(labels)], seconds


# Upper bounds of the classes, in seconds.
COMMAND_BOUNDS: Final = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip


class CommandDurations:
    """The durations of the commands of one process: histograms by name of `TIMED`, and what counts seconds in each."""

    def __init__(self) -> None:
        size = cells_of(COMMAND_BOUNDS)
        cells = anonymous(len(TIMED) * size * CELL).cast("Q")
        self.of = {
            name: Histogram(cells[number * size : (number + 1) * size], COMMAND_BOUNDS)
            for number, name in enumerate(TIMED)
        }
        self.observe = {name: histogram.observe for name, histogram in self.of.items()}


class CommandTimes:
    """Measures the commands of one connection."""

    __slots__ = ("_observe", "started")

    def __init__(self, durations: CommandDurations) -> None:
        self._observe = durations.observe
        self.started = 0.0  # when the last command that was not planned began

    def start(self) -> None:
        """Record that the next command begins now."""
        self.started = time.perf_counter()

    def sent(self, names: Iterable[str], started: float) -> None:
        """Count commands by name whose replies are sent now, and which began at a time of `now`."""
        seconds = time.perf_counter() - started
        for name in names:
            self._observe[name](seconds)

    def now(self) -> float:
        """Return the time of the clock that measures."""
        return time.perf_counter()
