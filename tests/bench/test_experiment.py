"""Runs of real servers from request to folder."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest
from helpers.live import missing_skips, target_or_skip
from helpers.waiting import until
from rich.console import Console

from kvref_bench import experiment, scenario
from kvref_bench.display import Screen
from kvref_bench.errors import BenchError
from kvref_bench.experiment import Request, Workers
from kvref_bench.peers import PeerSpec
from kvref_bench.runs import folder

if TYPE_CHECKING:
    from pathlib import Path

    from kvref_bench.order import Turn
    from kvref_bench.runs.folder import Run
    from kvref_bench.scenario import Scenario

pytestmark = [pytest.mark.live, pytest.mark.nightly]

SETTINGS = ["sessions=1,4", "repetitions=2", "measure=0.3", "warmup=0.1", "table.keys.count=200", "work.pool=512"]


def small(*overrides: str, name: str = "get-vs-select") -> Scenario:
    return scenario.load(name, "small", [*SETTINGS, *overrides])


def measure(
    chosen: Scenario, specs: list[PeerSpec], path: Path, workers: Workers | None = None, screen: Screen | None = None
) -> tuple[Run, str | None]:
    with missing_skips():
        request = Request(chosen, specs, workers or Workers(), path, 7, ["bench"])
        found = experiment.measure(request, screen or Screen(Console(quiet=True)))
    return folder.read(found.folder), found.stopped


def test_two_servers_in_turn_with_an_open_loop_and_what_was_left_out(tmp_path: Path) -> None:
    specs = [PeerSpec("memcached"), PeerSpec("kvref-sqlite", name="ours")]
    run, stopped = measure(small("rates=0.5"), specs, tmp_path / "run")
    assert stopped is None
    assert run.info["finished"]
    points = run.points
    closed = points[points["rate"].isna()]
    # One loop after the other; within it repetitions, sessions, and the servers in turn.
    assert closed["server"].tolist() == ["memcached", "ours"] * 2 + ["ours", "memcached"] * 2
    assert closed["sessions"].tolist() == [1, 1, 4, 4] * 2
    assert points["rate"].isna().tolist() == [True] * 8 + [False] * 8
    for (server, sessions), part in points.groupby(["server", "sessions"]):
        median = part[part["rate"].isna()]["qps"].median()
        assert part["rate"].dropna().tolist() == pytest.approx([median / 2] * 2), (server, sessions)
        assert part["intended_p50"].notna().tolist() == part["rate"].notna().tolist()
    assert (points["errors"] == 0).all()
    assert (points["hits"] == points["ops"]).all()
    # What the generator can do without a server is at least what it did with one.
    assert (closed["ceiling"] > 0).all()
    shapes = run.info["calibration"]["null_responder"]
    assert [each["sessions"] for each in shapes] == [1, 4]
    assert shapes[0]["lag_p99_ns_at_half"] > 0
    assert any(note.startswith("left out: select on memcached: no SQL server") for note in run.info["notes"])
    [native, ours] = run.info["servers"]
    assert not native["ddl"]
    assert "CREATE TABLE" in ours["ddl"]
    assert ours["containers"]
    assert run.info["seed_rng"] == 7


def test_a_setting_that_a_server_refuses_is_left_out_and_the_others_are_measured(tmp_path: Path) -> None:
    chosen = small("sessions=1", "repetitions=1")
    settings: dict[str, tuple[int, ...]] = {"innodb_api_trx_level": (0, 9, 2)}
    chosen = replace(chosen, series=(replace(chosen.series[0], settings=settings),), rates=())
    run, stopped = measure(chosen, [PeerSpec("kvref-sqlite")], tmp_path / "run")
    assert stopped is None
    assert run.points["factor_innodb_api_trx_level"].tolist() == [0, 2]
    [note] = run.info["notes"]
    assert "innodb_api_trx_level=9" in note


class Killer(Screen):
    """Kills a process when a point begins, and waits until its sockets are closed."""

    def __init__(self, pid: int, at: int) -> None:
        super().__init__(Console(quiet=True))
        self._pid = pid
        self._at = at

    def point(self, turn: Turn) -> None:
        super().point(turn)
        self._at -= 1
        if not self._at:
            os.kill(self._pid, signal.SIGKILL)
            until(self._has_ended)

    def _has_ended(self) -> bool:
        try:
            return psutil.Process(self._pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True


def test_a_server_that_dies_ends_the_run_which_keeps_its_points(tmp_path: Path) -> None:
    with target_or_skip("memcached") as target:
        spec = PeerSpec(target.memcached())
        run, stopped = measure(small(), [spec], tmp_path / "run", screen=Killer(target.pid, at=3))
    assert stopped is not None
    assert str(target.address) in stopped or "refused" in stopped
    assert run.info["stopped"] == stopped
    assert len(run.points) == 2


def test_a_server_that_dies_before_the_first_point_is_an_error(tmp_path: Path) -> None:
    with target_or_skip("memcached") as target, pytest.raises((BenchError, OSError)):
        measure(small(), [PeerSpec(target.memcached())], tmp_path / "run", screen=Killer(target.pid, at=1))
    assert not (tmp_path / "run").exists()


def test_a_scenario_that_a_server_cannot_do_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        BenchError, match="nothing to measure: left out: set on memcached: native memcached has no table"
    ):
        measure(scenario.load("binlog-batch", "small"), [PeerSpec("memcached")], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_two_servers_of_one_name_are_refused(tmp_path: Path) -> None:
    with target_or_skip("memcached") as target, pytest.raises(BenchError, match="two servers are named"):
        measure(small(), [PeerSpec(target.memcached())] * 2, tmp_path / "run")


# One at each landing.
@pytest.mark.parametrize("name", scenario.names())
def test_each_scenario_is_measured_at_small_scale(name: str, tmp_path: Path) -> None:
    chosen = scenario.load(name, "small", ["repetitions=1"])
    run, stopped = measure(chosen, [PeerSpec("kvref-sqlite")], tmp_path / "run")
    assert stopped is None
    assert (run.points["ops"] > 0).all()
    # Batches of several sessions on the same rows may end in deadlocks; the points are marked.
    errors = tmp_path / "run" / folder.ERRORS
    lines = errors.read_text().splitlines() if errors.exists() else []
    assert all("deadlock" in json.loads(line)["reply"] for line in lines), lines[:3]
    # Some series need a SQL server, some settings InnoDB; whatever has no point has a reason.
    notes = run.info["notes"]
    for series in chosen.series:
        assert series.name in set(run.points["series"]) or any(f"left out: {series.name} on" in each for each in notes)
