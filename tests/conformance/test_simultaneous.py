"""Commands at the same time: an endpoint whose counting races is found, with the history of the key; memcached holds."""

from __future__ import annotations

import re

import pytest
from helpers.faulty import serving

from kvref.specification.deviations import Deviations
from kvref_conformance.cases.generated import HISTORIES
from kvref_conformance.endpoints import endpoint
from kvref_conformance.endpoints.probe import Features
from kvref_conformance.judging.judge import Judge
from kvref_conformance.judging.verdict import FAILS, HOLDS, Verdict
from kvref_conformance.stateful.concurrency import judge_concurrency

pytestmark = pytest.mark.nightly
CASE = HISTORIES[-1]
# What the scripted server does not have.
MISSING = ("binary", "cas", "gat", "meta", "touch")


def judged(address: str) -> Verdict:
    found = endpoint.find(address, "memcached")
    features = Features(dict.fromkeys(MISSING, False), dict.fromkeys(MISSING, ""))
    target = endpoint.Endpoint(found.address, found.sentinel, found.profile, found.reason, features)
    (verdict,) = judge_concurrency(Judge(target, Deviations([]), None, "", "ztest"), CASE, "concurrency", 200, 1)
    return verdict


def test_a_lost_update_is_found_and_shown_with_the_times_of_each_command() -> None:
    with serving("race") as (address, _):
        verdict = judged(address)
    assert verdict.verdict == FAILS
    history = [line for line in verdict.text.splitlines() if " ms  " in line]
    assert sum("incr" in line or "decr" in line for line in history) >= 1
    assert any(line.startswith("! ") for line in history)
    # How short it becomes depends on the load: a race is not repeated. But only one key is shown.
    assert len({re.search(r"k\d", line)[0] for line in history}) == 1, verdict.text
    assert "keeps real time" in verdict.text


def test_the_same_endpoint_without_the_race_holds() -> None:
    with serving() as (address, _):
        verdict = judged(address)
    assert verdict.verdict == HOLDS, verdict.text


def test_a_reply_that_is_wrong_by_itself_is_not_called_a_race() -> None:
    with serving("wrong") as (address, _):
        verdict = judged(address)
    assert verdict.verdict == FAILS
    last = verdict.text.splitlines()[-1]
    assert last.startswith("not a race: one after another, "), verdict.text
    assert "is wrong by itself; requirements of this step: KV-CORE-" in last
    assert "keeps real time" not in verdict.text
