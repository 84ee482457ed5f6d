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
