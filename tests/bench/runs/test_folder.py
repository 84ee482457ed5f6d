"""A run is written point by point, and read as it was or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from helpers import points as made

from kvref_bench.errors import BenchError
from kvref_bench.load.histogram import quantile
from kvref_bench.load.records import Cell, Kind, Usage
from kvref_bench.runs import document, folder
from kvref_bench.runs.records import Merged, ServerSample

pytestmark = pytest.mark.programs  # git says what is measured


def test_workers_are_merged_exactly() -> None:
    one = made.result(seed=1, each=400)
    # The same operations dealt to two workers, bin by bin.
    halves: list[dict[Cell, dict[int, int]]] = [{}, {}]
    for cell, bins in one.histograms.items():
        for half, rest in zip(halves, (0, 1), strict=True):
            halves[half is halves[1]][cell] = {each: (count + rest) // 2 for each, count in bins.items()}
    assert Merged.of([made.result(histograms=half) for half in halves]).cells == one.histograms
    whole = Merged.of([one])
    assert whole.ops == 1600
    assert quantile(whole.bins("service"), 0.5) == quantile(whole.bins("service"), 0.5)


def test_what_the_server_used_before_the_first_reading_was_no_less(tmp_path: Path) -> None:
    used = Usage(user=1.0, system=0.5)
    samples = [ServerSample(used, seconds=each) for each in (2.0, 4.5, None)]
    points = [made.point(repetition=number, sample=each) for number, each in enumerate(samples)]
    run = folder.read(made.run(tmp_path / "run", *points))
    assert run.points["server_cpu_us_per_op"].tolist() == [1500.0, 750.0, 750.0]
    assert run.points["server_cpu_sys"].tolist() == [1.0, 0.5, 0.5]


def test_a_point_is_read_as_it_was(tmp_path: Path) -> None:
    counters = {"cmd_get": 2000, "get_hits": 2000}
    points = [made.point(repetition=each, sample=ServerSample(None, counters)) for each in range(5)]
    run = folder.read(made.run(tmp_path / "run", *points))
    assert run.info["finished"]
    assert run.points["rep"].tolist() == [0, 1, 2, 3, 4]
    row = run.points.iloc[0]
    assert (row["ops"], row["hits"], row["misses"], row["errors"], row["seconds"]) == (2000, 2000, 0, 0, 4.0)
    assert row["qps"] == 500.0
    assert row["p50"] == quantile(Merged.of(points[0].results).bins("service"), 0.5)
    assert row["client_cpu_us_per_op"] == pytest.approx(600.0)
    assert pd.isna(row["server_cpu_us_per_op"])
    assert pd.isna(row["intended_p99"])
    assert row["factor_r_batch"] == 1
    assert row["valid"]
    assert run.bins(0) == Merged.of(points[0].results).bins("service")
    assert json.loads(row["counters"]) == counters
    assert run.info["servers"][0]["judged"].startswith("no conformance report")


def test_a_killed_run_keeps_its_points(tmp_path: Path) -> None:
    writer = folder.RunWriter(tmp_path, made.header())
    writer.add(made.point())
    writer.add(made.point(settings={"r_batch": 1, "w_batch": 32}))
    # What a kill in the middle of the third leaves: its histograms, not its row.
    points = (tmp_path / "points.parquet").read_bytes()
    writer.add(made.point())
    (tmp_path / "points.parquet").write_bytes(points)
    run = folder.read(tmp_path)
    assert not run.info["finished"]
    assert run.points["ops"].tolist() == [2000, 2000]
    assert run.points["factor_w_batch"].tolist()[1] == 32
    assert set(run.hist["point_id"]) == {0, 1}


def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), folder.RunWriter(tmp_path, made.header()) as writer:
        writer.add(made.point())
        raise KeyboardInterrupt
    run = folder.read(tmp_path)
    assert run.info["finished"]
    assert run.info["stopped"] == "KeyboardInterrupt"
    assert len(run.points) == 1


def test_replies_that_are_not_allowed_are_kept_verbatim(tmp_path: Path) -> None:
    reply = bytes(range(256))
    bad = made.result(errors=150, unexpected=[(b"get k\r\n", reply)] * 100)
    run = folder.read(made.run(tmp_path, made.point(bad), made.point(bad, repetition=1)))
    lines = [json.loads(line) for line in (tmp_path / folder.ERRORS).read_text().splitlines()]
    assert [each["point_id"] for each in lines] == [0] * 100 + [1]
    assert lines[0]["reply"].encode("latin-1") == reply
    assert run.points["errors"].tolist() == [150, 150]
    assert not run.points["valid"].any()


def test_operations_with_an_error_are_no_throughput(tmp_path: Path) -> None:
    mixed = made.result(each=300)
    mixed.histograms.update(made.result(each=20, kind=Kind("get", "error")).histograms)
    run = folder.read(made.run(tmp_path, made.point(mixed)))
    assert run.points["ops"].tolist() == [1200]


def test_runs_are_found_by_scenario(tmp_path: Path) -> None:
    second = made.run(tmp_path / "b", made.point(), run_id="2-b")
    first = made.run(tmp_path / "deep" / "a", made.point(), run_id="1-a")
    assert folder.find(tmp_path, "made") == [first, second]
    assert folder.find(tmp_path, "other") == []


def test_a_folder_is_not_written_twice(tmp_path: Path) -> None:
    made.run(tmp_path, made.point())
    with pytest.raises(BenchError, match="has a run already"):
        folder.RunWriter(tmp_path, made.header())


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def _set(root: Path, **fields: object) -> None:
    path = root / document.NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


DAMAGES = [
    (lambda run: _cut(run / "points.parquet"), r"points\.parquet is not a whole parquet file.*copy it again"),
    (lambda run: _cut(run / "hist.parquet"), r"hist\.parquet is not a whole parquet file.*copy it again"),
    (lambda run: (run / "hist.parquet").unlink(), r"hist\.parquet is missing: copy the whole run folder"),
    (lambda run: pd.DataFrame({"a": [1]}).to_parquet(run / "points.parquet"), r"points\.parquet was changed after"),
    (lambda run: (run / "run.json").unlink(), r"no such run folder \(No such file or directory\)"),
    (lambda run: (run / "run.json").write_text('{"schema_version": 1,'), r"run\.json is not JSON \(.*copy the run"),
    (lambda run: (run / "run.json").write_text("[]"), r"run\.json has schema_version None, this kvref reads 1"),
    (lambda run: _set(run, schema_version=2), r"has schema_version 2, this kvref reads 1: use the kvref that wrote it"),
    (lambda run: _set(run, points="six"), r"run\.json: points: 'six' is not of type 'integer'"),
    (lambda run: _set(run, machine={"cores": 2}), r"run\.json: machine: '.*' is a required property"),
]


@pytest.mark.parametrize(("damage", "received"), DAMAGES)
def test_a_damaged_folder_names_file_and_fix(tmp_path: Path, damage: object, received: str) -> None:
    bad = made.result(errors=1, unexpected=[(b"get k\r\n", b"huh")])
    run = made.run(tmp_path / "run", made.point(bad), made.point(repetition=1), made.point(repetition=2))
    assert callable(damage)
    damage(run)
    with pytest.raises(BenchError, match=received):
        folder.read(run)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no such run folder"):
        folder.read(tmp_path / "gone")


def test_a_run_without_a_point(tmp_path: Path) -> None:
    made.run(tmp_path / "run")
    with pytest.raises(BenchError, match="has no point: it ended before its first one; repeat the run"):
        folder.read(tmp_path / "run")


def test_a_run_with_zero_samples(tmp_path: Path) -> None:
    made.run(tmp_path, made.point(made.result(histograms={})))
    with pytest.raises(BenchError, match=r"zero samples: no operation was answered in any of its 1 points"):
        folder.read(tmp_path)


def test_a_point_with_zero_samples_among_others_is_marked(tmp_path: Path) -> None:
    run = folder.read(made.run(tmp_path, made.point(made.result(histograms={})), made.point(repetition=1)))
    assert run.points["valid"].tolist() == [False, True]
    assert run.points["invalid_reason"].tolist()[0] == "no operation was answered"
    assert run.points["qps"].tolist()[0] == 0.0
