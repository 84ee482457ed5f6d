"""Each set-up on a real server: it is configured as its entry says, and its clients get and set. No test asserts a time."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from click.testing import CliRunner
from helpers.live import missing_skips

from kvref.cli import main
from kvref_bench.errors import BenchError
from kvref_bench.load import coordinator
from kvref_bench.load.engine import local
from kvref_bench.load.work import Clock
from kvref_bench.pairs.measure import Settings
from kvref_bench.peers import wire
from kvref_bench.setups import document
from kvref_bench.setups.entries import VERBS, Setup, setups
from kvref_bench.setups.measure import METRICS, Server, measure, opened, serve
from kvref_bench.turns import cpus, loaded, report
from kvref_bench.turns.cpus import Split
from kvref_bench.watch import Watch
from kvref_testbed.targets import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvref_bench.load.engine import Engine
    from kvref_bench.peers import OpenPeer

pytestmark = [pytest.mark.live, pytest.mark.nightly]
FEW = 200  # keys


# The first: later ones have the generator on one processor.
def test_the_command_measures_pairs(tmp_path: Path) -> None:
    file = tmp_path / "setups.json"
    words = "--only integer-key,write-batch --store sqlite --pairs 2 --seconds 0.5 --warmup 0 --keys 200".split()
    done = CliRunner().invoke(main, ["bench", "setups", *words, "--json", str(file)])
    assert done.exit_code == 0, done.output
    made = report.read(file, "setups")
    assert [each["name"] for each in made["setups"]] == ["integer-key", "write-batch"]
    for each in made["setups"]:
        assert len(each["pairs"]) == 2
        for side in (done for pair in each["pairs"] for verb in VERBS for done in pair[verb].values()):
            assert side["server"]["kvref"] > 0
            assert list(side["server"]) == ["kvref"]
    assert {"python", "build"} <= made["runtime"].keys()
    assert made["machine"]["cpu_model"]
    assert str(tmp_path) not in json.dumps(made)
    assert done.stdout == document.table(made)
    assert CliRunner().invoke(main, ["bench", "table", str(file)]).stdout == done.stdout
    assert "sqlite: integer-key: CPU time of kvref" in done.stderr


def test_a_set_up_that_fails_is_left_out_with_the_reason() -> None:
    there = sorted(os.sched_getaffinity(0))
    where = Split(frozenset(there[:1]), frozenset(there[-1:]))
    wrong = Setup("wrong", "a setting that there is not", options=("--set", "nothing=1"))
    lines: list[str] = []
    [measured] = measure({"sqlite": [wrong]}, Settings(where, pairs=1, keys=FEW), lines.append)
    assert measured.pairs == []
    assert measured.skipped.startswith("kvref serve refuses its options")
    assert lines == [f"sqlite: wrong: left out: {measured.skipped}"]


@pytest.fixture(scope="module")
def settings() -> Settings:
    there = sorted(os.sched_getaffinity(0))
    return Settings(Split(frozenset(there[:1]), frozenset(there[-1:])), keys=FEW)


@pytest.fixture(scope="module")
def engine(settings: Settings) -> Iterator[Engine]:
    with cpus.on(settings.where.clients), local(1) as made:
        yield made


@pytest.fixture(scope="module")
def databases(settings: Settings) -> Iterator[dict[str, OpenPeer | None]]:
    """Return the database server of each store, booted when it is first used."""
    with ExitStack() as stack:

        class Booted(dict[str, Any]):
            def __missing__(self, store: str) -> OpenPeer | None:
                with missing_skips():
                    self[store] = stack.enter_context(opened(store, settings, QUIET))
                return self[store]

        yield Booted()


def exchanged(server: Server, verb: str, engine: Engine, **changed: Any) -> None:
    """Send a pipeline of a verb on each connection, and compare each reply."""
    work = replace(server.work(verb), operations=16, **changed)
    loaded.answered(server.setup.name, coordinator.measure(server.address, work, Clock(0, 60), engine, Watch()))


CASES = [
    pytest.param(setup, store, id=f"{setup.name}-{store}")
    for store in ("sqlite", "mysql")
    for setup in setups()
    if store in setup.stores
]


@pytest.mark.parametrize(("setup", "store"), CASES)
def test_a_set_up_is_what_its_entry_says(
    setup: Setup, store: str, settings: Settings, engine: Engine, databases: dict[str, OpenPeer | None]
) -> None:
    with missing_skips(), serve(setup, store, databases[store], settings, QUIET) as server:
        for verb in reversed(VERBS):
            exchanged(server, verb, engine)
        table = setup.made(store, FEW)
        made = server.tables.ddl(table).upper().replace("`", "")
        assert f"K {table.key_type}" in made
        assert made.count(table.value_type or "VARCHAR(1024)") >= table.values.columns
        [container] = server.tables.containers()
        assert container["unique_idx_name_on_key"] == table.index
        assert container["value_columns"].count("|") == table.values.columns - 1
        assert server.tables.delimiter() == server.work("get").delimiter
        command = psutil.Process(server.pids["kvref"]).cmdline()
        assert {each for each in setup.options if each != METRICS} <= set(command)
        shown = wire.stats(server.administration, "settings")
        pairs = dict(word.split("=") for word in setup.options if "=" in word)
        assert {name: shown[name] for name in pairs if name in shown} == {n: pairs[n] for n in pairs if n in shown}
        if server.extras:
            with pytest.raises(BenchError):
                exchanged(server, "get", engine, **dict.fromkeys(server.extras, ""))
