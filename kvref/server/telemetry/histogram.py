"""Durations counted in classes, in memory that the processes of a server share."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

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
        """Count a duration."""
        cells = self._cells
        cells[1 + bisect_left(self._bounds, seconds)] += 1
        cells[0] += int(seconds / MICROSECOND)

    def read(self) -> tuple[list[int], float]:
        """Return the number of durations in each class, and their sum in seconds."""
        return list(self._cells[1:]), self._cells[0] * MICROSECOND


def cells_of(bounds: Sequence[float]) -> int:
    """Return the number of cells of a histogram."""
    return len(bounds) + 2


def summed(histograms: Sequence[Histogram], bounds: Sequence[float]) -> tuple[list[tuple[str, float]], float]:
    """Return several histograms as one, as Prometheus has it: cumulative counts by upper bound, and the sum in seconds.

    Args:
        histograms: all of these bounds.
        bounds: see `Histogram`.
    """
    classes, seconds = [0] * (len(bounds) + 1), 0.0
    for each in histograms:
        numbers, took = each.read()
        classes = [one + more for one, more in zip(classes, numbers, strict=True)]
        seconds += took
    labels = [*map(str, bounds), "+Inf"]
    return [(label, sum(classes[: n + 1])) for n, label in enumerate(labels)], seconds
