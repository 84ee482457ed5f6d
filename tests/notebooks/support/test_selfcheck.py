"""The generator's own figures, and that percentiles from bins are as exact as the bins promise."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from support import selfcheck


def test_the_nearest_to_the_ceiling_is_first_and_points_without_one_are_left_out() -> None:
    same = {
        "scenario": "s",
        "server": "m",
        "series": "get",
        "sessions": 1,
        "depth": 1,
        "rate": math.nan,
        "rep": 0,
        "valid": True,
    }
    rows = [(100.0, 400.0), (300.0, 400.0), (1.0, math.nan)]
    points = pd.DataFrame([{**same, "qps": qps, "ceiling": ceiling, "ops": 10} for qps, ceiling in rows])
    assert selfcheck.ceilings(points)["share"].tolist() == [0.75, 0.25]


def test_clients_are_listed_cheapest_first_with_what_the_kernel_takes() -> None:
    points = pd.DataFrame([
        {"run_id": "r", "series": name, "client_cpu_us_per_op": user + system, "client_cpu_user": user / 1e6 * 1000,
         "client_cpu_sys": system / 1e6 * 1000, "ops": 1000, "qps": 5.0}
        for name, user, system in [("slow", 20.0, 10.0), ("fast", 2.0, 4.0)] * 5
    ])  # fmt: skip
    table = selfcheck.clients(points)
    assert table.index.tolist() == ["fast", "slow"]
    assert table["times"].tolist() == pytest.approx([1, 5])
    assert table.loc["fast", ["user", "system"]].tolist() == pytest.approx([2, 4])


def test_the_answer_counts_what_missed_the_limit() -> None:
    none = pd.DataFrame()
    reply = selfcheck.conclude(none, pd.DataFrame({"lag_p99": [1e6, 3e6, math.nan]}), none)
    assert "within 2 ms of the scheduled time in 1 of 2 runs" in reply.sentence


def test_without_a_null_responder_nobody_can_tell() -> None:
    assert not selfcheck.conclude(pd.DataFrame(), selfcheck.calibrations([]), pd.DataFrame()).known
