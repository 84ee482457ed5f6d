"""The Universal Scalability Law: X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)).

gamma: operations a second of one session; alpha: share that must wait its turn; beta: cost of agreeing, for each pair.
After N. J. Gunther, "A General Theory of Computational Scalability Based on Rational Functions" (2008).
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import least_squares, nnls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FEWEST: Final = 5  # numbers of sessions: three parameters, and something left to judge them by
RESAMPLES: Final = 400
PARAMETERS: Final = ("gamma", "alpha", "beta", "peak_sessions", "peak_rate")


@dataclass(frozen=True, slots=True)
class Fit:
    """The law fitted to points.

    residuals: (law - measured) / measured, one for each point.
    """

    gamma: float
    alpha: float
    beta: float
    residuals: tuple[float, ...]

    def rate(self, sessions: Floats | float) -> Floats | float:
        """Return the law's operations a second."""
        n = sessions
        return self.gamma * n / (1 + self.alpha * (n - 1) + self.beta * n * (n - 1))

    @property
    def peak_sessions(self) -> float:
        """Where the law is highest: sqrt((1 - alpha) / beta), at least 1; infinity when it has no peak."""
        if self.alpha >= 1:
            return 1.0
        return max(1.0, math.sqrt((1 - self.alpha) / self.beta)) if self.beta > 0 else math.inf

    @property
    def peak_rate(self) -> float:
        """The law's highest rate; without a peak what it comes near to, gamma / alpha."""
        if math.isfinite(self.peak_sessions):
            return float(self.rate(self.peak_sessions))
        return self.gamma / self.alpha if self.alpha > 0 else math.inf

    @property
    def error(self) -> float:
        """Root of the mean of the squared relative residuals."""
        return math.sqrt(sum(each**2 for each in self.residuals) / len(self.residuals))


@dataclass(frozen=True, slots=True)
class NoFit:
    """There is no law to be had from these points, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Study:
    """A fit, and how far it can be trusted.

    intervals: 95 % of the resampled repetitions, by parameter; empty with fewer than 3 repetitions.
    last: the most sessions; predicted: their rate by the law of the other points; measured: their rate as it was.
    """

    fit: Fit
    sessions: tuple[int, ...]
    rates: tuple[float, ...]
    last: int
    predicted: float
    measured: float
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def prediction_error(self) -> float:
        """How far the law of the other points is from the largest one, relative to it."""
        return self.predicted / self.measured - 1

    def within(self, sessions: float) -> bool:
        """Return whether a number of sessions lies inside what was measured."""
        return self.sessions[0] <= sessions <= self.sessions[-1]


def fit(sessions: Sequence[float], rates: Sequence[float]) -> Fit:
    """Fit the law by least squares of relative residuals, no parameter under 0.

    sessions, rates: of three points or more, rates above 0, operations a second.
    """
    n, x = np.asarray(sessions, dtype=np.float64), np.asarray(rates, dtype=np.float64)
    if len(n) < 3 or bool((x <= 0).any()):
        raise ValueError(
            f"the law has three parameters; {len(n)} points, rates {x.tolist()}: give three or more above 0"
        )
    found, _ = nnls(np.column_stack((x / n, x / n * (n - 1), x * (n - 1))), np.ones(len(n)))
    one, waiting, agreeing = (float(each) for each in found)
    gamma = 1 / one if one > 0 else float((x / n).max())
    start = np.array([1.0, waiting * gamma, agreeing * gamma])

    def denominator(p: Floats) -> Floats:
        under: Floats = 1 + p[1] * (n - 1) + p[2] * n * (n - 1)
        return under

    def residuals(p: Floats) -> Floats:
        away: Floats = p[0] * gamma * n / denominator(p) / x - 1
        return away

    def slopes(p: Floats) -> Floats:
        under = denominator(p)
        law = p[0] * gamma * n / under / x
        return np.column_stack((law / p[0], -law * (n - 1) / under, -law * n * (n - 1) / under))

    low = np.array([1e-9, 0.0, 0.0])
    solved = least_squares(
        residuals, np.maximum(start, low), jac=slopes, bounds=(low, np.inf), x_scale="jac", xtol=1e-12, ftol=1e-12
    )
    scale, alpha, beta = (float(each) for each in solved.x)
    # A bound is approached from inside; what makes no difference at any point is the bound.
    alpha = alpha if alpha * float(n.max() - 1) > 1e-6 else 0.0
    beta = beta if beta * float((n * (n - 1)).max()) > 1e-6 else 0.0
    return Fit(scale * gamma, alpha, beta, tuple(float(each) for each in residuals(np.array([scale, alpha, beta]))))


def study(repetitions: Mapping[int, Sequence[float]], *, name: str, growing: str = "") -> Study | NoFit:
    """Fit the law to medians, with intervals by resampling repetitions, or say why not.

    repetitions: rates of each number of sessions, operations a second. name: seeds the resampling.
    growing: in words, what of the data grows with the sessions; such points are no curve of one system.
    """
    if growing:
        return NoFit(f"no fit: {growing}, so each point measures another amount of data")
    sessions = sorted(each for each, rates in repetitions.items() if len(rates))
    if len(sessions) < FEWEST:
        needed = f"three parameters need {FEWEST} to leave something to judge by"
        return NoFit(f"no fit: {len(sessions)} numbers of sessions, and {needed}")
    samples = [np.asarray(repetitions[each], dtype=np.float64) for each in sessions]
    if any(bool((each <= 0).any()) for each in samples):
        return NoFit("no fit: a repetition without a single operation")
    medians = [float(np.median(each)) for each in samples]
    before = fit(sessions[:-1], medians[:-1])
    return Study(
        fit(sessions, medians), tuple(sessions), tuple(medians), sessions[-1],
        float(before.rate(float(sessions[-1]))), medians[-1], _intervals(sessions, samples, name),
    )  # fmt: skip


def _intervals(sessions: list[int], samples: list[Floats], name: str) -> dict[str, tuple[float, float]]:
    if min(len(each) for each in samples) < 3:
        return {}
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    found = []
    for _ in range(RESAMPLES):
        again = fit(sessions, [float(np.median(draw.choice(each, len(each)))) for each in samples])
        found.append([getattr(again, parameter) for parameter in PARAMETERS])
    low, high = np.quantile(np.array(found), (0.025, 0.975), axis=0, method="inverted_cdf")
    return {parameter: (float(low[k]), float(high[k])) for k, parameter in enumerate(PARAMETERS)}
