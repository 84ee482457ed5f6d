"""`kvref conform --self-test`: its sum, survivors, and what keeps it from saying anything."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers.waiting import until

from kvref.cli import main
from kvref.errors import KvrefError
from kvref_conformance.judging.verdict import FAILS, HOLDS, Verdict
from kvref_conformance_cli import self_test
from kvref_testbed.mutants import MUTANTS, Mutant

# Each landing judges mutants with this command, in .ci/part mutants.
pytestmark = pytest.mark.nightly

# Reaches its first request and raises there.
ROTTEN = """
import runpy, sys
from kvref.engine.items import storage
storage.unmet = None
sys.argv = ["kvref", *sys.argv[2:]]
runpy.run_module("kvref", run_name="__main__")
"""


def conform(*words: str) -> Result:
    return CliRunner().invoke(main, ["conform", *words])


def put_on_trial(monkeypatch: pytest.MonkeyPatch, *mutants: Mutant) -> None:
    """Let the self-test have this table; what breaks a server is found by its name."""
    monkeypatch.setattr(self_test, "MUTANTS", {each.name: each for each in mutants})


def test_all_are_killed() -> None:
    result = conform("--self-test", "--only", "narrows_*", "--only", "KV-MAP-00?")
    assert result.exit_code == 0, result.output
    *_, last = lines = result.output.splitlines()
    assert last == "4 mutants, 4 killed"
    rows = [line.split() for line in lines]
    assert [row for row in rows if row[1:] and row[1] in "12"] == [
        ["arithmetic", "1", "1"],
        ["mapping", "2", "2"],
        ["binary_store", "1", "1"],
    ]


def test_a_survivor_is_named_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its replies to cas are others, and the cases of this requirement allow both.
    harmless = Mutant("answers_without_cas_numbers", "KV-BINFRAME-006", "Keys are [as] they were.", lambda: None)
    put_on_trial(monkeypatch, harmless)
    result = conform("--self-test")
    assert result.exit_code == 1, result.output
    assert "survived: answers_without_cas_numbers, KV-BINFRAME-006: Keys are [as] they were.\n" in result.output
    assert result.output.endswith("\n1 mutants, 0 killed\n")


def test_a_mutant_whose_patch_is_not_used_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    unused = Mutant("narrows_flags", "KV-MAP-001", "Keys are [as] they were.", lambda: None)
    value = Mutant("cuts_long_values", "KV-MAP-001", "No function is another.", lambda: None)
    put_on_trial(monkeypatch, unused, value, MUTANTS["echoes_the_bare_key"])
    result = conform("--self-test")
    assert result.exit_code == 2, result.output
    assert "changes nothing: narrows_flags, KV-MAP-001: Keys are [as] they were.\n" in result.output
    assert "survived" not in result.output
    *_, counted, error = result.output.splitlines()
    assert counted == "3 mutants, 1 killed"
    assert all(f"{each}@default-path" in error for each in ("narrows_flags", "cuts_long_values"))


def test_one_that_does_not_start_says_nothing_of_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_trial(monkeypatch, Mutant("no-such", "KV-MAP-001", "", lambda: None))
    result = conform("--self-test")
    assert result.exit_code == 2
    # Whichever of its two trials ends first.
    assert re.search(r"no-such(@default-path)? could not be judged: kvref exited with status 2", result.output)
    assert "killed" not in result.output


def test_a_requirement_that_the_unbroken_server_does_not_meet_kills_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_trial(monkeypatch, Mutant("echoes_the_bare_key", "KV-MAP-037", "", lambda: None))
    result = conform("--self-test")
    assert result.exit_code == 2
    assert "the server that is not broken does not hold:\nKV-MAP-037: no case of it holds" in result.output


def test_ctrl_c_ends_every_server(tmp_path: Path) -> None:
    # A run started in the background inherits an ignored SIGINT; a person's Ctrl-C meets the default.
    interruptible = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        [sys.executable, "-m", "kvref", "conform", "--self-test", "--only", "never_commits_*"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,  # noqa: PLW1509 - no other thread runs here
    )
    until(lambda: sum(path.read_text() != "" for path in tmp_path.glob("kvref-*/kvref.pid")) == 2)
    servers = [int(path.read_text()) for path in tmp_path.glob("kvref-*/kvref.pid")]
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "Error: interrupted before every mutant was judged\n"
    assert process.returncode == 2
    until(lambda: not list(tmp_path.glob("kvref-*")))
    assert not [pid for pid in servers if Path(f"/proc/{pid}").exists()]


def test_a_case_that_fails_the_unbroken_server_is_a_complaint() -> None:
    held = Verdict("a", "mapping", ("KV-MAP-001", "KV-MAP-002"), HOLDS)
    assert self_test.complaints([held], {"KV-MAP-001", "KV-MAP-002"}) == []
    assert self_test.complaints([held], {"KV-MAP-003"}) == ["KV-MAP-003: no case of it holds"]
    failed = Verdict("b", "mapping", ("KV-MAP-001",), FAILS, text="it said no")
    assert self_test.complaints([held, failed], {"KV-MAP-001"}) == ["it said no"]


def test_an_error_of_its_own_does_not_kill_a_mutant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "rotten.py").write_text(ROTTEN)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(self_test, "PROGRAM", "rotten")
    with pytest.raises(KvrefError, match=r"an unrelated error(.|\n)*'NoneType' object is not callable"):
        self_test.judged("rotten", {"KV-CORE-011"})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--self-test", "127.0.0.1:1"], "--self-test starts its own servers: remove HOST:PORT"),
        (["--self-test", "--target", "kvref-mariadb", "--report", "out"], "remove --report"),
        (["--self-test", "--target", "memcached"], "or over a database with --target kvref-mariadb, kvref-mysql-8.0"),
        (["--self-test", "--sql", "sqlite:///x", "--seed", "1"], "remove --sql, --seed"),
        (["--self-test", "--only", "no-such-*"], "no mutant or requirement matches no-such-*"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_started(words: list[str], message: str) -> None:
    result = conform(*words)
    assert result.exit_code == 2
    assert message in result.output
