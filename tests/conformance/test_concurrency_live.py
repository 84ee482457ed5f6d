"""Histories with a live kvref: they hold in its own profile, and fail, shrink and repeat as a case in another one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from helpers.live import target_or_skip

from kvref.specification.deviations import Deviations
from kvref_conformance import sql
from kvref_conformance.case import Case
from kvref_conformance.cases.generated import SETTINGS
from kvref_conformance.endpoints import endpoint
from kvref_conformance.judging.judge import Judge
from kvref_conformance.judging.verdict import FAILS, HOLDS, Verdict
from kvref_conformance.sql.world import World
from kvref_conformance.stateful.concurrency import judge_concurrency
from kvref_conformance.triage.repeat import DEFAULT_TIMES
from kvref_testbed import targets

pytestmark = [pytest.mark.live, pytest.mark.nightly]
WRITES, SNAPSHOT = SETTINGS["writes"], SETTINGS["snapshot"]
REQUIREMENT = "KV-BATCH-001"


@contextmanager
def judging(served: str, judged: str, settings: dict[str, int]) -> Iterator[tuple[targets.Target, Judge]]:
    """Serve one profile and judge by another, under settings; an idle commit is far away."""
    words = [f"{name}={value}" for name, value in {**settings, "innodb_api_bk_commit_interval": 100000}.items()]
    options = ["--profile", served, *(word for each in words for word in ("--set", each))]
    with target_or_skip("kvref-sqlite", options) as target:
        found = endpoint.find(target.memcached(), judged)
        database = sql.connect(str(target.store), "8.0.33")
        world = World(database, found, None, "ztest")
        world.create()
        yield target, Judge(found, Deviations([]), world, "", "ztest")
        database.close()


def histories(judge: Judge, settings: dict[str, int], examples: int, seed: int) -> list[Verdict]:
    case = Case("histories", (REQUIREMENT,), (), settings=settings)
    return judge_concurrency(judge, case, "concurrency", examples, seed)


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_kvref_holds_histories(profile: str) -> None:
    with judging(profile, profile, SNAPSHOT) as (_, judge):
        (verdict,) = histories(judge, SNAPSHOT, 20, 1)
    assert verdict.verdict == HOLDS, verdict.text


def test_another_profiles_answers_are_not_allowed_and_the_history_shrinks_and_is_a_case() -> None:
    """A failed write discards the batch in the plugin only."""
    with judging("kvref", "mysql-8.0", WRITES) as (_, judge):
        found = histories(judge, WRITES, 40, 2)
        assert {each.verdict for each in found} == {FAILS}
        for verdict in found:
            # Fourteen steps behind the two statements that empty each table and fill it.
            assert len(verdict.conversation) <= 14 + 4, verdict.text
            assert any(line.startswith("expected: ") for line in verdict.text.splitlines())
            assert verdict.script is not None
            script = replace(verdict.script, settings=None)
            assert all(judge.breaks(script, 1.0) for _ in range(DEFAULT_TIMES)), verdict.text


def test_an_endpoint_that_is_gone_fails() -> None:
    with judging("kvref", "kvref", WRITES) as (target, judge):
        (before,) = histories(judge, WRITES, 2, 3)
        assert before.verdict == HOLDS
        os.kill(target.pid, signal.SIGKILL)
        (gone,) = histories(judge, WRITES, 2, 3)
        assert "cannot connect" in gone.text
