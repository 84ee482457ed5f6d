"""Pairs on real servers: what is measured, what is refused, what is left out. No test asserts a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.live import missing_skips

from kvref_bench.errors import BenchError
from kvref_bench.load.engine import local
from kvref_bench.pairs import document
from kvref_bench.pairs.measure import Clients, Settings, measure, pair
from kvref_bench.pairs.rows import Generated, Row, Side, Sysbench, rows, table
from kvref_bench.pairs.servers import Server, boot, require_durable
from kvref_bench.peers import wire
from kvref_bench.peers.mysql_tables import MySQLTables
from kvref_bench.peers.processes import check_processors
from kvref_bench.turns import cpus, report
from kvref_bench.turns.cpus import Split
from kvref_bench.turns.loaded import Done
from kvref_bench.workload.keys import key
from kvref_testbed.targets import MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = {row.name: row for row in rows()}
FEW = 200  # keys
BEGIN, END = report.markers("p")

pytestmark = [pytest.mark.live, pytest.mark.nightly]


@pytest.fixture(scope="module")
def where() -> Split:
    there = sorted(os.sched_getaffinity(0))
    if len(there) < 2:
        if os.environ.get("CI"):
            pytest.fail("CI is set and this machine has one processor")
        pytest.skip("pairs need two processors")
    return Split(frozenset(there[:1]), frozenset(there[1:2]))


@pytest.fixture(scope="module")
def clients(where: Split) -> Iterator[Clients]:
    with cpus.on(where.clients), local(1, sorted(where.clients)) as engine:
        yield Clients(engine, where, table(FEW).keys, warmup=0.1, seconds=0.5)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def load(name: str, sessions: int = 4) -> Generated:
    """Return the load of a row's own side, with few sessions."""
    of = ROWS[name].ours.load
    assert isinstance(of, Generated)
    return Generated(replace(of.work, sessions=sessions))


def test_the_command_measures_a_row(tmp_path: Path, where: Split) -> None:
    options = "pairs --rows mixed-memcached --pairs 2 --seconds 1 --warmup 0.1 --keys 2000 --json p.json".split()
    options += ["--server-cpus", str(min(where.servers)), "--client-cpus", str(min(where.clients))]
    done = run(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "p.json").read_text())
    if made["skipped"]:
        with missing_skips():
            raise MissingError(made["skipped"][0]["reason"])
    [row] = made["rows"]
    mixed = ROWS["mixed-memcached"]
    assert (row["name"], row["target"], row["unit"]) == (mixed.name, mixed.target, "operations")
    for both in row["pairs"]:
        assert list(both) == ["ours", "theirs"]
        for side, process in (("ours", "kvref"), ("theirs", "memcached")):
            assert both[side]["generator"] == "memcaslap"
            assert both[side]["per_second"] > 0
            assert list(both[side]["server"]) == [process]
    ratios = [both["ours"]["per_second"] / both["theirs"]["per_second"] for both in row["pairs"]]
    assert row["ratio"] == {"median": pytest.approx(sum(ratios) / 2), "min": min(ratios), "max": max(ratios)}
    assert row["servers"]["kvref-sqlite"]["sqlite_journal_mode"] == "wal"
    assert made["settings"]["server_cpus"] == sorted(where.servers)
    assert str(tmp_path) not in json.dumps(made)
    assert "mixed-memcached: pair 2" in done.stderr
    assert done.stdout == document.table(made)
    assert run(tmp_path, "table", "p.json").stdout == done.stdout
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nbehind\n")
    assert run(tmp_path, "table", "p.json", "--into", "README.md").returncode == 0
    expected = f"before\n{BEGIN}\n{done.stdout}{END}\nbehind\n"
    assert (tmp_path / "README.md").read_text() == expected


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kvref", "bench", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_row_of_the_generator_is_measured_on_its_processors(where: Split) -> None:
    small = Row(
        "small", "get", Side("kvref-sqlite", load("get-8"), "four"), Side("kvref-sqlite", load("get-8", 2), "two"), 1.0
    )
    reply: list[str] = []
    before = os.sched_getaffinity(0)
    [measured] = measure([small], Settings(where, pairs=2, seconds=0.5, warmup=0.1, keys=FEW), reply.append)
    assert os.sched_getaffinity(0) == before
    assert not measured.skipped
    assert len(measured.pairs) == 2
    for done in (done for both in measured.pairs for done in both):
        assert done.generator == "kvref_bench"
        assert done.per_second > 0
        assert done.seconds == pytest.approx(0.5, abs=0.2)
        assert done.server["kvref"] > 0
    assert len([line for line in reply if line.startswith("small: pair")]) == 2


