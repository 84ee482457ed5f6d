"""A comparison says what repetitions show, and no more."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import points as made
from rich.console import Console

from kvref_bench.errors import BenchError
from kvref_bench.runs import compare as comparing
from kvref_bench.runs import document
from kvref_bench.runs.compare import Selection, compare
from kvref_bench.runs.records import Point

pytestmark = pytest.mark.nightly

QPS = comparing.MEASURES[0]


def _point(server: str, repetition: int, factor: float = 1.0, **facts: Any) -> Point:
    rng = np.random.default_rng([repetition, len(server), ord(server[0])])
    each = int(200 * factor * rng.normal(1.0, 0.01))
    return made.point(
        made.result(repetition, each=each, median=100e3 / factor), server=server, repetition=repetition, **facts
    )


def _run(folder: Path, factor: float, repetitions: int = 6, **facts: Any) -> Path:
    both = [(server, each) for each in range(repetitions) for server in ("a", "b")]
    return made.run(folder, *(_point(server, each, factor if server == "b" else 1.0) for server, each in both), **facts)


def _words(folder: Path, one: str = "a", other: str = "b") -> dict[str, str]:
    found = compare(Selection.parse(f"{folder}:{one}"), Selection.parse(f"{folder}:{other}"))
    assert len(found["compared"]) == 1
    return {each["measure"]: each["verdict"] for each in found["compared"][0]["ratios"]}


def test_the_quicker_one_is_faster_and_the_other_slower(tmp_path: Path) -> None:
    _run(tmp_path, 1.3)
    assert _words(tmp_path, "b", "a") == {
        "throughput": "faster", "p99": "faster", "server CPU per operation": "cheaper",
        "client CPU per operation": "cheaper",
    }  # fmt: skip
    assert _words(tmp_path, "a", "b")["throughput"] == "slower"
    assert _words(tmp_path, "a", "b")["client CPU per operation"] == "dearer"


def test_the_same_shows_no_difference(tmp_path: Path) -> None:
    _run(tmp_path, 1.0)
    assert set(_words(tmp_path).values()) == {"no difference shown"}


def test_a_difference_below_the_threshold_is_none(tmp_path: Path) -> None:
    _run(tmp_path, 1.04)
    found = compare(Selection.parse(f"{tmp_path}:b"), Selection.parse(f"{tmp_path}:a"))
    throughput = found["compared"][0]["ratios"][0]
    assert throughput["low"] is not None
    assert throughput["low"] > 1
    assert throughput["verdict"] == "no difference shown"
    smaller = compare(Selection.parse(f"{tmp_path}:b"), Selection.parse(f"{tmp_path}:a"), threshold=0.01)
    assert smaller["compared"][0]["ratios"][0]["verdict"] == "faster"


def test_four_repetitions_are_too_few(tmp_path: Path) -> None:
    _run(tmp_path, 2.0, repetitions=4)
    found = compare(Selection.parse(f"{tmp_path}:b"), Selection.parse(f"{tmp_path}:a"))["compared"][0]["ratios"][0]
    assert (found["verdict"], found["low"]) == ("too few repetitions", None)
    assert found["ratio"] == pytest.approx(2.0, rel=0.05)
    assert found["superiority"] == 1.0


def test_pairs_cancel_what_both_of_them_felt() -> None:
    # Neighbours halve the speed of some pairs: the ratio within a pair is the same all along.
    a = [100, 50, 101, 52, 99, 49, 100, 51]
    b = [value * 1.2 for value in a]
    found = comparing.of(QPS, b, a, pairs=True, threshold=0.05, seed="x")
    assert (found["low"], found["high"]) == pytest.approx((1.2, 1.2))
    assert found["verdict"] == "faster"
    assert comparing.of(QPS, b, a, pairs=False, threshold=0.05, seed="x")["verdict"] == "no difference shown"


def test_the_same_runs_give_the_same_interval() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(100, 5, 40), rng.normal(110, 5, 40)
    first, again, other = (
        comparing.of(QPS, a.tolist(), b.tolist(), pairs=True, threshold=0.05, seed=seed) for seed in ("x", "x", "y")
    )
    assert first == again
    assert first["low"] != other["low"]


def test_equal_servers_are_rarely_called_different() -> None:
    rng = np.random.default_rng(7)
    words = [
        comparing.of(
            QPS, rng.normal(100, 5, 6).tolist(), rng.normal(100, 5, 6).tolist(), pairs=True, threshold=0.05, seed=str(n)
        )["verdict"]
        for n in range(60)
    ]
    assert words.count("no difference shown") >= 50


def test_invalid_points_are_left_out_and_named(tmp_path: Path) -> None:
    points = [_point(server, each) for each in range(6) for server in ("a", "b")]
    points[3] = _point("b", 1, expected_hits=0.5)
    made.run(tmp_path, *points)
    found = compare(Selection.parse(f"{tmp_path}:a"), Selection.parse(f"{tmp_path}:b"))
    assert found["compared"][0]["ratios"][0]["repetitions"] == [5, 5]
    (left_out,) = found["left_out"]
    assert left_out.startswith(
        "B: point 3 (b, get, 8 sessions, repetition 1) is not valid: hit rate: 100.00% instead of 50.00%"
    )


def test_points_that_one_side_alone_has_are_named(tmp_path: Path) -> None:
    more = [_point("a", each, sessions=32) for each in range(5)]
    both = [_point(server, each) for each in range(5) for server in ("a", "b")]
    made.run(tmp_path, *both, *more)
    found = compare(Selection.parse(f"{tmp_path}:a"), Selection.parse(f"{tmp_path}:b"))
    assert len(found["compared"]) == 1
    assert found["left_out"] == ["A alone has series get, sessions 32, processes 1, depth 1, multiget 1, r_batch 1"]


def test_settings_that_one_side_alone_has_are_reported_and_do_not_part_them(tmp_path: Path) -> None:
    plugin = [_point("a", each, settings={"w_batch": batch, "flush": 1}) for each in range(5) for batch in (1, 32)]
    sql = [_point("b", each, series="select", settings={"flush": 1}) for each in range(5)]
    made.run(tmp_path, *plugin, *sql)
    found = compare(Selection.parse(f"{tmp_path}:a:get"), Selection.parse(f"{tmp_path}:b:select"))
    places = [each["place"] for each in found["compared"]]
    assert [(each["factor_w_batch"], each["factor_flush"]) for each in places] == [(1, 1), (32, 1)]


def test_two_runs_are_compared_with_a_warning(tmp_path: Path) -> None:
    one, two = _run(tmp_path / "1", 1.0, run_id="1"), _run(tmp_path / "2", 1.0, run_id="2")
    found = compare(Selection.parse(str(one)), Selection.parse(str(two)))
    assert found["warnings"][0].startswith("not interleaved")
    assert [each["place"]["server"] for each in found["compared"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("room", "name", "value"),
    [
        ("machine", "cpu_model", "abacus"),
        ("machine", "cores", 99),
        ("scenario", "spec_sha256", "1"),
        ("runtime", "python", "2"),
    ],
)
def test_two_runs_under_other_conditions_are_refused(tmp_path: Path, room: str, name: str, value: object) -> None:
    one, two = _run(tmp_path / "1", 1.0, 1, run_id="1"), _run(tmp_path / "2", 1.0, 1, run_id="2")
    info = json.loads((two / document.NAME).read_text())
    info[room][name] = value
    (two / document.NAME).write_text(json.dumps(info))
    with pytest.raises(BenchError, match=rf"must not be compared, they differ in {room} {name} \(.* and {value!r}\)"):
        compare(Selection.parse(str(one)), Selection.parse(str(two)))


def test_a_side_that_is_not_there(tmp_path: Path) -> None:
    _run(tmp_path, 1.0, 1)
    with pytest.raises(BenchError, match="has no server 'c': choose a, b"):
        Selection.parse(f"{tmp_path}:c")
    with pytest.raises(BenchError, match="has no series 'set': choose get"):
        Selection.parse(f"{tmp_path}:a:set")
    with pytest.raises(BenchError, match="no such run folder"):
        Selection.parse(f"{tmp_path}/gone:a")
    with pytest.raises(BenchError, match="is compared with itself: name a server"):
        compare(Selection.parse(str(tmp_path)), Selection.parse(str(tmp_path)))


def test_nothing_in_common_says_why(tmp_path: Path) -> None:
    made.run(tmp_path, _point("a", 0), _point("b", 0, expected_hits=0.5))
    with pytest.raises(BenchError, match=r"no valid point in common: B: point 1 .* is not valid: hit rate"):
        compare(Selection.parse(f"{tmp_path}:a"), Selection.parse(f"{tmp_path}:b"))


def test_it_is_plain_values_and_a_table(tmp_path: Path) -> None:
    _run(tmp_path, 1.5)
    found = compare(Selection.parse(f"{tmp_path}:b"), Selection.parse(f"{tmp_path}:a"))
    plain = json.loads(json.dumps(found, allow_nan=False))
    assert plain["compared"][0]["ratios"][0]["verdict"] == "faster"
    assert all("no conformance report" in text for text in plain["judged"].values())
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(comparing.table(found))
    assert "throughput, 1/s" in console.export_text()


def test_trials_of_a_lag_are_not_compared(tmp_path: Path) -> None:
    _run(tmp_path, 1.0, 1)
    side = Selection.parse(f"{tmp_path}:a")
    side.run.info["scenario"]["spec"]["kind"] = "lag"
    with pytest.raises(BenchError, match="has trials of a lag and no load"):
        compare(side, Selection(side.run, "b"))


def test_repetitions_that_are_all_alike_differ_in_nothing() -> None:
    found = comparing.of(QPS, [5.0] * 6, [5.0] * 6, pairs=True, threshold=0.05, seed="x")
    assert (found["ratio"], found["low"], found["high"], found["superiority"]) == (1.0, 1.0, 1.0, 0.5)
    assert found["verdict"] == "no difference shown"
