"""Percentiles are what the counts say, whichever way they are cut."""

from __future__ import annotations

import pandas as pd
import pytest

from kvref_bench.load import histogram
from support import latency

pytestmark = pytest.mark.nightly


def hist(*rows: tuple[int, int, int, int]) -> pd.DataFrame:
    """Make histogram rows of (point, second, nanoseconds, count)."""
    return pd.DataFrame([
        {"run_id": "r", "point_id": point, "second": second, "verb": "get", "outcome": "hit", "clock": "service",
         "bin_index": histogram.index(ns), "count": count}
        for point, second, ns, count in rows
    ])  # fmt: skip


def points(*rows: tuple[int, int]) -> pd.DataFrame:
    """Make points of (point, repetition)."""
    return pd.DataFrame([{"run_id": "r", "point_id": point, "rep": rep, "line": "a"} for point, rep in rows])


MEASURED = hist((0, 0, 100, 50), (0, 1, 120, 40), (1, 0, 100, 9), (1, 0, 90_000, 1), (2, 0, 5, 1000))


@pytest.mark.parametrize(("share", "expected"), [(0.5, 100), (0.6, 120), (0.99, 120), (1.0, 90_000)])
def test_a_quantile_is_the_same_from_the_curve_and_from_the_counts(share: float, expected: int) -> None:
    merged = latency.counts(MEASURED, points((0, 0), (1, 1)))
    (reported,) = latency.quantiles(merged, [share]).values()
    assert reported == latency.at(latency.curve(merged), share) == pytest.approx(expected, rel=0.008)
