"""The model of the machine: what it allows, what it learns, and how words lead to mappings on each profile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvref import profiles
from kvref_conformance.stateful.commands.mapping_words import Reach, reach, reaches
from kvref_conformance.stateful.commands.model import Alternative, Model

KNOWN = {"m1", "m2", "q"}


def model(profile: str = "kvref", *, any_number: bool = False) -> Model:
    tables = {"m1": "t1", "m1b": "t1", "q": "t3"}
    words = {name: (f"test/{table}",) for name, table in tables.items()}
    return Model(profiles.load(profile), tables, words, any_number, "m1")


def took(state: Model, answer: str, command: Callable[[Model], list[Alternative]]) -> Model:
    """Return the state after an allowed answer."""
    assert state.accept(answer, command(state))
    return state


def stored(state: Model, key: str, value: str, flags: int = 0) -> Model:
    return took(state, "STORED\r\n", lambda model: model.store("a", "set", key, flags, value))


def texts(alternatives: list[Alternative]) -> list[str]:
    return [alternative.text for alternative in alternatives]


def test_what_was_stored_is_wanted_in_its_table_only() -> None:
    state = stored(model(), "k", "one", 3)
    assert texts(state.get("a", ["k"], cas=False)) == ["VALUE k 3 3\r\none\r\nEND\r\n"]
    assert texts(state.get("a", ["@@m1b.k"], cas=False)) == ["VALUE @@m1b.k 3 3\r\none\r\nEND\r\n"]
    assert texts(state.get("a", ["@@q.k"], cas=False)) == ["END\r\n"]
    assert state.rows_of("t1") == [("k", "one", 3)]
    assert state.rows_of("t3") == []


def test_nothing_changes_unless_the_answer_is_allowed() -> None:
    state = model()
    assert not state.accept("NOT_STORED\r\n", state.store("a", "set", "@@q.k", 0, "x"))
    assert (state.bound, state.rows) == ({}, {})
    assert stored(state, "@@q.k", "x").bound == {"a": "q"}


def gets(each: Model) -> list[Alternative]:
    return each.get("a", ["k"], cas=True)


def test_a_cas_number_is_learnt_kept_and_never_seen_again() -> None:
    state = took(stored(model(), "k", "x"), "VALUE k 0 1 17\r\nx\r\nEND\r\n", gets)
    assert not state.accept("VALUE k 0 1 18\r\nx\r\nEND\r\n", gets(state))
    assert state.number("a", "k") == 17
    assert texts(state.store("a", "cas", "k", 0, "y", 16)) == ["EXISTS\r\n"]
    state = took(state, "STORED\r\n", lambda each: each.store("a", "cas", "k", 0, "y", 17))
    assert state.number("a", "k") is None
    assert state.old_number("a", "k", 1) == 17
    assert not state.accept("VALUE k 0 1 17\r\ny\r\nEND\r\n", gets(state))


@pytest.mark.parametrize(
    ("verb", "there", "missing"),
    [
        ("set", "STORED\r\n", "STORED\r\n"),
        ("add", "NOT_STORED\r\n", "STORED\r\n"),
        ("replace", "STORED\r\n", "NOT_STORED\r\n"),
        ("append", "STORED\r\n", "NOT_STORED\r\n"),
        ("prepend", "STORED\r\n", "NOT_STORED\r\n"),
        ("cas", "EXISTS\r\n", "NOT_FOUND\r\n"),
    ],
)
def test_storage_verbs(verb: str, there: str, missing: str) -> None:
    assert texts(model().store("a", verb, "k", 0, "x", 5)) == [missing]
    assert texts(stored(model(), "k", "x").store("a", verb, "k", 0, "x", 5)) == [there]


def test_a_missing_number_may_be_garbage_only_where_documented() -> None:
    assert texts(model("mysql-8.0").count("a", "incr", "k", 1)) == ["NOT_FOUND\r\n"]
    widened = model("mysql-5.6", any_number=True)
    assert took(widened, "139753874809280\r\n", lambda each: each.count("a", "incr", "k", 1)).rows == {}


@pytest.mark.parametrize(
    ("profile", "value", "answer"),
    [
        ("kvref", "12", "13\r\n"),
        ("kvref", "12ab", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("mysql-8.0", "12ab", "13\r\n"),
        ("mysql-8.0", "x", "1\r\n"),
        ("memcached", "", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
    ],
)
def test_counting_text(profile: str, value: str, answer: str) -> None:
    assert texts(stored(model(profile), "k", value).count("a", "incr", "k", 1)) == [answer]


def test_memcached_pads_a_shorter_number() -> None:
    state = took(stored(model("memcached"), "k", "10"), "9\r\n", lambda each: each.count("a", "decr", "k", 1))
    assert texts(state.get("a", ["k"], cas=False)) == ["VALUE k 0 2\r\n9 \r\nEND\r\n"]


@pytest.mark.parametrize(
    ("profile", "word", "found"),
    [
        ("kvref", "k", Reach("key", "m1", "k")),
        ("kvref", "@@m2.k", Reach("key", "m2", "k")),
        ("kvref", "@@m2", Reach("switch", "m2", "")),
        ("kvref", "@@m2.", Reach("switch", "m2", "")),
        ("kvref", "@@nope.k", Reach("unknown", "m1", "")),
        ("kvref", "@@q", Reach("switch", "q", "")),
        ("mysql-8.0", "@@q", Reach("key", "m1", "@@q")),
        ("mysql-8.0", "@@q.k", Reach("key", "q", "k")),
        ("memcached", "@@m2.k", Reach("key", "m1", "@@m2.k")),
    ],
)
def test_a_word_leads_to_a_mapping(profile: str, word: str, found: Reach) -> None:
    assert reach(profiles.load(profile), KNOWN, "m1", word, switching=True) == found


def test_words_of_one_get() -> None:
    words = ["k", "@@m2.k", "@@nope.k", "@@q"]
    each = reaches(profiles.load("kvref"), KNOWN, "m1", words)
    assert each == [
        Reach("key", "m1", "k"),
        Reach("key", "m2", "k"),
        Reach("unknown", "m2", ""),
        Reach("switch", "q", ""),
    ]
    first = reaches(profiles.load("mysql-8.0"), KNOWN, "m1", words)
    assert first == [
        Reach("key", "m1", "k"),
        Reach("key", "m1", "k"),
        Reach("key", "m1", "k"),
        Reach("key", "m1", "@@q"),
    ]
