"""What a run exercised: shapes of keys, states of connections, the section of the report; a live run and its gaps."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers.live import target_or_skip
from helpers.reports import HEADER

from kvref import profiles
from kvref.protocol.command_table import TEXT, TEXT_BEYOND_PLUGIN
from kvref.specification.deviations import Deviations
from kvref_conformance import sql as sql_of
from kvref_conformance.case import Case, Setup, await_reply, case, frames, send, send_unanswered, sql, start_request
from kvref_conformance.coverage import Exercised, summary
from kvref_conformance.endpoints import endpoint
from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.judging.judge import Judge
from kvref_conformance.judging.verdict import HOLDS, Tally
from kvref_conformance.reports import html, jsonl
from kvref_conformance.sql.world import World
from kvref_conformance.stateful.concurrency import judge_concurrency
from kvref_conformance.steps import Disconnect, Reload
from kvref_conformance.wire.verbs import BINARY, OTHER, VERBS
from kvref_testbed import targets

W, R = "daemon_memcached_w_batch_size", "daemon_memcached_r_batch_size"
NAMES = {"m1": "one", "m2": "two", "t1": "table"}
LONG = "k" * 251


def collector(profile: str = "kvref", **begin: Any) -> Exercised:
    exercised = Exercised(profiles.load(profile))
    exercised.begin(NAMES, **begin)
    return exercised


def test_the_verbs_of_the_server_are_those_of_the_coverage() -> None:
    server = {verb.decode() for verb in (*TEXT, *TEXT_BEYOND_PLUGIN)}
    administration = {"cache_memlimit", "lru_crawler", "refresh_certs", "shutdown"}
    assert server - VERBS.keys() == administration, "only these count as `other`"
    assert {name for name in VERBS if not name.startswith(BINARY)} - server == {OTHER}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("get a", "key"),
        ("get @@one", "@@name"),
        ("get @@one.a", "@@name.key"),
        ("get @@one.", "@@name."),
        ("get @@three.a", "@@unknown"),
        ("get @@one.a b", "@@name.key, key, several"),
        ("get @>=a@<b", "range"),
        ("get @@one.@<b", "@@name.key, range"),
        ("get", "empty"),
        (f"delete {LONG}", "over 250"),
        (f"get @@one.{LONG}", "@@name.key, over 250"),
        ("get \x01\xff", "control, non-ASCII"),
        ("mg Zm9v b v", "base64"),
        ("mg b", "key"),
        ("ms Zm9v 1 b\r\nx", "base64"),
        ("bind two", "@@name"),
        ("bind three", "@@unknown"),
        (f"bind {LONG}", "over 250"),
        ("stats items", "no key"),
    ],
)
def test_a_request_has_shapes(line: str, wanted: str) -> None:
    exercised = collector()
    exercised.record("a", f"{line}\r\n".encode("latin-1"))
    assert {shape for _, shape in exercised.cells} == set(wanted.split(", "))


@pytest.mark.parametrize(
    ("profile", "delimiter", "word", "wanted"),
    [
        ("kvref", "->", "@@one->a", "@@name.key"),
        ("kvref", "->", "@@one-a", "@@unknown"),
        ("mysql-8.0", "->", "@@one-a", "@@name."),
        ("mysql-8.0", "->", "@@one->a", "@@name.key"),
        ("kvref", None, "@@one.a", "@@name.key"),
        ("memcached", ".", "@@one.a", "key"),
        ("memcached", ".", "@>a", "key"),
        ("mysql-5.6", ".", "@>a", "key"),
    ],
)
def test_shapes_depend_on_the_endpoint(profile: str, delimiter: str | None, word: str, wanted: str) -> None:
    exercised = collector(profile, setup=Setup(delimiter))
    exercised.record("a", f"get {word}\r\n".encode())
    assert list(exercised.cells) == [("get", wanted)]


def states(exercised: Exercised, verb: str) -> list[tuple[str, str]]:
    return [(mapping, batch) for (name, mapping, batch) in exercised.states if name == verb]


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ([], ("default", "no batch")),
        ([("bind one", "SUCCEED")], ("bound", "no batch")),
        ([("bind three", "NOT_FOUND")], ("after failed bind", "no batch")),
        ([("bind three", "NOT_FOUND"), ("get @@two.a", "END")], ("switched", "read batch")),
        ([("get @@three.a", "END")], ("default", "read batch")),
        ([("get @@three", "VALUE @@three 0 1\r\nx\r\nEND"), ("bind three", "SUCCEED")], ("bound", "no batch")),
        ([("bind one", "NOT_FOUND")], ("after failed bind", "no batch")),
        ([("set a 0 0 1\r\nx", "STORED")], ("default", "write batch")),
        ([("set a 0 0 1\r\nx", "NOT_STORED")], ("default", "no batch")),
        ([("get a", "END"), ("delete a", "DELETED")], ("default", "both")),
        ([("get @@one", "VALUE @@one 0 1\r\nx\r\nEND")], ("switched", "no batch")),
        ([("set a 0 0 1\r\nx", "STORED"), ("bind two", "SUCCEED")], ("bound", "no batch")),
        ([("set @@one.a 0 0 1\r\nx", "STORED"), ("set @@one.b 0 0 1\r\nx", "STORED")], ("switched", "write batch")),
        ([("set a 0 0 1\r\nx", "STORED")] * 3, ("default", "no batch")),
        ([("get a", "END")] * 2, ("default", "no batch")),
        ([("get a", "END"), ("flush_all", "OK")], ("default", "no batch")),
    ],
)
def test_the_state_follows_from_what_was_sent(before: list[tuple[str, str]], wanted: tuple[str, str]) -> None:
    exercised = collector(settings={W: 3, R: 2})
    for line, got in before:
        exercised.record("a", f"{line}\r\n".encode(), f"{got}\r\n")
    exercised.record("a", b"incr a 1\r\n")
    assert states(exercised, "incr") == [wanted]


def test_a_literal_case_is_followed_step_by_step() -> None:
    steps = (
        send_unanswered("set {k} 0 0 3\r\na"),
        send("bc\r\n", "STORED\r\n"),
        sql("SELECT 1", (1,)),
        start_request("delete {k}\r\n", "b"),
        await_reply("DELETED\r\n", "b"),
        Disconnect("a"),
        send("incr {k} 1\r\n", "NOT_FOUND\r\n"),
        Reload(),
        frames("get key={k}", "get ok", on="b"),
        send("never sent\r\n", ""),
    )
    opened = Exchange("a", "bind one\r\n", (), "SUCCEED\r\n", opening=True)
    exchanges = [
        *(opened, Exchange("a", "set k 0 0 3\r\na", (), ""), Exchange("a", "bc\r\n", (), "STORED\r\n")),
        Exchange("sql", "SELECT 1", (), "[(1,)]"),
        *(Exchange("b", "delete k\r\n", (), ""), Exchange("b", "delete k\r\n", (), "DELETED\r\n")),
        *(Exchange("a", "incr k 1\r\n", (), "NOT_FOUND\r\n"), Exchange("sql", "(configuration read again)", (), "")),
        Exchange("b", "get key=k", (), "get ok"),
    ]
    exercised = Exercised(profiles.load("kvref"))
    exercised.take(case("followed", "KV-SEQ-001", *steps), exchanges, NAMES)
    assert exercised.cells == {
        ("bind", "@@name"): 1, ("set", "key"): 1, ("delete", "key"): 1, ("incr", "key"): 1, ("binary get", "key"): 1,
    }  # fmt: skip
    assert states(exercised, "set") == [("bound", "no batch")]
    assert states(exercised, "incr") == states(exercised, "binary get") == [("default", "no batch")]
    exercised.take(case("not-held", "KV-SEQ-001", *steps, settings={W: 4}), [], NAMES)
    assert len(exercised.rows) == 1


def test_a_run_that_sent_nothing_says_nothing(tmp_path: Path) -> None:
    section = summary.as_json(collector())
    assert (section, summary.closing_lines(section)) == ({}, [])
    jsonl.write(tmp_path / "report.jsonl", HEADER, Tally(), section)
    assert "exercised" not in json.loads((tmp_path / "report.jsonl").read_text().splitlines()[-1])
    html.write(tmp_path / "report.html", HEADER, Tally(), section)
    assert "exercised" not in (tmp_path / "report.html").read_text()


@pytest.fixture(scope="module")
def served() -> Iterator[targets.Target]:
    """Return kvref over SQLite."""
    with target_or_skip("kvref-sqlite") as target:
        yield target


def judged(target: targets.Target, folder: Path, *options: str) -> tuple[dict[str, Any], str]:
    """Judge cases with the pytest plugin; return the section of the report and what the terminal shows."""
    command = [sys.executable, "-m", "pytest", "--pyargs", "kvref_conformance", "-p", "kvref_conformance.plugin"]
    command += ["--endpoint", target.memcached(), "--sql", str(target.store), "--reload", f"kill -HUP {target.pid}"]
    command += ["--report", "out", "-p", "no:cacheprovider", "--examples", "3", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    footer = json.loads((folder / "out" / "report.jsonl").read_text().splitlines()[-1])
    return footer["exercised"], done.stdout


@pytest.mark.live
@pytest.mark.nightly
def test_a_run_reports_what_it_exercised_and_what_not(served: targets.Target, tmp_path: Path) -> None:
    section, shown = judged(served, tmp_path, "--chapter", "bind", "--chapter", "separator")
    shapes, states, settings = section["key_shapes"], section["states"], section["settings"]
    assert shapes["counts"]["bind"]["@@name"] > 10
    assert shapes["counts"]["bind"]["@@unknown"] > 0
    assert shapes["counts"]["mg"] == {}
    assert {"range", "over 250"} <= set(shapes["missing"]["get"])
    assert "key" not in shapes["missing"]["get"]
    assert states["counts"]["get"]["after failed bind"]["no batch"] > 0
    lacking = next(entry["states"] for entry in states["missing"] if "get" in entry["verbs"])
    assert "both" in lacking["bound"]
    assert "no batch" not in lacking["bound"]
    assert ["separator: several bytes", "value columns: 3"] not in settings["pairs"]["missing"]
    assert ["delimiter: other byte", "value columns: 3"] in settings["pairs"]["missing"]
    assert shown.count("\nexercised: ") == 2
    assert f"exercised: {shapes['exercised']} of {shapes['possible']} verbs x key shapes" in shown


@pytest.mark.live
@pytest.mark.nightly
def test_histories_count() -> None:
    settings = {W: 4, R: 1000}
    words = [f"{name}={value}" for name, value in {**settings, "innodb_api_bk_commit_interval": 100000}.items()]
    with target_or_skip("kvref-sqlite", [word for each in words for word in ("--set", each)]) as target:
        found = endpoint.find(target.memcached(), "kvref")
        with closing(sql_of.connect(str(target.store), "8.0.33")) as database:
            world = World(database, found, None, "ztest")
            world.create()
            judge = Judge(found, Deviations([]), world, "", "ztest")
            counting = Case("counted", ("KV-BATCH-001",), (), settings=settings)
            (verdict,) = judge_concurrency(judge, counting, "concurrency", 40, 1)
    assert verdict.verdict == HOLDS, verdict.text
    exercised = judge.exercised
    counted = {batch for name, _, batch in exercised.states if name in {"get", "set"}}
    assert counted == {"no batch", "write batch", "read batch", "both"}
    # Three connections of forty histories, each of which begins with bind, or in the binary protocol with its get.
    assert exercised.cells["bind", "@@name"] + exercised.cells["binary get", "@@name"] >= 120
    assert [dict(levels)["write batch"] for levels in exercised.rows] == ["small"]
