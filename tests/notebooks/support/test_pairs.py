"""Pairs are repetitions of one run that differ in one thing; the verdict is that of `kvref bench compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

from kvref_bench.runs.ratio import NO_DIFFERENCE, TOO_FEW
from kvref_bench.runs.run import Run
from support import pairs

if TYPE_CHECKING:
    from pathlib import Path

BATCH = "factor_daemon_memcached_r_batch_size"
LEVEL = "factor_innodb_api_trx_level"


def run(path: Path, rates: dict[tuple[str, int, int], list[float]], series: str = "get") -> Run:
    """Make a run: operations a second of each repetition by (server, batch, level)."""
    rows = [
        {"run_id": "r", "point_id": 0, "server": server, "series": series, "sessions": 8, "processes": 1, "depth": 1, "multiget": 1,
         "rate": None, "rep": rep, "qps": qps, "p99": 1e9 / qps, "server_cpu_us_per_op": None, "client_cpu_us_per_op": None,
         "valid": True, BATCH: batch, LEVEL: level}
        for (server, batch, level), values in rates.items()
        for rep, qps in enumerate(values)
    ]  # fmt: skip
    servers = [{"name": name, "kind": "other", "version": "1", "judged": "not"} for name in {key[0] for key in rates}]
    spec = {"series": [{"name": series, "settings": None}], "settings": {}}
    info = {"run_id": "r", "servers": servers, "scenario": {"spec": spec}, "finished": True, "stopped": None}
    frame = pd.DataFrame(rows).astype({"rate": float, "server_cpu_us_per_op": float, "client_cpu_us_per_op": float})
    return Run(path, info, frame, *[pd.DataFrame()] * 3, [])


NOISY = [100.0, 130.0, 90.0, 120.0, 110.0]


def test_a_setting_is_compared_with_its_lowest_and_the_others_stay_at_theirs(tmp_path: Path) -> None:
    doubled = [each * 2 for each in NOISY]
    made = run(tmp_path, {("a", 1, 0): NOISY, ("a", 100, 0): doubled, ("a", 100, 2): [1.0] * 5})
    rows = pairs.of_settings(made, BATCH)
    (row,) = rows[rows["measure"] == "throughput"].to_dict("records")
    assert (row["comparison"], row["on"], row["verdict"], row["ratio"]) == ("r_batch 100 : 1", "a", "faster", 2.0)
    # In pairs the noise that both sides share is no part of the interval.
    assert row["low"] > 1.5
    assert row["superiority"] == 1.0


def test_four_pairs_have_no_interval(tmp_path: Path) -> None:
    made = run(tmp_path, {("a", 1, 0): NOISY[:4], ("a", 100, 0): [500.0] * 4})
    assert set(pairs.of_settings(made, BATCH)["verdict"]) == {TOO_FEW}
    assert "Fewer than 5 repetitions" in pairs.finding(pairs.of_settings(made, BATCH))


def test_the_same_bytes_from_the_same_run(tmp_path: Path) -> None:
    made = run(tmp_path, {("a", 1, 0): NOISY, ("a", 100, 0): NOISY[::-1]})
    assert pairs.of_settings(made, BATCH).to_csv() == pairs.of_settings(made, BATCH).to_csv()


def test_two_servers_are_compared_where_both_were_measured(tmp_path: Path) -> None:
    made = run(tmp_path, {("a", 1, 0): NOISY, ("b", 1, 0): NOISY, ("b", 100, 0): [1.0] * 5})
    rows = pairs.of_servers(made)
    assert rows["comparison"].unique().tolist() == ["b : a"]
    assert rows.loc[rows["measure"] == "throughput", "verdict"].tolist() == [NO_DIFFERENCE]


def test_the_answer_names_the_largest_difference(tmp_path: Path) -> None:
    rates = {("a", 1, 0): NOISY, ("b", 1, 0): [each * 3 for each in NOISY], ("c", 1, 0): [each * 1.5 for each in NOISY]}
    said = pairs.conclude([pairs.of_servers(run(tmp_path, rates))])
    assert said.known
    assert said.sentence.startswith("3 of 3 comparisons show a difference")
    assert "the largest: b : a, 8 sessions: 3.00 (3.00 to 3.00)" in said.sentence


@pytest.mark.parametrize("low_high", [(0.9, 1.1), (0.4, 0.9), (1.0, 30.0), (0.2, 80.0)])
def test_the_axis_names_one(low_high: tuple[float, float]) -> None:
    assert 1 in pairs._ticks(*low_high)


def test_nothing_to_compare_is_an_answer() -> None:
    assert not pairs.conclude([pairs.every_setting(None), pairs.every_server(None)]).known
