"""The scalability law gives what is published for the articles' figures, and no law where there is none."""

from __future__ import annotations

import math

import pytest

from support import articles, usl

# Series, gamma, alpha, beta, sessions and rate at the peak, error in percent: fitted once with another program.
PUBLISHED = [
    ("get-vs-select: InnoDB memcached 5.6.7-RC, 8 threads", 7155, 0.0460, 3.63e-5, 162, 123852, 5.0),
    ("get-vs-select: SQL 5.6.7-RC, select", 5635, 0.0873, 4.21e-5, 147, 56541, 7.9),
    ("set-vs-sproc: InnoDB memcached 5.6.7-RC, 8 threads", 5618, 0.0683, 3.82e-5, 156, 70015, 2.3),
    ("set-vs-sproc: SQL 5.6.7-RC, stored procedure", 1319, 0.110, 1.85e-4, 69, 9729, 17.5),
    ("memslap-set: native memcached", 25607, 0.0643, 1.62e-4, 76, 288347, 9.1),
    ("memslap-set: InnoDB memcached", 2490, 0.569, 9.08e-3, 6.9, 3636, 10.9),
    ("random-user-capacity: MySQL 5.0", 7057, 0.000, 8.49e-3, 10.9, 40155, 0.7),
    ("random-user-capacity: MySQL 5.1", 6896, 0.105, 0.0, math.inf, 65853, 5.8),
]


@pytest.mark.parametrize(("series", "gamma", "alpha", "beta", "sessions", "rate", "error"), PUBLISHED)
def test_the_articles_figures_have_the_known_parameters(
    series: str, gamma: float, alpha: float, beta: float, sessions: float, rate: float, error: float
) -> None:
    points = articles.curves()[series]
    fit = usl.fit(list(points), list(points.values()))
    assert fit.gamma == pytest.approx(gamma, abs=1.0)
    assert fit.alpha == pytest.approx(alpha, abs=5e-4)
    assert fit.beta == pytest.approx(beta, rel=5e-3)
    assert fit.peak_sessions == pytest.approx(sessions, rel=8e-3)
    assert fit.peak_rate == pytest.approx(rate, rel=2e-4)
    assert 100 * fit.error == pytest.approx(error, abs=0.05)


def test_every_published_curve_is_among_them() -> None:
    assert sorted(articles.curves()) == sorted(row[0] for row in PUBLISHED)


def law(sessions: int) -> float:
    return 1000 * sessions / (1 + 0.05 * (sessions - 1) + 0.001 * sessions * (sessions - 1))


def test_a_law_is_found_again_and_foretells() -> None:
    found = usl.study({n: [law(n)] * 5 for n in (1, 2, 4, 8, 16, 32, 64)}, name="exact")
    assert isinstance(found, usl.Study)
    assert (found.fit.gamma, found.fit.alpha, found.fit.beta) == pytest.approx((1000, 0.05, 0.001))
    assert found.fit.peak_sessions == pytest.approx(math.sqrt(0.95 / 0.001))
    assert found.fit.peak_rate == pytest.approx(law(30) / 1, rel=1e-2)
    assert found.prediction_error == pytest.approx(0, abs=1e-6)
    assert found.intervals["alpha"] == pytest.approx((0.05, 0.05))
    assert found.within(found.fit.peak_sessions)
    assert not found.within(65)


def test_no_parameter_is_below_zero() -> None:
    fit = usl.fit([1, 2, 4, 8], [1000, 2100, 4400, 9200])
    assert (fit.alpha, fit.beta) == (0.0, 0.0)
    assert fit.peak_sessions == math.inf
    assert fit.peak_rate == math.inf


def test_intervals_hold_the_value_and_come_out_the_same_again() -> None:
    scattered = {n: [law(n) * factor for factor in (0.9, 0.97, 1.0, 1.04, 1.1)] for n in (1, 2, 4, 8, 16, 32)}
    first, again = (usl.study(scattered, name="one") for _ in range(2))
    assert isinstance(first, usl.Study)
    assert first == again
    for name, (low, high) in first.intervals.items():
        assert low <= getattr(first.fit, name) <= high
    assert first.intervals["gamma"][0] < first.intervals["gamma"][1]


@pytest.mark.parametrize(
    ("points", "growing", "reason"),
    [
        ({n: [law(n)] for n in (1, 2, 4, 8)}, "", "4 numbers of sessions, and three parameters need 5"),
        ({n: [law(n)] for n in (1, 2, 4, 8, 16)} | {32: []}, "the table grows", "the table grows, so each point"),
        ({n: [law(n)] for n in (1, 2, 4, 8)} | {16: [0.0]}, "", "without a single operation"),
    ],
)  # fmt: skip
def test_where_there_is_no_law_the_reason_is_told(points: dict[int, list[float]], growing: str, reason: str) -> None:
    found = usl.study(points, name="none", growing=growing)
    assert isinstance(found, usl.NoFit)
    assert reason in found.reason


def test_two_points_are_no_curve() -> None:
    with pytest.raises(ValueError, match="give three or more"):
        usl.fit([1, 2], [1, 2])
