"""Each verdict, of real runs against servers that break just so: `faulty_server.py`, native memcached, the plugin."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from live import target_or_skip

from kvref import profiles, targets
from kvref.mutants import CONTROL
from kvref.targets.kvref_serve import KvrefSQLite
from kvref_conformance import requirements, script
from kvref_conformance.case import by, case, say
from kvref_conformance.errors import CannotJudge
from kvref_conformance.link import version_line
from kvref_conformance.verdict import ABOUT, FAILS, FLAKY, HANG, HOLDS, NON_STRICT, QUIRK, Verdict, at_level

SERVER = Path(__file__).with_name("faulty_server.py")
Conform = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def conform(tmp_path: Path) -> Conform:
    """Return a function that runs a command of kvref in an empty directory, its report in `out`."""

    def run(*arguments: str, command: str = "conform") -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "kvref", command, *arguments]
        words += ["--report", "out"] if command == "conform" else []
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)

    return run


@contextmanager
def serving(*faults: str, watched: bool = False) -> Iterator[tuple[str, str]]:
    """Serve with faults; give the address and the command that starts the server again.

    With `watched` a shell does so by itself.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, str(SERVER), str(port), *faults]
    again = f"sh -c {shlex.quote(f'{shlex.join(words)} >/dev/null 2>&1 & echo $! >> again.pids')}"
    command = ["sh", "-c", f"while :; do {shlex.join(words)}; done"] if watched else words
    with subprocess.Popen(command, start_new_session=True) as server:
        deadline = time.monotonic() + 20
        while True:
            try:
                version_line(("127.0.0.1", port))
            except CannotJudge:
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.05)
            else:
                break
        try:
            yield f"127.0.0.1:{port}", again
        finally:
            os.killpg(server.pid, signal.SIGKILL)


