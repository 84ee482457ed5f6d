"""Percentiles are what the counts say, whichever way they are cut."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kvref_bench.load import histogram
from support import latency


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


def test_points_are_merged_and_others_left_out() -> None:
    merged = latency.counts(MEASURED, points((0, 0), (1, 1)))
    assert merged.to_dict() == {histogram.index(100): 59, histogram.index(120): 40, histogram.index(90_000): 1}


def test_another_run_with_the_same_numbers_is_another_point() -> None:
    both = pd.concat([MEASURED, MEASURED.assign(run_id="other")])
    assert latency.counts(both, points((2, 0))).sum() == 1000


def test_a_curve_ends_at_all_and_its_last_step_is_as_rare_as_one_of_all() -> None:
    curve = latency.curve(latency.counts(MEASURED, points((0, 0), (1, 1))))
    assert curve["share"].tolist() == [0.59, 0.99, 1.0]
    assert curve["above"].tolist() == [1.0, 0.41, 0.01]
    assert curve["beyond"].iloc[-1] == pytest.approx(100)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 100), (0.6, 120), (0.99, 120), (1.0, 90_000)])
def test_a_quantile_is_the_same_from_the_curve_and_from_the_counts(share: float, expected: int) -> None:
    merged = latency.counts(MEASURED, points((0, 0), (1, 1)))
    (reported,) = latency.quantiles(merged, [share]).values()
    assert reported == latency.at(latency.curve(merged), share) == pytest.approx(expected, rel=0.008)


def test_nothing_has_no_percentile() -> None:
    assert all(np.isnan(each) for each in latency.quantiles(latency.counts(MEASURED, points((7, 0)))).values())


def test_errors_are_in_no_percentile() -> None:
    class Run:
        hist = pd.concat([MEASURED, MEASURED.assign(outcome="error")])

    assert len(latency.joined([Run()])) == len(MEASURED)  # type: ignore[list-item]
