"""What a case needs of an endpoint, and what a probe finds."""

from __future__ import annotations

import pytest
from helpers.live import nightly, target_or_skip

from kvref import profiles
from kvref.specification import requirements
from kvref_conformance.case import case, frames, send
from kvref_conformance.cases import all_cases
from kvref_conformance.endpoints import endpoint
from kvref_conformance.endpoints.probe import REQUESTS, as_toml, needed, probe

MEMCACHED = profiles.load("memcached")


@pytest.mark.parametrize(
    ("steps", "features"),
    [
        ([send("get {k}\r\n", "END\r\n")], set()),
        ([send("gets {k}\r\n", "END\r\n")], {"cas"}),
        ([send("touch {k} 0\r\n", "NOT_FOUND\r\n")], {"touch"}),
        ([send("touch {k} 0\r\n", ("ERROR\r\n", "NOT_FOUND\r\n"))], set()),
        ([send("touch {k}\r\n", "ERROR\r\n")], {"touch"}),
        ([send("ms {k} 1\r\nxyz\r\nmn\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\nMN\r\n")], {"meta", "pipelining"}),
        ([send("bind {k}\r\n", "ERROR\r\n")], set()),
        ([send("mg {k}\r\n", "EN\r\n")], {"meta"}),
        ([frames("noop", "noop ok")], {"binary"}),
        ([send("get {k}\r\nget {k}\r\n", "END\r\nEND\r\n")], {"pipelining"}),
        ([send("set {k} 0 0 5\r\nget x\r\n", "STORED\r\n")], set()),
        ([send("set {k} 0 0 1\r\nx\r\ndelete {k}\r\n", "STORED\r\nDELETED\r\n")], {"pipelining"}),
    ],
)
def test_a_case_needs_the_features_of_its_verbs(steps: list[object], features: set[str]) -> None:
    assert needed(case("x", "KV-CORE-001", *steps), MEMCACHED) == features  # type: ignore[arg-type]


def test_every_feature_is_needed_by_a_case_of_the_suite() -> None:
    found = {name for each in all_cases() for name in needed(each, profiles.load("kvref"))}
    assert found == set(REQUESTS)


@pytest.mark.live
@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("memcached", {"bind"}),
        ("kvref-sqlite", set()),
        ("twemproxy-memcached", {"binary", "gat", "meta", "flush_all", "stats", "verbosity", "administration", "bind"}),
        ("yrmcds", {"gat", "meta", "administration", "bind"}),
        nightly("nodecached", {"pipelining", "binary", "cas", "gat", "meta", "administration", "bind"}),
    ],
)
def test_what_a_probe_finds(name: str, missing: set[str]) -> None:
    with target_or_skip(name) as target:
        requests = endpoint.find(target.address, "memcached")
        features = probe(requests.address, requests.sentinel, flushes=True)
    assert {each for each, there in features.there.items() if not there} == missing
    assert {each for each, reply in features.refused.items() if reply} == missing
    written = as_toml("memcached", requests.version, features)
    assert all(f"{each} = false # it " in written for each in missing)


@pytest.mark.parametrize("name", ["mysql-5.6", "mysql-8.0"])
def test_nothing_that_applies_to_the_plugin_needs_what_it_never_had(name: str) -> None:
    catalogue, profile = requirements.load(), profiles.load(name)
    applies = [each for each in all_cases() if all(catalogue[r].applies_to(name) for r in each.requirements)]
    assert [each.id for each in applies if needed(each, profile) & {"touch", "gat", "meta"}] == []
