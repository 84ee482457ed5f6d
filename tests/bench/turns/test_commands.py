"""The commands that measure servers in turns: what they write, and what they refuse. No test asserts a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from helpers.live import missing_skips

from kvref.cli import main
from kvref_bench.turns import report, shards
from kvref_bench.turns.report import Column
from kvref_testbed.targets import QUIET
from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.vitess_programs import programs

pytestmark = [pytest.mark.live, pytest.mark.nightly]
# A connection is of a dozen objects and uvloop's transport; a buffer of 64 KiB for each, say, would show.
MOST = 6000  # bytes


def bench(*words: str) -> Result:
    return CliRunner().invoke(main, ["bench", *words])


def points(file: Path, *words: str) -> list[dict[str, Any]]:
    """Return the points of the document that a command writes; its machine and settings are there too."""
    done = bench(*words, "--json", str(file))
    assert done.exit_code == 0, done.output
    document = report.read(file, "points")
    assert document["machine"]["cpu_model"]
    assert document["settings"]
    assert done.stdout.startswith("| ")
    found: list[dict[str, Any]] = document["points"]
    return found


def test_a_table_has_a_line_for_each_place() -> None:
    measured = [{"server": name, "cpu": cpu, "more": None} for name, cpu in (("a", 3), ("b", 1), ("a", 1.0))]
    columns = (Column("server", "who"), Column("cpu", "µs", ".1f", max), Column("more", "more", of=sum))
    assert report.table(measured, columns) == "| who | µs | more |\n|---|---|---|\n| a | 3.0 |  |\n| b | 1.0 |  |\n"


@pytest.mark.parametrize(
    ("count", "expected"), [(1, ("-",)), (2, ("-80", "80-")), (4, ("-40", "40-80", "80-c0", "c0-"))]
)
def test_shards_divide_the_keyspace_ids_evenly(count: int, expected: tuple[str, ...]) -> None:
    assert shards.names(count) == expected


@pytest.mark.nightly
def test_numbers_of_shards_are_measured_in_turns(tmp_path: Path) -> None:
    with missing_skips():
        programs(QUIET)
        tool("etcd")
    words = ["shards", "--counts", "1,2", "--shares", "0.5", "--turns", "1", "--seconds", "0.5", "--keys", "200"]
    found = points(tmp_path / "shards.json", *words, "--server-cpu", "0.2")
    assert [(each["shards"], each["share"]) for each in found] == [(1, 0.5), (2, 0.5)]
    assert found[0]["gain"] == 1
    assert all(each["per_second"] > 0 and each["mysqld"] > 0 and each["vttablet"] > 0 for each in found)


def test_both_starts_are_measured(tmp_path: Path) -> None:
    found = points(tmp_path / "start.json", "start", "--times", "1")
    assert [each["what"] for each in found] == ["kvref serve, first answer", "kvref --help"]
    assert all(each["seconds"] > 0 for each in found)


def test_each_second_after_a_restart_is_measured(tmp_path: Path) -> None:
    words = ["--keys", "500", "--sessions", "2", "--seconds", "2", "--turns", "1"]
    found = points(tmp_path / "cold.json", "cold", *words)
    assert [each["second"] for each in found] == [1, 2]
    assert all(each["per_second"] > 0 for each in found)


def test_newcomers_are_measured(tmp_path: Path) -> None:
    [found] = points(tmp_path / "newcomer.json", "newcomer", "--clients", "3", "--seconds", "0.2")
    assert (found["target"], found["clients"]) == ("kvref-sqlite", 3)
    assert found["samples"] > 0
    assert 0 < found["median"] <= found["p99"] <= found["largest"]


@pytest.mark.serial
@pytest.mark.parametrize("target", ["kvref-sqlite", "kvref-sqlite-workers"])
def test_an_idle_connection_takes_little(tmp_path: Path, target: str) -> None:
    found = points(tmp_path / "memory.json", "memory", "--target", target, "--connections", "0,200,1000")
    assert [(each["protocol"], each["connections"]) for each in found] == [
        (protocol, count) for protocol in ("text", "binary") for count in (0, 200, 1000)
    ]
    assert all(500 < each["each"] < MOST for each in found if each["connections"] == 1000), found
    assert all(each["each"] is None for each in found if each["connections"] < 1000)


def test_strong_mode_is_never_stale_and_fast_mode_hits(tmp_path: Path) -> None:
    with missing_skips():
        tool("mariadbd")
    words = ["row-cache", "--shares", "0,0.1", "--seconds", "1.5", "--turns", "1", "--sessions", "16"]
    found = {(each["mode"], each["share"]): each for each in points(tmp_path / "points.json", *words)}
    assert set(found) == {(mode, share) for mode in ("off", "strong", "local", "fast") for share in (0, 0.1)}
    assert all(point["hits"] == 0 for (mode, _), point in found.items() if mode == "off")
    assert all(point["hits"] > 0.2 for (mode, _), point in found.items() if mode != "off")
    assert all(point["stale"] == 0 for (mode, _), point in found.items() if mode != "fast")
    assert all(point["writes"] > 0 for (_, share), point in found.items() if share)


@pytest.mark.timeout(300)
def test_a_session_sees_its_own_writes_through_secondaries(tmp_path: Path) -> None:
    with missing_skips():
        words = ["replica-reads", "--shares", "0.1", "--seconds", "1", "--turns", "1", "--sessions", "8"]
        found = {each["reads"]: each for each in points(tmp_path / "points.json", *words)}
    assert list(found) == ["primary", "replica", "session"]
    assert found["primary"]["from_secondary"] == 0
    assert found["replica"]["from_secondary"] > 0
    assert found["primary"]["stale"] == found["session"]["stale"] == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        *((["memory", f"--connections={counts}"], "write") for counts in ("0,100", "100,10", "1,x", "-1,1,2")),
        *((["row-cache", f"--shares={shares}"], "write numbers from 0 to below 1") for shares in ("1", "x", "-0.1")),
        (["growth", "--axes", "rows,size"], "no axes size: choose among rows, values"),
        (["growth", "--servers", "mysql"], "no servers mysql: choose among kvref-sqlite"),
        (["growth", "--axes", "rows", "--largest", "10000"], "fewer than 2 points of rows up to 10000"),
        (["setups", "--only", "demo,int"], "no set-ups int: choose among demo, profile-mysql-8.0"),
        (["pairs", "--rows", "get-9"], "no rows get-9: choose among mixed-plugin"),
        (["pairs", "--server-cpus", "0", "--client-cpus", "0"], "keep them apart"),
        (["table", "none.json"], "none.json cannot be read"),
    ],
)
def test_what_cannot_be_measured_is_refused(words: list[str], text: str) -> None:
    done = bench(*words)
    assert done.exit_code == 2
    assert text in done.output


def test_a_table_of_another_document_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "points.json"
    for content in ('{"version": 1, "points": []}', '{"version": 2, "rows": []}'):
        file.write_text(content)
        done = bench("table", str(file))
        assert done.exit_code == 2
        assert "holds no rows or setups or axes of version 1" in done.output
    page = tmp_path / "page.md"
    file.write_text(json.dumps(report.read(Path("bench/results/pairs.json"), "rows")))
    page.write_text("no marker")
    assert "no place for the table" in bench("table", str(file), "--into", str(page)).output


def test_a_server_that_refuses_connections_is_no_small_one() -> None:
    with missing_skips():
        tool("memcached")
    done = bench("memory", "--target", "memcached", "--connections", "10,1200")
    assert done.exit_code == 2
    assert "memcached refuses so many connections: ERROR Too many open connections" in done.output
