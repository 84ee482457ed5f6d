"""The mutants that a landing judges are those that its change can touch, and a sample."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kvref_testbed.mutants import MUTANTS
from kvref_testbed.mutants import changed as selection
from kvref_testbed.mutants.changed import MAX_CHOSEN, SAMPLE, chosen, files_changed


def test_a_change_of_nothing_that_mutants_break_leaves_the_sample() -> None:
    assert set(chosen(["README.md"])) == set(chosen([])) == SAMPLE
    assert MUTANTS.keys() >= SAMPLE


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kvref/protocol/binary.py", "answers_quiet_misses"),  # what it replaces
        ("kvref/engine/plans/frames.py", "fails_quietly"),  # imports what it replaces, and could answer by itself
        ("kvref/protocol/grammar.py", "narrows_amounts"),  # reads the fact that it changes
        ("kvref/storage/sqlite/row_cache.py", "keeps_what_is_deleted"),
        ("conformance/kvref_conformance/cases/crawler.toml", "sleeps_for_an_hour"),
        ("kvref/specification/requirements/crawler.toml", "sleeps_for_an_hour"),
        ("conformance/kvref_testbed/mutants/meta.py", "answers_a_gat_as_a_get"),
    ],
)
def test_a_change_chooses_the_mutants_that_it_touches(path: str, name: str) -> None:
    assert name not in SAMPLE
    assert {name} | SAMPLE <= set(chosen([path]))


def test_a_change_of_everything_is_limited_to_what_a_landing_affords() -> None:
    everything = [path.relative_to(selection.ROOT).as_posix() for path in (selection.ROOT / "kvref").rglob("*.py")]
    assert len(chosen(everything)) == MAX_CHOSEN


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=folder, check=True, capture_output=True
    )


def commit(folder: Path, name: str) -> None:
    (folder / name).write_text(name)
    git(folder, "add", name)
    git(folder, "commit", "-m", name)


def test_the_change_is_what_differs_from_the_upstream_branch_or_from_some_commits_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream, clone = tmp_path / "upstream", tmp_path / "clone"
    monkeypatch.setattr(selection, "ROOT", tmp_path / "nothing")
    (tmp_path / "nothing").mkdir()
    assert files_changed() == set()  # no repository
    upstream.mkdir()
    git(upstream, "init", "--initial-branch=main")
    monkeypatch.setattr(selection, "ROOT", upstream)
    assert files_changed() == set()  # no commit
    commit(upstream, "first")
    assert files_changed() == set()  # nothing before
    commit(upstream, "second")
    assert files_changed() == {"second"}  # no upstream branch
    git(tmp_path, "clone", str(upstream), str(clone))
    monkeypatch.setattr(selection, "ROOT", clone)
    assert files_changed() == {"second"}  # the upstream branch itself
    commit(clone, "third")
    (clone / "new").write_text("not yet added")
    assert files_changed() == {"third", "new"}
    assert files_changed("HEAD~2") == {"second", "third", "new"}
    monkeypatch.setattr(selection, "COMMITS", 1)
    git(clone, "remote", "remove", "origin")
    commit(clone, "fourth")
    assert files_changed() == {"fourth", "new"}