def judged(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of verdicts in the report, by case."""
    lines = map(json.loads, (folder / "out" / "report.jsonl").read_text().splitlines())
    return {line["case"]: line for line in lines if line["kind"] == "verdict"}


def words(folder: Path) -> dict[str, str]:
    return {case: line["verdict"] for case, line in judged(folder).items()}


def stop_restarted(folder: Path) -> None:
    for pid in (folder / "again.pids").read_text().split():
        subprocess.run(["kill", "-9", pid], check=False, capture_output=True)


def test_levels() -> None:
    catalogue = requirements.load()
    must = next(each for each in catalogue.values() if each.level == "MUST")
    should = next(each for each in catalogue.values() if each.level == "SHOULD")
    quirk = next(each for each in catalogue.values() if each.level == "QUIRK")
    assert at_level(HOLDS, [must], "must") == HOLDS
    assert at_level(HOLDS, [quirk], "must") == QUIRK
    assert at_level(HOLDS, [quirk, must], "must") == HOLDS
    for demand, counts in (("must", [must]), ("should", [must, should]), ("quirk", [must, should, quirk])):
        for each in (must, should, quirk):
            wanted = FAILS if each in counts else NON_STRICT
            assert at_level(FAILS, [each], demand) == wanted, (each.level, demand)
    assert at_level(FLAKY, [quirk], "must") == NON_STRICT
    assert at_level(HANG, [quirk], "must") == HANG


def test_fails_is_deterministic_and_can_be_replayed(conform: Conform, tmp_path: Path) -> None:
    with serving("wrong") as (address, _):
        done = conform(address, "--only", "append-missing", "--only", "set-new")
        assert done.returncode == 1, done.stdout
        assert words(tmp_path) == {"set-new": "holds", "append-missing": "fails"}
        assert judged(tmp_path)["append-missing"]["repeated"] == "deterministic (5/5)"
        assert f"again: kvref replay out/replays/append-missing.json {address}" in done.stdout
        again = conform("out/replays/append-missing.json", address, command="replay")
        assert again.returncode == 1, again.stderr
        assert " allowed: END\\r\\n" in again.stdout
        file = tmp_path / "out" / "replays" / "append-missing.json"
        (tmp_path / "as-other.json").write_text(
            file.read_text().replace('"profile": "memcached"', '"profile": "mysql-8.0"')
        )
        assert "as mysql-8.0: 1 fails" in conform("as-other.json", address, command="replay").stdout
        last = conform(address, "--last-failed")
        assert last.returncode == 1
        assert words(tmp_path) == {"append-missing": "fails"}
    with serving() as (address, _):
        healed = conform("out/replays/append-missing.json", address, command="replay")
        assert healed.returncode == 0, healed.stdout
        assert "1 holds" in healed.stdout
        assert conform(address, "--last-failed").returncode == 0
        nothing = conform(address, "--last-failed")
        assert nothing.returncode == 2
        assert "nothing is broken in the report out" in nothing.stderr


def test_a_crash_is_a_verdict_and_the_run_goes_on(conform: Conform, tmp_path: Path) -> None:
    with serving("crash") as (address, again):
        try:
            done = conform(address, "--restart", again, "--only", "append-missing", "--only", "replace-missing",
                           "--only", "set-new", "--only", "prepend-missing", "--repeat", "2")  # fmt: skip
            assert done.returncode == 1, done.stdout
            assert words(tmp_path) == {
                "set-new": "holds", "replace-missing": "holds", "append-missing": "crash", "prepend-missing": "holds",
            }  # fmt: skip
            line = judged(tmp_path)["append-missing"]
            assert line["repeated"] == "deterministic (2/2)"
            assert "the endpoint was gone afterwards; it came back after" in line["text"]
            assert line["conversation"][-1]["sent"].startswith("append ")
            assert "by hand: printf 'append " in line["text"]
        finally:
            stop_restarted(tmp_path)


def test_without_a_restart_the_rest_is_not_run(conform: Conform, tmp_path: Path) -> None:
    with serving("crash") as (address, _):
        done = conform(address, "--only", "append-missing", "--only", "set-new", "--only", "prepend-missing")
        assert done.returncode == 1
        assert words(tmp_path) == {"set-new": "holds", "append-missing": "crash", "prepend-missing": "not-run"}
        reason = judged(tmp_path)["prepend-missing"]["reason"]
        assert reason.startswith("the endpoint ended in case append-missing and did not come back")
        assert reason.endswith("with --restart COMMAND the run would go on")


def test_a_server_that_something_else_starts_again_has_crashed(conform: Conform, tmp_path: Path) -> None:
    """It answers again at once, in another process."""
    with serving("crash", watched=True) as (address, _):
        done = conform(address, "--only", "append-missing", "--only", "set-new", "--only", "prepend-missing")
        assert done.returncode == 1
        assert words(tmp_path) == {"set-new": "holds", "append-missing": "crash", "prepend-missing": "holds"}
        assert judged(tmp_path)["append-missing"]["repeated"] == "deterministic (5/5)"


def test_a_replay_file_has_the_answers_of_its_profile() -> None:
    """Where a fact decides, what the profile says is written."""
    one = case("x", "KV-CORE-001", say("get {k}\r\n", by("mapping.supported", yes="A\r\n", no="B\r\n")))
    seen = Verdict("x", "storage", one.requirements, FAILS)
    for name, wanted in (("memcached", ["B\r\n"]), ("kvref", ["A\r\n"])):
        made = json.loads(script.as_json(one, profiles.load(name), seen, {}))
        assert made["steps"][0]["say"]["allow"] == wanted


@pytest.mark.slow
def test_a_hang_is_a_verdict(conform: Conform, tmp_path: Path) -> None:
    with serving("hang") as (address, _):
        done = conform(address, "--only", "prepend-missing", "--only", "set-new")
        assert done.returncode == 1
        assert words(tmp_path) == {"set-new": "holds", "prepend-missing": "hang"}
        line = judged(tmp_path)["prepend-missing"]
        assert line["repeated"].startswith("deterministic (")
        assert line["conversation"][-1]["note"] == "hang: no complete answer within 5 s"


@pytest.mark.slow
def test_what_is_only_slow_is_called_timing(conform: Conform, tmp_path: Path) -> None:
    with serving("slow") as (address, _):
        done = conform(address, "--only", "replace-missing", "--repeat", "1")
        assert done.returncode == 1
        line = judged(tmp_path)["replace-missing"]
        assert (line["verdict"], line["repeated"]) == ("hang", "timing: kept with waits 10 times as long (1/1)")


def test_flaky_is_a_verdict(conform: Conform, tmp_path: Path) -> None:
    with serving("flaky") as (address, _):
        done = conform(address, "--only", "add-new")
        assert done.returncode == 1
        line = judged(tmp_path)["add-new"]
        assert (line["verdict"], line["repeated"]) == ("flaky", "flaky 2/5")


def test_a_missing_feature_is_unsupported_and_a_frozen_one_disabled(conform: Conform, tmp_path: Path) -> None:
    with serving() as (address, _):
        plan = conform(address, "--dry-run", "--only", "touch", "--only", "set-new")
        assert plan.returncode == 0, plan.stderr
        assert "1 of 2 cases would be tried" in plan.stdout
        assert not (tmp_path / "out").exists()
        frozen = plan.stdout[plan.stdout.index("# What an endpoint") : plan.stdout.index("1 of 2")]
        assert "touch = false # it answers 'ERROR'" in frozen
        shown = conform(address, "--profile", "auto", "--only", "touch", "--only", "set-new")
        assert shown.returncode == 0
        assert frozen.rstrip("\n") in shown.stdout
        assert words(tmp_path) == {"set-new": "holds", "touch": "unsupported"}
        assert judged(tmp_path)["touch"]["reason"] == "the probe found no touch: it answers 'ERROR'"
        assert (tmp_path / "out" / "profile.toml").read_text() == frozen.rstrip("\n") + "\n"
        (tmp_path / "mine.toml").write_text(frozen)
        assert conform(address, "--profile", "mine.toml", "--only", "touch", "--only", "set-new").returncode == 0
        assert words(tmp_path) == {"set-new": "holds", "touch": "disabled"}
        (tmp_path / "mine.toml").write_text(frozen.replace("touch = false", "touch = true"))
        assert conform(address, "--profile", "mine.toml", "--only", "touch").returncode == 1
        assert words(tmp_path) == {"touch": "fails"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('profile = "memcached"\n[features]\ntouhc = true\n', "no feature 'touhc': choose of pipelining, binary, cas"),
        ('profile = "memcached"\n[features]\ntouch = "no"\n', "touch = 'no': true or false"),
        ('profile = "nobody"\n', "no profile 'nobody': choose auto,"),
        ("[features]\ntouch = true\n", 'a profile file has profile = "NAME" and [features], and nothing else'),
        ('profile = "memcached"\nfeatures = 3\n', "features = 3: write a table [features]"),
        ("profile = \n", "mine.toml: "),
        (None, "mine.toml: No such file or directory: --dry-run --profile auto prints such a file"),
    ],
)
def test_a_profile_file_is_read_strictly(conform: Conform, tmp_path: Path, text: str | None, complaint: str) -> None:
    if text is not None:
        (tmp_path / "mine.toml").write_text(text)
    done = conform("127.0.0.1:1", "--profile", "mine.toml")
    assert done.returncode == 2
    assert complaint in done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "no replay file: `kvref conform` writes them"),
        ("{", "no JSON"),
        ('{"kind": "kvref replay", "format": 9}', "format 9, this release reads 1"),
        ('{"kind": "kvref replay", "format": 1}', "malformed: KeyError 'profile'"),
        ('{"kind": "kvref replay", "format": 1, "profile": "x"}', "no profile 'x'"),
    ],
)
def test_a_replay_file_is_read_strictly(conform: Conform, tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "failure.json").write_text(text)
    done = conform("failure.json", "127.0.0.1:1", command="replay")
    assert done.returncode == 2
    assert complaint in done.stderr


@pytest.mark.live
def test_a_quirk_counts_where_it_is_demanded(conform: Conform, tmp_path: Path) -> None:
    """Native memcached, judged as the plugin, breaks a quirk of it: a failure only where quirks are demanded."""
    with target_or_skip("memcached") as target:
        only = ("--profile", "mysql-8.0", "--only", "stats-without-rows", "--only", "set-new")
        for level, code, word in (("must", 0, "non-strict"), ("should", 0, "non-strict"), ("quirk", 1, "fails")):
            assert conform(target.address, *only, "--level", level).returncode == code
            assert words(tmp_path) == {"set-new": "holds", "stats-without-rows": word}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "requirement", "drawn"),
    [
        ("forgets_the_fourth_part", "KV-SEQ-002", "any-table"),
        ("forgets_the_switch_of_a_silent_store", "KV-SEQ-001", "any-order-of-commands"),
    ],
)
def test_what_is_generated_over_sql_can_be_replayed(
    conform: Conform, tmp_path: Path, name: str, requirement: str, drawn: str
) -> None:
    """A server with one rule broken fails again by the file, on tables of another run; the whole one holds."""
    for mutant, code in ((name, 1), (CONTROL, 0)):
        with targets.booted(KvrefSQLite(mutant, program=("kvref.mutants", mutant))) as instance:
            address, store = instance.target.memcached(), instance.target.store
            assert store is not None
            behind = ("--sql", store, "--reload", f"kill -HUP {instance.target.pid}")
            if code:
                done = conform(address, *behind, "--only", requirement)
                assert done.returncode == 1, done.stdout
                assert judged(tmp_path)[drawn]["repeated"] == "deterministic (5/5)"
            again = conform(f"out/replays/{drawn}.json", address, *behind, command="replay")
            assert again.returncode == code, again.stdout


def test_the_readme_explains_each_verdict() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for word, meaning in ABOUT.items():
        assert f"| *{word}* | {meaning} |\n" in readme


def test_a_generated_conversation_finds_a_crash(conform: Conform, tmp_path: Path) -> None:
    """The machine ends the server, is given another each time, and shows what does it."""
    with serving("crash") as (address, again):
        try:
            done = conform(address, "--restart", again, "--only", "KV-SEQ-001", "--examples", "15", "--repeat", "1")
            assert done.returncode == 1, done.stdout
            line = judged(tmp_path)["any-order-of-commands"]
            assert (line["verdict"], line["repeated"]) == ("crash", "deterministic (1/1)")
            # How short it gets is a matter of how fast the server comes back.
            assert line["conversation"][-1]["sent"].startswith("append ")
            assert not any(each["sent"].startswith("append ") for each in line["conversation"][:-1])
        finally:
            stop_restarted(tmp_path)


def test_a_generated_case_goes_on_after_what_it_found(conform: Conform, tmp_path: Path) -> None:
    with serving("wrong", "flaky") as (address, _):
        assert conform(address, "--only", "KV-SEQ-001", "--examples", "30").returncode == 1
        found = {case: line for case, line in judged(tmp_path).items() if case.startswith("any-order-of-commands")}
        asked = {line["conversation"][-1]["sent"].split(" ")[0] for line in found.values()}
        assert {"get", "add"} <= asked, asked
        assert list(found)[1] == "any-order-of-commands~2"
        assert len({(line["conversation"][-1]["got"], len(line["conversation"])) for line in found.values()}) > 1
        again = conform("out/replays/any-order-of-commands.json", address, command="replay")
        assert again.returncode == 1, again.stdout


@pytest.mark.live
@pytest.mark.parametrize("name", ["memcached", "twemproxy-memcached"])
def test_any_arguments(conform: Conform, tmp_path: Path, name: str) -> None:
    """Memcached holds; twemproxy in front of it closes the connection where memcached says what is wrong."""
    with target_or_skip(name) as target:
        done = conform(target.address, "--only", "KV-SEQ-005", "--examples", "150", "--seed", "3")
        found = judged(tmp_path)
        if name == "memcached":
            assert (done.returncode, list(found)) == (0, ["any-arguments"])
            return
        assert done.returncode == 1
        notes = {line["conversation"][-1]["note"] for line in found.values()}
        assert notes == {"the endpoint closed the connection"}
        assert {line["repeated"] for line in found.values()} == {"deterministic (5/5)"}


def test_an_endpoint_that_a_probe_ends_is_not_judged(conform: Conform, tmp_path: Path) -> None:
    with serving("touchy") as (address, _):
        done = conform(address, "--only", "set-new")
        assert done.returncode == 2
        assert "cannot connect to ask for gat: " in done.stderr
        assert "freeze a profile file without what ends it" in done.stderr
    with serving("touchy") as (address, _):
        (tmp_path / "mine.toml").write_text(
            'profile = "memcached"\n[features]\ntouch = false\ngat = false\nmeta = false\n'
        )
        assert conform(address, "--profile", "mine.toml", "--only", "set-new", "--only", "touch").returncode == 0
        assert words(tmp_path) == {"set-new": "holds", "touch": "disabled"}
