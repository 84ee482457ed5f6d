"""Throughput, law and capacity of a scenario: tables, sentences, and charts that are whole slides."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from helpers import scenarios as made
from matplotlib import image

from support import capacity, gather, style, throughput
from support.capacity import Limits
from support.gather import Data

pytestmark = pytest.mark.nightly


GET, SELECT = made.series("get"), made.series("select", "sql")
RATES = {1: 1000, 2: 1900, 4: 3400, 8: 5200, 16: 6500, 32: 6000}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Data:
    points = [each for n, rate in RATES.items() for each in made.measured("get", made.PLUGIN, n, rate, cpu=n / 16)]
    points += [each for n, rate in RATES.items() for each in made.measured("select", made.PLUGIN, n, rate / 2)]
    points += made.measured("get", made.MEMCACHED, 8, 9000, client=0.95)
    made.write(tmp_path / "r1", "ro-1m-int", [GET, SELECT], [made.PLUGIN, made.MEMCACHED], points)
    monkeypatch.setenv(gather.VARIABLE, str(tmp_path))
    found = gather.gather("ro-1m-int")
    assert found is not None
    return found


def test_lines_are_servers_and_sides(data: Data) -> None:
    assert sorted(data.line_styles) == ["memcached 1.6.18", "plugin 8.0.33", "plugin 8.0.33, SQL"]
    assert data.line_styles["plugin 8.0.33"].colour == style.PALETTE["plugin"][0]
    assert data.line_styles["plugin 8.0.33, SQL"].colour == style.PALETTE["mysql"][0]
    rates = throughput.table(data).set_index(["line", "sessions"])
    assert rates.loc[("plugin 8.0.33", 8), "rate"] == 5200
    assert rates.loc[("memcached 1.6.18", 8), "use"] == "limited"
    # 0.5 of a core for 5200 operations a second.
    assert rates.loc[("plugin 8.0.33", 8), "server_us"] == pytest.approx(96.2, abs=0.1)
    assert rates.loc[("plugin 8.0.33", 8), "cores"] == pytest.approx(0.5)


def test_the_table_for_readers_is_the_same_bytes_each_time(data: Data) -> None:
    rows = throughput.words(data).to_csv(index=False).splitlines()
    assert rows[1] == 'get,memcached 1.6.18,8,"9,000","8,820 to 9,180",5,limited,22,110,0.20'
    assert rows[5] == 'get,plugin 8.0.33,8,"5,200","5,100 to 5,300",5,valid,96,58,0.50'


def test_the_answer_says_what_is_a_bound(data: Data) -> None:
    reply = throughput.answer("ro-1m-int")
    assert reply.known
    assert reply.sentence == (
        "Between 1 and 32 sessions the highest rates, operations a second, are: memcached 1.6.18 at least 9,000 with 8 "
        "sessions, plugin 8.0.33 6,500 with 16 sessions (6.5 times one session) and plugin 8.0.33, SQL 3,250 with 16 "
        "sessions (6.5 times one session)."
    )
    assert any("client's limit" in limit for limit in reply.limits)


def test_the_capacity_by_line(data: Data) -> None:
    limits = Limits(p99=1e9, cpu=0.25)
    # A quarter of 4 cores is used with 16 sessions, half of them with 32.
    rows = capacity.table(data, limits, 20_000)
    assert rows.loc["plugin 8.0.33", ["sessions", "machines"]].tolist() == ["16", "5"]
    assert rows.loc["plugin 8.0.33", "limited by"].startswith("CPU is ")
    assert rows.loc["plugin 8.0.33, SQL", ["sessions", "limited by"]].tolist() == ["32", "nothing that was measured"]
    assert rows.loc["memcached 1.6.18", ["sessions", "limited by"]].tolist() == ["-", "no valid point was measured"]
    reply = capacity.answer("ro-1m-int", limits, 20_000).sentence
    assert "plugin 8.0.33 holds 16 sessions" in reply
    assert "plugin 8.0.33, SQL holds at least 32 sessions" in reply
    assert "5 machines for 20,000 a second" in reply
    strict = capacity.answer("ro-1m-int", Limits(p99=1), 20_000)
    assert not strict.known
    assert "p99 is " in strict.sentence


def test_a_chart_is_a_whole_slide(data: Data) -> None:
    chart = throughput.chart_rates(data)
    assert image.imread(io.BytesIO(chart.png())).shape[:2] == (1080, 1920)
    # Nothing that is drawn is cut by the page.
    drawn = chart.get_tightbbox()
    assert 0 <= drawn.x0 < drawn.x1 <= style.SIZE[0]
    assert 0 <= drawn.y0 < drawn.y1 <= style.SIZE[1]


def test_the_newest_run_of_each_server_counts(tmp_path: Path) -> None:
    for name, server, rate in (("r1", made.PLUGIN, 1000), ("r2", made.PLUGIN, 2000), ("r3", made.KVREF, 500)):
        made.write(tmp_path / name, "ro-1m-int", [GET], [server], made.measured("get", server, 8, rate))
    found = gather.gather("ro-1m-int", tmp_path)
    assert found is not None
    assert [run.id for run in found.runs] == ["r2", "r3"]
    assert found.points.groupby("label")["qps"].median().to_dict() == {"kvref-sqlite": 500, "plugin 8.0.33": 2000}
    assert found.left_out == ("run r1: newer ones have its servers",)


def test_without_a_run_the_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gather.VARIABLE, str(tmp_path))
    shown = gather.show("ro-1m-int", throughput.chart_rates)
    words = " ".join(text.get_text() for text in shown.axes[0].texts)
    assert "kvref bench run ro-1m-int" in words.replace("\n", " ")
    for reply in (throughput.answer("ro-1m-int"), capacity.answer("ro-1m-int", Limits(), 1)):
        assert not reply.known
        assert reply.sentence.startswith("Cannot tell: no run of ro-1m-int here. `kvref bench run ro-1m-int ")
