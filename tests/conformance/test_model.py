"""The model with plain commands: what it allows, what it learns, and how words lead to mappings on each profile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvref import profiles
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Answer
from kvref_conformance.model.model import WRONG_NUMBER, Model
from kvref_conformance.model.words import Mappings, Resolved

KNOWN = Mappings({"m1": "t1", "m2": "t2", "q": "t3"})
TABLES = {"m1": "t1", "m1b": "t1", "q": "t3"}
STORED, NOT_STORED, NOT_FOUND, END = "STORED\r\n", "NOT_STORED\r\n", "NOT_FOUND\r\n", "END\r\n"


def model(profile: str = "kvref") -> Model:
    facts = profiles.load(profile)
    mapped = facts.flag("mapping.supported")
    words = {name: (f"test/{table}",) for name, table in TABLES.items()}
    made = Model(facts, Mappings(TABLES, words)) if mapped else Model(facts)
    for on in "ab":
        made.take(s.Open(on, "m1" if mapped else ""))
    return made


def texts(state: Model, step: s.Step) -> tuple[str, ...]:
    """Take a step and return the allowed replies."""
    (answer,) = state.take(step)
    assert isinstance(answer, Answer)
    return answer.texts


def took(state: Model, step: s.Step, reply: str) -> bool:
    """Take a step and return whether a reply is allowed."""
    (answer,) = state.take(step)
    assert isinstance(answer, Answer)
    return state.numbers.answers(answer, reply)


def stored(state: Model, key: str, value: str, flags: int = 0) -> Model:
    assert took(state, s.Store("a", "set", key, value, flags), STORED)
    return state


def test_a_word_binds_its_mapping_and_a_switch_word_is_no_key() -> None:
    state = stored(model(), "@@q.k", "x")
    assert state.open["a"].mapping == "q"
    assert texts(state, s.Store("a", "set", "@@m1", "x")) == (NOT_STORED,)
    assert state.open["a"].mapping == "m1"
    assert texts(state, s.Store("a", "set", "@@nope.k", "x")) == (NOT_FOUND,)
    assert texts(state, s.Get("a", ("@@m1b", "@@nope.k"))) == ("VALUE @@m1b 0 7\r\ntest/t1\r\nEND\r\n",)
    assert (texts(state, s.Bind("a", "nope")), texts(state, s.Bind("a", "q"))) == ((NOT_FOUND,), ("SUCCEED\r\n",))


GETS = s.Get("a", ("k",), cas=True)
CAS = s.Store("a", "cas", "k", "y")


def test_a_cas_number_is_learnt_kept_and_never_seen_again() -> None:
    state = stored(model(), "k", "x")
    assert took(state, GETS, "VALUE k 0 1 17\r\nx\r\nEND\r\n")
    assert not took(state, GETS, "VALUE k 0 1 18\r\nx\r\nEND\r\n")
    assert (state.number(CAS), state.number(s.Store("b", "cas", "k", "y"))) == (17, WRONG_NUMBER)
    assert texts(state, s.Store("a", "cas", "k", "y", stale=True)) == ("EXISTS\r\n",)
    assert took(state, CAS, STORED)
    assert texts(state, CAS) == ("EXISTS\r\n",)
    assert not took(state, GETS, "VALUE k 0 1 17\r\ny\r\nEND\r\n")


@pytest.mark.parametrize(("profile", "flags"), [("kvref", 1), ("mysql-8.0", 2)])
def test_append_keeps_the_flags_of_the_row_or_of_the_request(profile: str, flags: int) -> None:
    state = stored(model(profile), "k", "x", 1)
    assert took(state, s.Store("a", "append", "k", "y", 2), STORED)
    assert state.rows_of("t1") == [("k", "xy", flags)]


def test_a_missing_number_may_be_garbage_only_where_documented() -> None:
    step = s.Count("a", "incr", "k", "1")
    assert texts(model("mysql-8.0"), step) == (NOT_FOUND,)
    state = model("mysql-5.6")
    assert took(state, step, "139753874809280\r\n")
    assert state.rows_of("t1") == []


@pytest.mark.parametrize(
    ("profile", "value", "answer"),
    [
        ("kvref", "12", "13\r\n"),
        ("kvref", "12ab", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("mysql-8.0", "12ab", "13\r\n"),
        ("mysql-8.0", "x", "1\r\n"),
        ("memcached", "", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("memcached", "18446744073709551615", "0\r\n"),
    ],
)
def test_counting_text(profile: str, value: str, answer: str) -> None:
    assert texts(stored(model(profile), "k", value), s.Count("a", "incr", "k", "1")) == (answer,)


def test_memcached_pads_a_shorter_number_and_refuses_an_amount_that_is_none() -> None:
    state = stored(model("memcached"), "k", "10")
    assert took(state, s.Count("a", "decr", "k", "1"), "9\r\n")
    assert texts(state, s.Get("a", ("k",))) == ("VALUE k 0 2\r\n9 \r\nEND\r\n",)
    assert texts(state, s.Count("a", "decr", "k", "-1"))[0].startswith("CLIENT_ERROR invalid numeric delta")


@pytest.mark.parametrize(("expiry", "there"), [(0, True), (1000, True), (-1, False), (2592001, False)])
def test_an_item_whose_time_is_over_is_gone(expiry: int, there: bool) -> None:
    found = ("VALUE k 0 1\r\nx\r\nEND\r\n",) if there else (END,)
    state = model("memcached")
    assert took(state, s.Store("a", "set", "k", "x", 0, expiry), STORED)
    assert texts(state, s.Get("a", ("k",))) == found
    for step in (s.Touch("a", "k", expiry), s.Get("a", ("k",), expiry=expiry)):
        state = stored(model("memcached"), "k", "x")
        assert texts(state, step)[0] != END
        assert texts(state, s.Get("a", ("k",))) == found


@pytest.mark.parametrize(
    ("profile", "word", "found"),
    [
        ("kvref", "k", Resolved("key", "m1", "k")),
        ("kvref", "@@m2.k", Resolved("key", "m2", "k")),
        ("kvref", "@@m2", Resolved("switch", "m2", "")),
        ("kvref", "@@m2.", Resolved("switch", "m2", "")),
        ("kvref", "@@nope.k", Resolved("unknown", "m1", "")),
        ("kvref", "@@q", Resolved("switch", "q", "")),
        ("mysql-8.0", "@@q", Resolved("key", "m1", "@@q")),
        ("mysql-8.0", "@@q.k", Resolved("key", "q", "k")),
        ("memcached", "@@m2.k", Resolved("key", "m1", "@@m2.k")),
    ],
)
def test_a_word_leads_to_a_mapping(profile: str, word: str, found: Resolved) -> None:
    assert KNOWN.resolve(profiles.load(profile), "m1", [word]) == [found]


def test_words_of_one_get() -> None:
    words = ["k", "@@m2.k", "@@nope.k", "@@q"]
    each = KNOWN.resolve(profiles.load("kvref"), "m1", words)
    assert each == [
        Resolved("key", "m1", "k"),
        Resolved("key", "m2", "k"),
        Resolved("unknown", "m2", ""),
        Resolved("switch", "q", ""),
    ]
    first = KNOWN.resolve(profiles.load("mysql-8.0"), "m1", words)
    assert first == [
        Resolved("key", "m1", "k"),
        Resolved("key", "m1", "k"),
        Resolved("key", "m1", "k"),
        Resolved("key", "m1", "@@q"),
    ]


def spoken(profile: str, step: s.Request, *before: s.Request) -> tuple[str, tuple[str, ...]]:
    """Return what is sent for a step behind others, and the allowed replies."""
    state = model(profile)
    for each in before:
        state.take(each)
    return encodings.request(step), texts(state, step)


SET_X, SET_7 = s.Store("a", "set", "k", "x", 3), s.Store("a", "set", "k", "7")
MAY_COUNT = s.Count("a", "incr", "k", "2", initial=5)


@pytest.mark.parametrize(
    ("profile", "step", "before", "sent", "wanted"),
    [
        ("kvref", s.Get("a", ("k",), protocol="binary"), SET_X, "get key=k", "get ok cas=<cas> flags=3 value=x"),
        ("kvref", s.Get("a", ("k",), named=True, protocol="binary"), None, "getk key=k", "getk 0x01 key=k"),
        ("kvref", s.Get("a", ("k",), silent=True, protocol="binary"), None, "getq key=k", ""),
        ("kvref", s.Get("a", ("@@q",), protocol="binary"), None, "get key=@@q", "get ok flags=0 value=test/t3"),
        ("mysql-8.0", s.Get("a", ("@@q",), protocol="binary"), None, "get key=@@q", 'get 0x01 "Not found"'),
        ("kvref", s.Get("a", ("k",), cas=True, protocol="meta"), SET_X, "mg k v f c\r\n", "VA 1 f3 c<cas>\r\nx\r\n"),
        ("kvref", s.Get("a", ("k",), silent=True, protocol="meta"), None, "mg k v f q\r\n", ""),
        ("memcached", s.Get("a", ("k",), named=True, protocol="meta"), None, "mg k v f k\r\n", "EN kk\r\n"),
        (
            "kvref",
            s.Store("a", "add", "k", "y", protocol="binary"),
            SET_X,
            "add key=k flags=0 exp=0 value=y",
            'add 0x02 "Data exists for key"',
        ),
        (
            "memcached",
            s.Store("a", "add", "k", "y", protocol="binary"),
            SET_X,
            "add key=k flags=0 exp=0 value=y",
            'add 0x02 "Data exists for key."',
        ),
        (
            "kvref",
            s.Store("a", "replace", "k", "y", silent=True, protocol="binary"),
            None,
            "replaceq key=k flags=0 exp=0 value=y",
            'replaceq 0x01 "Not found"',
        ),
        ("kvref", s.Store("a", "set", "k", "y", silent=True, protocol="meta"), None, "ms k 1 F0 T0 c q\r\ny\r\n", ""),
        (
            "kvref",
            s.Store("a", "add", "k", "y", protocol="meta"),
            SET_X,
            "ms k 1 F0 T0 ME c\r\ny\r\n",
            "NS c<number>\r\n",
        ),
        (
            "kvref",
            replace(MAY_COUNT, protocol="binary"),
            None,
            "incr key=k delta=2 initial=5",
            "incr ok cas=<cas> number=5",
        ),
        (
            "kvref",
            s.Count("a", "decr", "k", "9", protocol="binary"),
            SET_7,
            "decr key=k delta=9 exp=4294967295",
            "decr ok cas=<cas> number=0",
        ),
        ("kvref", replace(MAY_COUNT, protocol="meta"), SET_7, "ma k v c D2 N0 J5\r\n", "VA 1 c<cas>\r\n9\r\n"),
        ("kvref", s.Delete("a", "k", protocol="binary"), SET_X, "delete key=k", "delete ok"),
        ("kvref", s.Delete("a", "k", silent=True, protocol="meta"), None, "md k q\r\n", "NF\r\n"),
    ],
)
def test_a_command_has_a_request_and_a_reply_in_each_protocol(
    profile: str, step: s.Request, before: s.Request | None, sent: str, wanted: str
) -> None:
    assert spoken(profile, step, *([before] if before else [])) == (sent, (wanted,))
