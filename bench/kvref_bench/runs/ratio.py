"""Is A other than B? The ratio of medians over repetitions, its interval, and a word that says no more than they do.

The unit is a repetition, never a request (Kalibera and Jones, Rigorous Benchmarking in Reasonable Time, 2013).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kvref_bench.runs.gates import REPETITIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
NO_DIFFERENCE: Final = "no difference shown"
TOO_FEW: Final = "too few repetitions"


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared.

    column: of `points`. unit: of its values when divided by `scale`.
    larger, smaller: what A is called when its value is the larger or the smaller one.
    """

    name: str
    column: str
    larger: str
    smaller: str
    unit: str
    scale: float = 1.0


MEASURES: Final = (
    Measure("throughput", "qps", "faster", "slower", "1/s"),
    Measure("p99", "p99", "slower", "faster", "us", 1e3),
    Measure("server CPU per operation", "server_cpu_us_per_op", "dearer", "cheaper", "us"),
    Measure("client CPU per operation", "client_cpu_us_per_op", "dearer", "cheaper", "us"),
)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A against B in one measure at one place.

    a, b: medians. ratio: a / b. low, high: its 95 % interval; None where there are too few repetitions.
    p: of Mann-Whitney, two-sided. superiority: probability that a repetition of A is the larger one, ties as half.
    pairs: repetitions were resampled as pairs. repetitions: of A and of B.
    """

    measure: str
    unit: str
    a: float
    b: float
    ratio: float
    low: float | None
    high: float | None
    p: float | None
    superiority: float
    pairs: bool
    repetitions: tuple[int, int]
    verdict: str


def compare(
    measure: Measure, a: Sequence[float], b: Sequence[float], *, pairs: bool, threshold: float, seed: str
) -> Ratio:
    """Compare repetitions.

    Args:
        measure: what the values are.
        a, b: one value for each repetition, positive; with `pairs` in the same order.
        pairs: a[i] and b[i] were measured one after the other.
        threshold: minimum difference of the medians, 0.05 for 5 %, in addition to an interval without 1.
        seed: of the resampling; the runs' names.
    """
    from scipy import stats  # noqa: PLC0415 -- takes a second to load, for every command

    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    ratio = _of_medians(first, second)
    enough = min(len(first), len(second)) >= REPETITIONS
    low, high = _interval(first, second, pairs=pairs, seed=f"{seed}/{measure.column}") if enough else (None, None)
    test = stats.mannwhitneyu(first, second)
    return Ratio(
        measure=measure.name,
        unit=measure.unit,
        a=float(np.median(first)) / measure.scale,
        b=float(np.median(second)) / measure.scale,
        ratio=float(ratio),
        low=low,
        high=high,
        p=float(test.pvalue) if enough else None,
        superiority=float(test.statistic) / (len(first) * len(second)),
        pairs=pairs,
        repetitions=(len(first), len(second)),
        verdict=_verdict(measure, float(ratio), low, high, threshold),
    )


def _of_medians(a: NDArray[np.float64], b: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = np.median(a, axis=axis) / np.median(b, axis=axis)
    return ratio


def _interval(a: NDArray[np.float64], b: NDArray[np.float64], *, pairs: bool, seed: str) -> tuple[float, float]:
    from scipy import stats  # noqa: PLC0415 -- as above

    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    # Percentiles of the ratio, since BCa has none where all repetitions are alike.
    found = stats.bootstrap(
        (a, b), _of_medians, paired=pairs, vectorized=True, n_resamples=RESAMPLES, confidence_level=CONFIDENCE,
        method="percentile", rng=rng,
    )  # fmt: skip
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _verdict(measure: Measure, ratio: float, low: float | None, high: float | None, threshold: float) -> str:
    if low is None or high is None:
        return TOO_FEW
    if low <= 1 <= high or abs(ratio - 1) <= threshold:
        return NO_DIFFERENCE
    return measure.larger if ratio > 1 else measure.smaller
