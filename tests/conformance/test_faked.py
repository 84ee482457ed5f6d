"""A server that answers a verb as if it had carried it out does not conform, whichever other features it is without."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.faking import faking

from kvref.specification import deviations
from kvref_conformance.cases import all_cases
from kvref_conformance.endpoints import endpoint
from kvref_conformance.endpoints.probe import WORDS, probe
from kvref_conformance.judging.judge import Judge, new_tag
from kvref_conformance.judging.verdict import FAILS, HOLDS

pytestmark = pytest.mark.live
FEATURES = frozenset({"binary", *WORDS.values()}) - {"bind", "flush_all", "stats", "verbosity"}
# What is demanded of what each verb changes, noreply and quiet mode included.
EFFECTS = [
    ("set", "KV-CORE-001 KV-CONN-001 KV-CORE-025 KV-EXP-022"),
    ("add", "KV-CORE-002 KV-CONN-001"),
    ("replace", "KV-CORE-004 KV-CONN-001 KV-EXP-022"),
    ("append", "KV-CORE-006 KV-CONN-001"),
    ("prepend", "KV-CORE-007 KV-CONN-001"),
    ("cas", "KV-CORE-010 KV-CONN-001 KV-EXP-022"),
    ("delete", "KV-CORE-060 KV-CONN-002"),
    ("incr", "KV-ARITH-001 KV-ARITH-008 KV-ARITH-009 KV-ARITH-014 KV-ARITH-018 KV-ARITH-025 KV-ARITH-037 KV-CONN-002"),
    ("decr", "KV-ARITH-002 KV-ARITH-003 KV-ARITH-004 KV-ARITH-026 KV-CONN-002"),
    ("touch", "KV-TOUCH-001 KV-TOUCH-003 KV-TOUCH-004 KV-TOUCH-007 KV-TOUCH-008 KV-TOUCH-012 KV-TOUCH-029"),
    ("gat", "KV-TOUCH-014 KV-TOUCH-029"),
    ("gats", "KV-TOUCH-014"),
    ("ms", "KV-MS-001 KV-MS-005 KV-MS-006 KV-MS-007 KV-MS-008 KV-MS-016 KV-MS-032"),
    ("md", "KV-MD-001 KV-MD-009 KV-MD-010"),
    ("ma", "KV-MA-001 KV-MA-006 KV-MA-007 KV-MA-009 KV-MA-010 KV-MA-013 KV-MA-016 KV-MA-024"),
    ("mg", "KV-MG-014"),
    ("flush_all", "KV-FLUSH-001 KV-FLUSH-003 KV-CONN-005"),
]


def verdicts(address: str, names: set[str]) -> dict[str, set[str]]:
    """Return the verdicts on the cases of these requirements, by requirement."""
    found = endpoint.find(address, "memcached")
    features = probe(found.address, found.sentinel, flushes=False)
    judge = Judge(replace(found, features=features), deviations.load("memcached", ""), None, "", new_tag())
    reply: dict[str, set[str]] = {name: set() for name in names}
    for case in all_cases():
        if not case.needs_sql() and names & set(case.requirements):
            word = judge.judge(case, "").verdict
            for name in names & set(case.requirements):
                reply[name].add(word)
    return reply


@pytest.mark.parametrize(("verb", "demanded"), EFFECTS, ids=[verb for verb, _ in EFFECTS])
def test_a_verb_that_changes_nothing_fails(memcached: str, verb: str, demanded: str) -> None:
    names = set(demanded.split())
    for without in (frozenset({"binary"}), FEATURES - {WORDS.get(verb, "")}):
        with faking(memcached, verb, without) as address:
            reply = verdicts(address, names)
        assert {name for name, words in reply.items() if FAILS not in words} == set(), (verb, sorted(without))


@pytest.mark.parametrize("verb", ["set", "add", "replace", "cas", "flush_all"])
def test_a_verb_whose_time_has_no_effect_fails(memcached: str, verb: str) -> None:
    demanded = "KV-FLUSH-004" if verb == "flush_all" else "KV-EXP-001"
    with faking(memcached, verb, frozenset({"binary"}), timeless=True) as address:
        assert FAILS in verdicts(address, {demanded})[demanded]


def test_the_same_server_without_a_fake_conforms(memcached: str) -> None:
    names = {name for _, demanded in EFFECTS for name in demanded.split()} - {"KV-TOUCH-003"}
    names |= {"KV-EXP-001", "KV-FLUSH-004"}
    with faking(memcached, "", frozenset({"binary"})) as address:
        reply = verdicts(address, names)
    assert {name: words for name, words in reply.items() if words != {HOLDS}} == {}