def test_a_row_whose_peer_is_missing_is_left_out(where: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("kvref_testbed.targets.needs._SERVERS", str(tmp_path))
    settings = Settings(where, pairs=1, seconds=0.5, keys=FEW)
    reply: list[str] = []
    [measured] = measure([ROWS["mixed-memcached"]], settings, reply.append)
    assert "'memcached' is not installed" in measured.skipped
    assert reply[-1].startswith("mixed-memcached: left out: 'memcached' is not installed")
    made = document.begin(settings)
    document.add(made, measured)
    assert made["rows"] == []
    assert made["skipped"][0]["name"] == "mixed-memcached"
    assert "Left out: mixed-memcached: 'memcached' is not installed" in document.table(made)


def test_a_row_of_another_version_needs_its_environment(where: Split) -> None:
    settings = Settings(where, pairs=1, seconds=0.5, keys=FEW)
    [measured] = measure([ROWS["other-get"]], settings, str)
    assert "give --other VENV" in measured.skipped


@pytest.mark.parametrize("name", ["other-get", "other-mysql-get"])
def test_another_version_is_measured(where: Split, tmp_path: Path, name: str) -> None:
    # Its version alone is another one.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$4" = --version ] && exec echo kvref, version 1\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    settings = Settings(where, pairs=1, seconds=0.5, warmup=0.1, keys=FEW, other=python)
    [measured] = measure([ROWS[name]], settings, str)
    if measured.skipped:
        with missing_skips():
            raise MissingError(measured.skipped)
    [(ours, theirs)] = measured.pairs
    assert ours.per_second > 0
    assert theirs.per_second > 0
    assert measured.facts[ROWS[name].theirs.server]["build"] == "kvref, version 1"
    assert "build" not in measured.facts[ROWS[name].ours.server]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (b"set %b 0 0 3\r\nbad\r\n", "wrong answers"),
        (b"delete %b\r\n", "answers that should not be: {'get miss'|wrong answers"),
    ],
)
def test_an_answer_that_is_not_the_right_one_ends_it(
    clients: Clients, stack: ExitStack, command: bytes, words: str
) -> None:
    [server] = booted(stack, "kvref-sqlite", clients=clients)
    clients.sweep(server, load("get-8"))
    clients.measure(server, load("get-8"))
    spoil(server, command)
    with pytest.raises(BenchError, match=words):
        clients.measure(server, load("get-8"))
    with pytest.raises(BenchError, match=words):
        clients.sweep(server, load("get-8"))


def booted(stack: ExitStack, *names: Any, clients: Clients) -> list[Server]:
    with missing_skips():
        servers = boot(stack, names, table(FEW), clients.where.servers)
    return [servers[name] for name in names]


def spoil(server: Server, command: bytes) -> None:
    assert server.address is not None
    with wire.link(server.address) as to:
        assert to.exchange((command % key(table(FEW).keys, 7)).removesuffix(b"\r\n")) in {b"STORED", b"DELETED"}


def test_what_is_over_mysql_is_one_server(clients: Clients, stack: ExitStack) -> None:
    with missing_skips():
        kvref, mysql, plugin = booted(stack, "kvref-mysql", "mysql", "plugin", clients=clients)
        for server in (kvref, mysql, plugin):
            require_durable(server)
        check_processors(kvref.pids.values(), clients.where.servers)
        assert list(kvref.pids) == ["kvref", "mysqld"]
        assert kvref.pids["mysqld"] == mysql.pids["mysqld"] == plugin.pids["mysqld"]
        procedure = ROWS["mysql-set-sproc"].theirs.load
        assert isinstance(procedure, Generated)
        for server, requests in (
            (kvref, load("mysql-get")),
            (kvref, load("mysql-set")),
            (plugin, load("mysql-set")),
            (mysql, Generated(replace(procedure.work, sessions=4))),
            (mysql, Sysbench(4)),
        ):
            clients.sweep(server, requests)
            done = clients.measure(server, requests)
            assert done.per_second > 0
            assert done.server["mysqld"] > 0
    assert mysql.sql is not None
    tables = MySQLTables(mysql.sql)
    # Prepared they are: a statement that is sent as text is none of these.
    executed = int(tables.query("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")[0][1])
    clients.measure(mysql, Sysbench(2))
    assert int(tables.query("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")[0][1]) > executed
    tables.query("DELETE FROM kvref_bench.demo ORDER BY k LIMIT 100")
    with pytest.raises(BenchError, match=r"sysbench ended with 1.*0 rows of the key"):
        clients.measure(mysql, Sysbench(4))


def test_a_server_that_is_not_durable_is_refused() -> None:
    fine = Server("plugin", None, None, {}, {"innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF"})
    require_durable(fine)
    for name, value in (("innodb_flush_log_at_trx_commit", "2"), ("log_bin", "ON")):
        with pytest.raises(BenchError, match=f"plugin is not durable as agreed: .*{name}"):
            require_durable(replace(fine, facts={**fine.facts, name: value}))


def test_the_order_within_pairs_alternates() -> None:
    row = ROWS["connections"]
    requests: list[int] = []

    class Noting:
        def measure(self, server: str, load: Generated) -> Done:
            requests.append(load.work.sessions)
            return Done("noting", float(load.work.sessions), 1.0, 0.0, {}, 0.0)

    noting: Any = Noting()
    servers: Any = {"kvref-sqlite": "the one"}
    pairs = [pair(row, noting, servers, number) for number in range(3)]
    assert requests == [2000, 20, 20, 2000, 2000, 20]
    assert [(ours.per_second, theirs.per_second) for ours, theirs in pairs] == [(2000.0, 20.0)] * 3


@pytest.mark.parametrize("name", ["generator-1", "generator-16"])
def test_parts_are_measured_as_rows(name: str, where: Split) -> None:
    settings = Settings(where, pairs=1, seconds=1.0, warmup=0.1, keys=2000)
    [measured] = measure([ROWS[name]], settings, str)
    if measured.skipped:
        with missing_skips():
            raise MissingError(measured.skipped)
    [(ours, theirs)] = measured.pairs
    assert ours.per_second > 0 < theirs.per_second
    assert ours.generator == "kvref_bench"
    assert theirs.generator == "memcaslap"
