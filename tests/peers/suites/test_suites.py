"""Test suites of other projects: what passes on memcached passes on kvref; each exception is a row with its reason."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.live import missing_skips
from peers.suites import run

EXCEPTIONS: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("exceptions.toml").read_text()
)
QUICK = "python-memcached"
KINDS = ("kvref", "memcached")
CASES = [
    pytest.param(name, kind, marks=[pytest.mark.live] if name == QUICK else [pytest.mark.live, pytest.mark.nightly])
    for name in run.SUITES
    for kind in KINDS
]


def expected(name: str, kind: str) -> dict[str, str]:
    """Return the tests that fail, and why."""
    return EXCEPTIONS.get(name, {}).get(kind, {})


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.timeout(1800)
def test_suite(name: str, kind: str, tmp_path: Path) -> None:
    try:
        with missing_skips():
            found = run.outcomes(name, kind, tmp_path)
    except run.UnavailableError as lack:
        # CI reaches the registries; a git host may be out of reach.
        required = os.environ.get("CI") and run.SUITES[name]["source"] != "git"
        pytest.fail(str(lack)) if required else pytest.skip(str(lack))
    assert found
    failed = {test for test, passed in found.items() if not passed}
    rows = set(expected(name, kind))
    assert not failed - rows, f"these fail: {sorted(failed - rows)}"
    assert not rows - failed, f"these pass or do not exist, and have a row in exceptions.toml: {sorted(rows - failed)}"


def test_each_exception_belongs_to_a_suite_and_has_a_reason() -> None:
    assert set(EXCEPTIONS) <= set(run.SUITES)
    for kinds in EXCEPTIONS.values():
        assert set(kinds) <= set(KINDS)
        assert all(reason for rows in kinds.values() for reason in rows.values())


@pytest.mark.programs
@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("print qq(1..2\\nok 1 - one\\nok 2\\n);", {"one": True, "2": True, "(runs to its end)": True}),
        ("print qq(1..2\\nok 1 - one\\nnot ok 2 - one\\n);", {"one": False, "(runs to its end)": True}),
        ("print qq(1..2\\nok 1 - at /tmp/x 0xff\\n); exit 1;", {"at … …": True, "(runs to its end)": False}),
        ("print qq(1..0 # SKIP no feature\\n);", None),
        ("die;", {"(runs to its end)": False}),
    ],
)
def test_what_a_perl_file_says(tmp_path: Path, program: str, found: dict[str, bool] | None) -> None:
    (tmp_path / "a.t").write_text(program)
    reply = run.tap(tmp_path / "a.t", tmp_path, {}, run.Groups())
    assert reply == {f"a.t: {name}": passed for name, passed in (found or {}).items()}


@pytest.mark.programs
def test_sources_are_those_of_the_commit(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "one"], ["tag", "v1"]):
        (origin).mkdir(exist_ok=True)
        subprocess.run(["git", *words], cwd=origin, check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=origin, check=True, capture_output=True, text=True).stdout
    suite = {"repository": str(origin), "tag": "v1", "commit": commit.strip()}
    (tmp_path / "good").mkdir()
    run.fetch_git(tmp_path / "good", suite)
    assert (tmp_path / "good" / "sources" / ".git").exists()
    (tmp_path / "bad").mkdir()
    with pytest.raises(ValueError, match="v1 is commit"):
        run.fetch_git(tmp_path / "bad", suite | {"commit": "0" * 40})
    (tmp_path / "none").mkdir()
    with pytest.raises(run.UnavailableError):
        run.fetch_git(tmp_path / "none", suite | {"repository": str(tmp_path / "nowhere")})


def test_what_a_ruby_file_says() -> None:
    reply = "noise\nA::b#test_0001_does it = 0.10 s = .\nA#test_0002_fails = 1.00 s = F\nA#test_0003_errs = 1.00 s = E\nA#test_0004_skips = 0.00 s = S\n3 runs"
    assert run.MINITEST.findall(reply) == [
        ("A::b#test_0001_does it", "."),
        ("A#test_0002_fails", "F"),
        ("A#test_0003_errs", "E"),
    ]


STARTS = """
import signal, sys
sys.path.insert(0, {tests!r})
from peers.suites import run
with run.ended_by_sigterm(), run.server("kvref") as port:
    print(port, flush=True)
    signal.pause()
"""


@pytest.mark.programs
def test_an_interrupted_run_leaves_no_server(tmp_path: Path) -> None:
    program = tmp_path / "starts.py"
    program.write_text(STARTS.format(tests=str(Path(__file__).parents[2])))
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        socket.create_connection(("127.0.0.1", port)).close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.programs
@pytest.mark.parametrize(("ends", "seconds"), [("", 30.0), ("; sleep 600", 1.0)])
def test_a_program_leaves_no_children(tmp_path: Path, ends: str, seconds: float) -> None:
    reply = run.Groups().run(["sh", "-c", f"sleep 600 >/dev/null 2>&1 & echo $!{ends}"], tmp_path, {}, seconds)
    with suppress(ProcessLookupError):  # It is gone already.
        assert select.select([os.pidfd_open(int(reply))], [], [], 10)[0]
