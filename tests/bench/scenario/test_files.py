"""The scenarios of the benchmark: each loads at each scale, and sends the commands of its article."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kvref_bench import scenario
from kvref_bench.load.work import Clock, Task
from kvref_bench.workload import plan_of

if TYPE_CHECKING:
    from kvref_bench.scenario import Scenario, Series

EXPERIMENTS = (
    "binlog-batch",
    "bk-commit-lag",
    "client-overhead",
    "get-vs-select",
    "memslap-get",
    "memslap-set",
    "random-user-capacity",
    "ro-1m-int",
    "set-vs-sproc",
    "tail",
)


def every() -> list[tuple[str, str]]:
    return [(name, scale) for name in EXPERIMENTS for scale in scenario.SCALES]


def sessions(loaded: Scenario, series: Series) -> tuple[int, ...]:
    return series.sessions or loaded.sessions


def test_every_experiment_has_its_scenario() -> None:
    assert scenario.names() == EXPERIMENTS


@pytest.mark.parametrize(("name", "scale"), every())
def test_each_loads_and_can_be_planned(name: str, scale: str) -> None:
    loaded = scenario.load(name, scale)
    assert (loaded.name, loaded.scale) == (name, scale)
    assert loaded.question.endswith("?")
    assert "Said" in loaded.source
    assert "ot said" in loaded.source
    for series in loaded.series:
        # A server says around its rows what a plan of SQL must know, and the pool of the full scale takes its time.
        if series.over == "memcached":
            few = replace(series.work, sessions=2, pool=20, operations=series.work.operations and 10)
            plan = plan_of(Task("127.0.0.1:1", few, Clock(0, 1), "", "", 0, 1))
            assert next(plan.exchanges(1))[0]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_scales_fit_their_machines(name: str) -> None:
    """Seconds of all points of one side; points of a number of operations, starts and loads come on top."""
    for scale, most in (("small", 10.0), ("laptop", 155.0)):
        loaded = scenario.load(name, scale)
        for over in ("memcached", "sql"):
            mine = [series for series in loaded.series if series.over == over and series.work.operations is None]
            points = sum(len(sessions(loaded, series)) * starts(loaded, series) for series in mine)
            points *= loaded.repetitions * (1 + len(loaded.rates))
            if loaded.kind == "load":
                assert points * (loaded.warmup + loaded.measure + loaded.cooldown) <= most, (name, scale, over)


def starts(loaded: Scenario, series: Series) -> int:
    count = 1
    for values in (loaded.settings if series.settings is None else series.settings).values():
        count *= len(values)
    return count


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_intervals_need_five_repetitions(name: str) -> None:
    for scale in ("laptop", "full"):
        assert scenario.load(name, scale).repetitions >= 5


def test_full_is_what_was_published() -> None:
    memslap = scenario.load("memslap-set", "full")
    assert memslap.sessions == (4, 8, 16, 32, 64, 128, 256)
    assert (memslap.table.keys.count, memslap.table.keys.length, memslap.table.values.sizes) == (
        5_000_000,
        100,
        (400, 400),
    )
    assert (memslap.series[0].work.operations, memslap.cooldown, memslap.fresh) == (100_000, 120, True)
    assert scenario.load("set-vs-sproc", "full").sessions == (8, 32, 128, 512)
    assert scenario.load("get-vs-select", "full").sessions == (8, 32, 128, 512)
    users = scenario.load("random-user-capacity", "full")
    assert max(users.sessions) == 64
    assert {series.work.operations for series in users.series} == {100_000}
    assert scenario.load("ro-1m-int", "full").table.keys.count == 1_000_000


def test_both_legs_of_a_comparison_share_their_round() -> None:
    """What is measured under the same settings is measured in turn."""
    for name in ("ro-1m-int", "random-user-capacity", "set-vs-sproc", "get-vs-select"):
        loaded = scenario.load(name)
        legs = {series.over: series for series in reversed(loaded.series)}
        assert legs["memcached"].settings == legs["sql"].settings
        assert sessions(loaded, legs["memcached"]) == sessions(loaded, legs["sql"])
        assert legs["memcached"].work.keys == legs["sql"].work.keys


def test_each_file_says_why() -> None:
    folder = Path(scenario.__file__).with_name("files")
    for path in folder.glob("*.toml"):
        lines = path.read_text().splitlines()
        assert sum(line.startswith("#") for line in lines) >= 4, path.name
        assert max(map(len, lines)) <= 200, path.name


def test_sessions_of_a_batch_have_rows_of_their_own() -> None:
    """Otherwise they wait for each other's row locks until the server gives up."""
    for name, scale in every():
        loaded = scenario.load(name, scale)
        for series in loaded.series:
            batches = (series.settings or loaded.settings).get("daemon_memcached_w_batch_size", (1,))
            if max(batches) > 1 and loaded.kind == "load":
                assert series.work.keys.apart or series.work.keys.distribution == "own"
