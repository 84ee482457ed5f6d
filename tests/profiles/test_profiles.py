"""Profiles load strictly, and every difference of the default profile has its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvref import profiles
from kvref.errors import ConfigError


def test_every_profile_gives_every_fact() -> None:
    assert profiles.names() == ["kvref", "memcached", "mysql-5.6", "mysql-8.0"]
    for name in profiles.names():
        assert profiles.load(name).facts.keys() == profiles.vocabulary().keys(), name


def test_every_difference_of_kvref_has_a_reason_and_differs() -> None:
    plugin = profiles.load("mysql-8.0")
    own = [fact for fact in profiles.load("kvref").facts.values() if fact.origin == "kvref"]
    assert len(own) > 25
    for fact in own:
        assert fact.reason, fact.key
        assert fact.value != plugin[fact.key], f"{fact.key} does not differ from mysql-8.0: drop the row"


@pytest.mark.parametrize("name", ["mysql-5.6", "mysql-8.0"])
def test_facts_of_the_plugin_are_observed(name: str) -> None:
    assert {fact.status for fact in profiles.load(name).facts.values()} == {"observed"}


def test_no_such_profile() -> None:
    with pytest.raises(
        ConfigError,
        match=r"no profile 'mysql-9', did you mean 'mysql-8.0': choose one of kvref, memcached, mysql-5.6, mysql-8.0",
    ):
        profiles.load("mysql-9")


@pytest.mark.parametrize(
    ("key", "row", "problem"),
    [
        ("no.such", {"value": True, "status": "observed"}, "not in the vocabulary"),
        ("mapping.supported", {"value": "yes", "status": "observed"}, "'yes' is not of type bool"),
        ("mapping.shortest_word", {"value": True, "status": "observed"}, "True is not of type int"),
        ("mapping.delimiter", {"value": "text", "status": "observed"}, "'text' is none of set-of-bytes | string"),
        ("mapping.supported", {"value": True, "status": "guessed"}, "status 'guessed' is none of"),
        ("mapping.supported", {"value": True, "status": "observed"}, "no evidence is named"),
        ("mapping.supported", {"value": True, "status": "decided"}, "no reason is given"),
    ],
)
def test_what_does_not_load(monkeypatch: pytest.MonkeyPatch, key: str, row: dict[str, Any], problem: str) -> None:
    table = {"title": "t", "extends": "mysql-8.0", "facts": {key: row}}
    real = profiles._read
    monkeypatch.setattr(profiles, "_read", lambda file: table if file == "kvref.toml" else real(file))
    profiles.load.cache_clear()
    with pytest.raises(ConfigError) as refused:
        profiles.load("kvref")
    profiles.load.cache_clear()
    assert problem in str(refused.value)
    assert key in str(refused.value)


def test_every_fact_is_read_by_the_server_or_the_judge() -> None:
    root = Path(__file__).parent.parent.parent
    code = "".join(path.read_text() for room in ("kvref", "conformance") for path in (root / room).rglob("*.py"))
    assert [key for key in profiles.vocabulary() if f'"{key}"' not in code] == []
