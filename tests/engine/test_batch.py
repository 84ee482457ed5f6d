"""What a connection's batch returns for a commit that the store refuses."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from kvref import profiles
from kvref.engine.batch import Batch, Limits
from kvref.engine.cache.memory import Cache, Pending
from kvref.engine.operations import Commit
from kvref.engine.rules import rules


def refused(steps: Generator[Any, Any, str | None]) -> str | None:
    """Run a part of a command whose commits are refused, and return what it returns."""
    try:
        operation = next(steps)
        while True:
            operation = steps.send("commit: 1213" if isinstance(operation, Commit) else None)
    except StopIteration as stop:
        result: str | None = stop.value
        return result


@pytest.fixture
def pending() -> Pending:
    """Return what the memory cache gets with a commit."""
    return Pending(Cache(1_700_000_000))


def test_a_refused_commit_of_a_full_batch_says_how_many_writes_are_lost(pending: Pending) -> None:
    batch = Batch(Limits(writes=3), rules(profiles.load("kvref")), pending)
    for _ in range(2):
        assert refused(batch.wrote(failed=False)) is None
    assert refused(batch.wrote(failed=False)) == "commit: 1213: 3 pending writes are lost"
    assert not batch.open


def test_so_does_the_commit_of_an_idle_batch_and_of_a_switch(pending: Pending) -> None:
    batch = Batch(Limits(writes=9), rules(profiles.load("kvref")), pending)
    for end in (batch.commit, batch.switched):
        assert refused(batch.wrote(failed=False)) is None
        assert refused(end()) == "commit: 1213: 1 pending writes are lost"


def test_reads_alone_and_a_single_write_lose_nothing_that_was_acknowledged(pending: Pending) -> None:
    batch = Batch(Limits(reads=1, writes=9), rules(profiles.load("kvref")), pending)
    assert refused(batch.read()) == "commit: 1213"
    single = Batch(Limits(), rules(profiles.load("kvref")), pending)
    assert refused(single.wrote(failed=False)) == "commit: 1213"
    assert not single.open


def test_a_batch_notes_a_commit_that_was_made_elsewhere(pending: Pending) -> None:
    batch = Batch(Limits(writes=3), rules(profiles.load("kvref")), pending)
    assert batch.ended(None) is None  # nothing is open
    for _ in range(2):
        batch.count_write(failed=False)
    assert batch.writes_left == 1
    assert batch.ended(None) is None
    assert (batch.writes_left, batch.number, batch.open) == (3, 1, False)
    batch.count_write(failed=False)
    assert batch.ended("commit: 1213") == "commit: 1213: 1 pending writes are lost"
    assert not batch.open
