"""Medians of repetitions and ratios of them, with intervals. The repetition is the unit, never the single request."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FEWEST: Final = 5  # repetitions; fewer have no interval
RESAMPLES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A value, the 95 % interval of it (NaN where there are too few repetitions), and of how many repetitions."""

    value: float
    low: float
    high: float
    count: int

    @property
    def known(self) -> bool:
        """Return whether there is an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


class Pair(NamedTuple):
    """Rates of two sides by repetition, measured in turn."""

    upper: Mapping[int, float]
    lower: Mapping[int, float]


def median(values: Sequence[float], *, name: str) -> Interval:
    """Return the median and its bootstrap interval.

    name: what it is of, with the run's id; it seeds the resampling, so that the same run gives the same bytes.
    """
    taken = np.asarray(values, dtype=np.float64)
    if not len(taken):
        return Interval(math.nan, math.nan, math.nan, 0)
    value = float(np.median(taken))
    if len(taken) < FEWEST:
        return Interval(value, math.nan, math.nan, len(taken))
    draws = np.median(taken[_drawn(name, len(taken))], axis=1)
    return Interval(value, *_bounds(draws), len(taken))


def ratio(pair: Pair, *, name: str) -> Interval:
    """Return the ratio of the medians of two sides, over the repetitions that both have, resampled in pairs."""
    shared = sorted(pair.upper.keys() & pair.lower.keys())
    upper = np.array([pair.upper[each] for each in shared], dtype=np.float64)
    lower = np.array([pair.lower[each] for each in shared], dtype=np.float64)
    if not shared or not np.median(lower):
        return Interval(math.nan, math.nan, math.nan, len(shared))
    value = float(np.median(upper) / np.median(lower))
    if len(shared) < FEWEST or not (lower > 0).all():
        return Interval(value, math.nan, math.nan, len(shared))
    drawn = _drawn(name, len(shared))
    return Interval(value, *_bounds(np.median(upper[drawn], axis=1) / np.median(lower[drawn], axis=1)), len(shared))


def _drawn(name: str, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.random.default_rng(zlib.crc32(name.encode())).integers(0, count, (RESAMPLES, count))


def _bounds(draws: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)


def medians(points: pd.DataFrame, by: Sequence[str], column: str = "qps") -> pd.DataFrame:
    """Return for each group its median, interval and number of repetitions: columns `by`, value, low, high, count.

    points: rows of a run's `points`, those that are to count; column: what of them; rows without a value are left out.
    """
    rows = []
    for group, part in points.dropna(subset=[column]).groupby(list(by), sort=True, dropna=False):
        keys = group if isinstance(group, tuple) else (group,)
        found = median(part[column].tolist(), name=f"{part['run_id'].iloc[0]} {column} {keys}")
        rows.append((*keys, found.value, found.low, found.high, found.count))
    return pd.DataFrame(rows, columns=[*by, "value", "low", "high", "count"])
