"""Histories with a live kvref: they hold in its own profile, and fail and are shrunk in another one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from live import target_or_skip

from kvref_conformance import endpoint, sql
from kvref_conformance.cases.batches import SNAPSHOT, WRITES
from kvref_conformance.sql.world import World
from kvref_conformance.stateful.concurrency import Histories
from kvref_testbed import targets

pytestmark = pytest.mark.live


@contextmanager
def histories(served: str, judged: str, settings: dict[str, int]) -> Iterator[tuple[targets.Target, Histories]]:
    """Serve one profile and judge by another, under settings; an idle commit is far away."""
    words = [f"{name}={value}" for name, value in {**settings, "innodb_api_bk_commit_interval": 100000}.items()]
    options = ["--profile", served, *(word for each in words for word in ("--set", each))]
    with target_or_skip("kvref-sqlite", options) as target:
        found = endpoint.find(target.memcached(), judged)
        database = sql.connect(str(target.store), "8.0.33")
        world = World(database, found, None, "ztest")
        world.create()
        with Histories(found, world, settings) as held:
            yield target, held
        database.close()


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_kvref_holds_histories(profile: str) -> None:
    with histories(profile, profile, SNAPSHOT) as (_, held):
        assert held.explore("held", 20, "held") == ""


@pytest.mark.nightly
def test_another_profiles_answers_are_not_allowed_and_the_history_shrinks() -> None:
    """A failed write discards the batch in the plugin only."""
    with histories("kvref", "mysql-8.0", WRITES) as (_, held):
        lines = (failure := held.explore("other", 40, "other")).splitlines()
        assert lines[0].startswith("at the beginning: ")
        assert any(line.startswith("expected: ") for line in lines)
        assert sum(" > " in line for line in lines[1:]) <= 14, failure
        assert str(held.repeated).startswith("deterministic (")


def test_an_endpoint_that_is_gone_fails() -> None:
    with histories("kvref", "kvref", WRITES) as (target, held):
        assert not held.explore("gone", 2, "gone")
        os.kill(target.pid, signal.SIGKILL)
        assert "cannot connect" in held.explore("gone", 2, "gone")
