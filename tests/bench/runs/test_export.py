"""What is exported is read by the readers of those formats, also where nothing was measured."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from helpers import points as made

from kvref_bench.errors import BenchError
from kvref_bench.load.plan import Kind
from kvref_bench.load.result import Cell
from kvref_bench.runs import folder
from kvref_bench.runs.export import FORMATS, export
from kvref_bench.runs.run import Run

pytestmark = pytest.mark.programs  # git says what is measured


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run of two points: gets and sets with an open loop's clocks, and one without a sample."""
    mixed = made.result(seconds=3)
    mixed.histograms.update(made.result(1, seconds=3, each=100, kind=Kind("set", "stored"), median=300e3).histograms)
    mixed.histograms.update(made.result(2, seconds=3, each=7, kind=Kind("delete", "deleted")).histograms)
    mixed.histograms.update(made.result(2, seconds=3, each=2, kind=Kind("get", "error")).histograms)
    lag = {Cell(0, made.GET_HIT, "lag"): {5000: 1}, Cell(2, made.GET_HIT, "lag"): {5000: 3}}
    mixed.histograms.update({cell: {1500: 4} for cell in lag})
    empty = made.result(histograms={}, seconds=0, sent=0, received=0)
    points = (made.point(mixed, rate=600.0), made.point(empty, repetition=1, settings={}))
    return folder.read(made.run(tmp_path / "run", *points))


def test_a_log_of_histograms_is_read_again(run: Run, tmp_path: Path) -> None:
    first, second = export(run, "hlog", tmp_path / "out")
    reader = HistogramLogReader(str(first), HdrHistogram(1, 1 << 38, 3))
    total = {"service": 0, "lag": 0}
    while (interval := reader.get_next_interval_histogram()) is not None:
        total[interval.get_tag()] += interval.get_total_count()
    reader.close()
    assert total == {"service": 3 * 607, "lag": 8}
    assert "Tag=" not in second.read_text()


def test_percentiles_are_those_of_the_run(run: Run, tmp_path: Path) -> None:
    lag, service, empty = export(run, "hgrm", tmp_path / "out")
    assert (lag.name, service.name) == ("00000-get-a-8-0-lag.hgrm", "00000-get-a-8-0-service.hgrm")
    rows = [line.split() for line in service.read_text().splitlines() if re.match(r"\s+\d", line)]
    at_99 = next(float(row[0]) for row in rows if float(row[1]) >= 0.99)
    assert at_99 == pytest.approx(run.points["p99"][0] / 1e6, rel=0.05)
    assert float(rows[-1][0]) == pytest.approx(run.points["max"][0] / 1e6, rel=0.01)
    deviation = re.search(r"StdDeviation\s*=\s*([\d.]+)", service.read_text())
    assert deviation is not None
    assert 0.01 < float(deviation[1]) < 0.2  # ms
    assert "TotalCount     =        0.000" in empty.read_text()


def test_memtiers_json_has_its_names_and_our_figures(run: Run, tmp_path: Path) -> None:
    first, second = export(run, "memtier", tmp_path / "out")
    stats = json.loads(first.read_text())["ALL STATS"]
    assert list(stats) == ["Runtime", "Sets", "Gets", "Waits", "Deletes", "Totals"]
    assert [stats[name]["Count"] for name in list(stats)[1:]] == [300, 1500, 0, 21, 1821]
    assert stats["Gets"]["Ops/sec"] == stats["Gets"]["Hits/sec"] == 500.0
    assert stats["Totals"]["Percentile Latencies"]["p99.00"] == pytest.approx(run.points["p99"][0] / 1e6, abs=1e-3)
    histogram = HdrHistogram.decode(
        stats["Totals"]["Percentile Latencies"]["Histogram log format"]["Compressed Histogram"]
    )
    assert histogram.get_total_count() == 1821
    assert histogram.get_value_at_percentile(99) == pytest.approx(run.points["p99"][0] / 1e3, rel=0.01)
    assert [stats["Gets"]["Time-Serie"][second]["Count"] for second in "012"] == [500, 500, 500]
    nothing = json.loads(second.read_text())["ALL STATS"]
    assert nothing["Totals"]["Count"] == nothing["Gets"]["Ops/sec"] == nothing["Totals"]["Latency"] == 0
    assert nothing["Totals"]["Percentile Latencies"]["p99.90"] == 0


def test_tables_as_csv(run: Run, tmp_path: Path) -> None:
    files = export(run, "csv", tmp_path / "out")
    assert [path.name for path in files] == ["points.csv", "hist.csv", "series.csv", "resources.csv"]
    rows = list(csv.DictReader(files[0].read_text().splitlines()))
    assert [row["ops"] for row in rows] == ["1821", "0"]
    assert rows[1]["p99"] == rows[1]["factor_r_batch"] == ""


def test_another_format_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=f"no format 'xls': choose {', '.join(FORMATS)}"):
        export(run, "xls", tmp_path)
