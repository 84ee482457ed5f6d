"""The mutants that a landing judges are those that its change can touch, and a sample."""

from __future__ import annotations

import pytest

from kvref_testbed.mutants import MUTANTS
from kvref_testbed.mutants import changed as selection
from kvref_testbed.mutants.changed import MAX_CHOSEN, SAMPLE, chosen


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
