"""The configurations of a run: levels of each parameter, and which pairs and triples of them have met."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref import profiles
from kvref_conformance.case import Setup, Shape
from kvref_conformance.coverage.combinations import met, possible
from kvref_conformance.coverage.configuration import PARAMETERS, exclusions, row

W, R, LEVEL = "daemon_memcached_w_batch_size", "daemon_memcached_r_batch_size", "innodb_api_trx_level"
TABLE = "k VARCHAR(32) PRIMARY KEY, v0 INT, v1 INT, f INT, c BIGINT"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({"setup": Setup(":")}, {"delimiter": "other byte"}),
        ({"setup": Setup("->", separator="")}, {"delimiter": "several bytes", "separator": "none"}),
        ({"setup": Setup(None, separator="||")}, {"delimiter": "none", "separator": "several bytes"}),
        ({"setup": Setup(policies=(("b", *["disabled"] * 4), ("a", *["caching"] * 4)))}, {"cache policies": "caching"}),
        ({"setup": Setup(policies=(("a", "caching", *["disabled"] * 3),))}, {"cache policies": "mixed"}),
        ({"shape": Shape(TABLE, "v1|v0")}, {"value columns": "2", "expiry": "not mapped"}),
        ({"shape": Shape(TABLE, "v0", flags="0", cas=None)}, dict.fromkeys(("flags", "cas", "expiry"), "not mapped")),
        ({"settings": {}}, {"idle commit": "off"}),
        ({"profile": "kvref"}, {"level": "1"}),
        ({"profile": "kvref", "settings": {LEVEL: 0}}, {"idle commit": "off"}),
        (
            {"settings": {W: 4, R: 1000, LEVEL: 9, "innodb_api_bk_commit_interval": 2}},
            {"write batch": "small", "read batch": "large", "level": "3"},
        ),
    ],
)
def test_a_case_runs_under_a_configuration(given: dict[str, Any], wanted: dict[str, str]) -> None:
    profile = profiles.load(given.get("profile", "mysql-8.0"))
    levels = row(given.get("setup"), given.get("shape"), given.get("settings"), profile)
    assert levels is not None
    usual = {name: choices[0] for name, choices in PARAMETERS.items()}
    assert dict(levels) == {**usual, **wanted}
    assert all(level in PARAMETERS[name] for name, level in levels)


@pytest.mark.parametrize("values", [None, "", "v0,nothing", "v0:w"])
def test_a_table_that_cannot_be_mapped_is_no_configuration(values: str | None) -> None:
    assert row(None, Shape(TABLE, values), None, profiles.load("kvref")) is None


SMALL = {"a": ("1", "2", "3"), "b": ("1", "2"), "c": ("1", "2"), "d": ("1",)}
ROWS = st.tuples(*(st.sampled_from([(name, level) for level in levels]) for name, levels in SMALL.items()))


@pytest.mark.parametrize(("size", "count"), [(2, 23), (3, 28)])
def test_every_combination_is_possible_but_what_is_excluded(size: int, count: int) -> None:
    every = possible(SMALL, (), size)
    assert len(every) == len(set(every)) == count
    without = possible(SMALL, [frozenset({("a", "3")}), frozenset({("b", "2"), ("c", "2")})], size)
    assert set(every) - set(without) == {
        each for each in every if ("a", "3") in each or {("b", "2"), ("c", "2")} <= set(each)
    }


@given(st.lists(ROWS), st.integers(2, 3))
def test_combinations_have_met_that_stand_in_a_row(rows: list[Any], size: int) -> None:
    seen = met(rows, size)
    for each in possible(SMALL, (), size):
        assert (each in seen) == any(set(each) <= set(levels) for levels in rows)
    assert all(len({name for name, _ in each}) == size for each in seen)


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0"])
def test_what_is_excluded_has_a_reason_and_levels_of_the_list(profile: str) -> None:
    excluded = exclusions(profiles.load(profile))
    assert all(excluded.values())
    assert all(level in PARAMETERS[name] for levels in excluded for name, level in levels)
    assert (frozenset({("delimiter", "none")}) in excluded) == (profile == "mysql-8.0")
    for levels in excluded:
        assert not any(levels <= set(pair) for pair in possible(PARAMETERS, excluded, 2))
