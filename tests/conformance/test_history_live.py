"""Results over time from real runs: kvref, memcached, and then a mutant in kvref's place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.live import target_or_skip

from kvref.cli import main
from kvref_testbed import targets
from kvref_testbed.targets.kvref_server import KvrefSQLite

pytestmark = [pytest.mark.live, pytest.mark.nightly]

CHAPTER = "cas"
REQUIREMENT = "KV-CAS-013"
MUTANT = "compares_half_a_cas_number"
ENDPOINTS = f"""\
[kvref]
conform = ["--target", "kvref-sqlite", "--profile", "kvref", "{CHAPTER}"]

[memcached]
conform = ["--target", "memcached", "{CHAPTER}"]
"""


def test_three_runs_show_what_a_mutant_broke(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    (folder / "endpoints.toml").write_text(ENDPOINTS)
    runner = CliRunner()
    with target_or_skip("memcached"):
        pass  # it is here: what `--judge` starts may then not be missing
    first = runner.invoke(main, ["matrix", "--history", str(folder), "--judge"])
    assert first.exit_code == 0, first.output
    with targets.booted(KvrefSQLite(MUTANT, program=("kvref_testbed.mutants", MUTANT))) as mutant:
        assert mutant.target.store is not None
        words = [mutant.target.memcached(), "--sql", mutant.target.store, "--profile", "kvref", CHAPTER]
        judged = runner.invoke(main, ["conform", *words, "--report", str(tmp_path / "mutant")])
    assert judged.exit_code == 1, judged.output
    second = runner.invoke(main, ["matrix", "--history", str(folder), f"kvref={tmp_path / 'mutant'}"])
    assert second.exit_code == 0, second.output
    kvref, memcached = json.loads((folder / "history.json").read_text())["endpoints"]
    assert [len(each["runs"]) for each in (kvref, memcached)] == [2, 1]
    assert memcached["changes"] == []
    regressions = [each for each in kvref["changes"] if each["kind"] == "regression"]
    assert REQUIREMENT in {name for each in regressions for name in each["requirements"]}
    assert all((each["before"]["verdict"], each["after"]["verdict"]) == ("holds", "fails") for each in regressions)
    before, after = (run["shares"]["all"] for run in kvref["runs"])
    assert before["kept"] == before["judged"]
    assert after["kept"] < after["judged"]
    assert json.loads((folder / "badges" / "kvref" / "core.json").read_text())["color"] == "red"
