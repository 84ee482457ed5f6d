"""Real duels: kvref against itself is equal, against another profile it is not, and the plugins agree with it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.live import missing_skips, target_or_skip

from kvref.cli import main
from kvref_conformance.corpus.targets.plugin import PluginTarget
from kvref_conformance.corpus.targets.sqlite import SQLiteTarget
from kvref_conformance.differential import known_differences
from kvref_conformance.differential import run as run_of_duel
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.differential.exchange import Side
from kvref_conformance.differential.exclusions import rules_for
from kvref_conformance.differential.run import Found, Run, Tally
from kvref_testbed import targets

KVREF = "kvref-sqlite"


class Notes:
    """Keeps the reports of a run."""

    def __init__(self) -> None:
        self.found_ones: list[Found] = []

    def step(self, text: str) -> None:
        """Ignore it."""

    def finished(self, tally: Tally) -> None:
        """Ignore it."""

    def found(self, found: Found) -> None:
        """Keep it."""
        self.found_ones.append(found)


def duel(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["duel", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_kvref_is_equal_to_itself(profile: str, tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    code, output = duel(
        KVREF, KVREF, "--profile", profile, "--conversations", "8", "--seed", "3", "--json", str(counts)
    )
    assert code == 0, output
    made = json.loads(counts.read_text())
    assert made["conversations"] == 8
    assert made["steps"] > 8 * 25
    assert made["differences"] == made["did_not_repeat"] == {}


@pytest.mark.parametrize("more", [("--protocol", "mixed"), ("--batches",)])
def test_kvref_is_equal_to_itself_in_both_protocols_and_in_batches(more: tuple[str, ...]) -> None:
    code, output = duel(KVREF, KVREF, "--profile", "mysql-8.0", *more, "--conversations", "8")
    assert code == 0, output
    assert "8 conversations" in output


@pytest.fixture
def hardly_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """End shrinking early: the length of what is found does not matter."""
    monkeypatch.setattr(run_of_duel, "SHRINKING_SECONDS", 2.0)


@pytest.mark.usefixtures("hardly_shrunk")
def test_another_rule_of_batches_is_found_and_saved_with_their_options(tmp_path: Path) -> None:
    both = ["--profile", "mysql-8.0", "--profile", "kvref", "--batches", "--conversations", "2", "--seed", "2"]
    code, output = duel(KVREF, KVREF, *both, "--save", str(tmp_path))
    assert code == 1, output
    saved = [json.loads(path.read_text()) for path in tmp_path.glob("*.jsonl")]
    assert all("--daemon_memcached_w_batch_size=4" in each["options"] for each in saved)
    assert saved


@pytest.mark.usefixtures("hardly_shrunk")
def test_another_profile_is_found_in_frames_and_saved_as_such(tmp_path: Path) -> None:
    both = ["--profile", "mysql-5.6", "--profile", "mysql-8.0", "--protocol", "binary"]
    code, output = duel(KVREF, KVREF, *both, "--only", "3:0", "--save", str(tmp_path))
    assert code == 1, output
    steps = [step for path in tmp_path.glob("*.jsonl") for step in json.loads(path.read_text())["steps"]]
    assert any("frames" in step.get("send", {}) and step.get("got") for step in steps)
    assert not any("packets" in step.get("send", {}) for step in steps)


def test_another_profile_is_found_shrunk_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_of_duel, "SHRINKING_SECONDS", 600.0)  # to the end, on a busy machine too
    both = ["--profile", "mysql-8.0", "--profile", "kvref", "--conversations", "1", "--steps", "10", "--seed", "3"]
    code, output = duel(KVREF, KVREF, *both, "--save", str(tmp_path))
    assert code == 1, output
    assert "repeats)" in output
    saved = sorted(tmp_path.glob("*.jsonl"))
    assert saved
    shortest = min(len(json.loads(path.read_text())["steps"]) for path in saved)
    assert shortest <= 3


def test_a_saved_difference_is_replayed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # To the end: what is shown of a conversation that is shrunk in part depends on the load of the machine.
    monkeypatch.setattr(run_of_duel, "SHRINKING_SECONDS", 600.0)
    # Seed 2 finds two replies that differ, not one that is missing, which would depend on the load.
    both = ["--profile", "mysql-8.0", "--profile", "kvref", "--database", str(tmp_path), "--steps", "10"]
    code, output = duel(KVREF, KVREF, *both, "--conversations", "1", "--seed", "2")
    assert code == 1, output
    (shown,) = (line for line in output.splitlines() if line.startswith("== "))
    again, output = duel(KVREF, KVREF, *both, "--conversations", "1", "--seed", "1")
    assert again == 1
    assert next(line for line in output.splitlines() if line.startswith("== ")) == shown
    assert "seed 1: " in output


@pytest.mark.nightly
@pytest.mark.live
def test_the_plugin_and_kvref_over_innodb_do_not_differ() -> None:
    for target in ("mysql-8.0-plugin", "kvref-mysql-8.0"):
        with target_or_skip(target):
            pass  # what the machine lacks is a reason to skip
    code, output = duel("mysql-8.0-plugin", "kvref-mysql-8.0", "--conversations", "20", "--seed", "7")
    assert code == 0, output
    assert "20 conversations" in output


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["text", "mixed"])
@pytest.mark.parametrize("profile", ["mysql-8.0", "mysql-5.6"])
def test_the_plugin_and_kvref_do_not_differ(profile: str, protocol: str) -> None:
    notes = Notes()
    with ExitStack() as stack:
        with missing_skips():
            plugin = PluginTarget(stack.enter_context(targets.plugin_server(f"{profile}-plugin")))
        server = SQLiteTarget(stack.enter_context(targets.kvref_server(profile)), plugin.version)
        configuration = Configuration(plugin.version, rules_for([profile]), protocol)
        run = Run(
            (Side("plugin", plugin), Side("kvref", server)),
            7,
            30,
            configuration,
            known_differences.load([profile]),
            notes,
        )
        tally = run.run(range(40))
    assert tally.conversations == 40
    assert not tally.differences, [found.difference for found in notes.found_ones]
