"""Lines that the grammar generates, judged by the requirements, and lines that the requirements refuse, by the grammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvref.specification import requirements
from kvref_conformance.spec import grammar

STORES = ("set", "add", "replace", "append", "prepend", "cas")
COUNTS = ("incr", "decr")
GETS = ("get", "gets", "bget")
NUMBER = re.compile(r"[\t\v\f\r]*([+-]?[0-9]+)(?:[\t\v\f\r].*)?", re.DOTALL)


def decimal(word: str) -> int | None:
    """Return a decimal number as the terms of the specification define it; None if the word is not one."""
    found = NUMBER.fullmatch(word)
    if found is None:
        return 0 if grammar.grammar().pattern("number").fullmatch(word) and word[0] in "\t\v\f\r" else None
    return int(found[1])


def signed(word: str) -> int | None:
    number = decimal(word)
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


def unsigned(word: str) -> int | None:
    number = decimal(word)
    if number is None or -(1 << 63) <= number < 0 or abs(number) >= 1 << 64:
        return None
    return number % (1 << 64)


@dataclass(frozen=True)
class Refusal:
    """A requirement that refuses lines: a part of its statement, and which lines these are."""

    id: str
    clause: str
    refuses: Callable[[list[str]], bool]


def is_store(words: list[str], *, complete: bool = True) -> bool:
    return words[0] in STORES and (not complete or len(words) >= fewest(words))


def fewest(words: list[str]) -> int:
    return 6 if words[0] == "cas" else 5


def at(words: list[str], place: int) -> str:
    return words[place] if place < len(words) else ""


def length(words: list[str]) -> int:
    number = signed(words[4])
    return 0 if number is None else number


REFUSALS = (
    Refusal("KV-PARSE-004", "fewer words than its command requires", lambda w: w[0] in STORES and len(w) < fewest(w)),
    Refusal("KV-PARSE-005", "two or more words after the length", lambda w: is_store(w) and len(w) > fewest(w) + 1),
    Refusal(
        "KV-LIMIT-002",
        "longer than 250 bytes",
        lambda w: (
            (w[0] in (*STORES, *COUNTS, "delete") and len(at(w, 1)) > 250)
            or (w[0] in GETS and any(len(each) > 250 for each in w[1:]))
        ),
    ),
    Refusal("KV-PARSE-006", "not an unsigned number", lambda w: is_store(w) and unsigned(w[2]) is None),
    Refusal("KV-CORE-068", "2^32 or more", lambda w: is_store(w) and (unsigned(w[2]) or 0) >= 1 << 32),
    Refusal("KV-PARSE-007", "not a decimal number", lambda w: is_store(w) and signed(w[3]) is None),
    Refusal(
        "KV-PARSE-008",
        "not a decimal number or is from -2^31 to -1",
        lambda w: is_store(w) and (signed(w[4]) is None or -(1 << 31) <= length(w) < 0),
    ),
    Refusal(
        "KV-PARSE-027", "2147483646 or 2147483647", lambda w: is_store(w) and length(w) in (2147483646, 2147483647)
    ),
    Refusal(
        "KV-PARSE-032",
        "less than -2^31 or greater than 2147483647",
        lambda w: is_store(w) and not -(1 << 31) <= length(w) < 1 << 31,
    ),
    Refusal(
        "KV-PARSE-013", "not an unsigned number", lambda w: w[0] == "cas" and len(w) > 5 and unsigned(w[5]) is None
    ),
    Refusal(
        "KV-ARITH-012", "not an unsigned number", lambda w: w[0] in COUNTS and len(w) > 2 and unsigned(w[2]) is None
    ),
    Refusal("KV-PARSE-033", "more than it allows", lambda w: w[0] in COUNTS and len(w) > 4),
    Refusal("KV-ARITH-013", "without an amount", lambda w: w[0] in COUNTS and len(w) < 3),
)


def refused_by(line: str) -> list[str]:
    """Return the requirements of the profile kvref that refuse a line."""
    words = [word for word in line.split(" ") if word]
    return [each.id for each in REFUSALS if words and each.refuses(words)]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda each: each.id)
def test_a_refusal_is_what_its_requirement_states(refusal: Refusal) -> None:
    each = requirements.load()[refusal.id]
    assert each.applies_to("kvref")
    assert refusal.clause in each.statement


def judged(line: str) -> None:
    assert (refused_by(line) == []) == grammar.accepts(line, "kvref"), (line, refused_by(line))


def test_the_requirements_accept_what_the_grammar_generates() -> None:
    @settings(max_examples=3 * settings().max_examples, database=None)
    @given(st.from_regex(grammar.grammar().pattern("line"), fullmatch=True))
    def generated(line: str) -> None:
        if grammar.accepts(line, "kvref"):
            assert refused_by(line) == []

    generated()


# Both sides of each end of a range, signs, white space, and what is not a number.
EDGES = sorted(
    {sign * (1 << bits) + step for bits in (0, 31, 32, 63, 64) for sign in (1, -1) for step in (-2, -1, 0, 1)}
)
WORDS = [*map(str, EDGES), "+5", "007", "abc", "5x", "5\tx", "\t5", "\t", "\tx", "0x1f", "1.5", "-", "+", "noreply"]
KEYS = ["k", "k" * 250, "k" * 251]


def test_the_grammar_refuses_what_the_requirements_refuse_and_nothing_else() -> None:
    verbs = st.sampled_from([*STORES, *COUNTS])
    words = st.lists(st.sampled_from(WORDS), max_size=6)

    @settings(max_examples=20 * settings().max_examples, database=None)
    @given(verbs, st.sampled_from(KEYS), words)
    def drawn(verb: str, key: str, rest: list[str]) -> None:
        judged(" ".join([verb, key, *rest]))

    drawn()


@pytest.mark.parametrize("line", ["set k {} 0 1", "set k 0 {} 1", "set k 0 0 {}", "cas k 0 0 1 {}", "incr k {}"])
@pytest.mark.parametrize("key", KEYS)
def test_each_word_in_the_place_of_each_number(line: str, key: str) -> None:
    for word in WORDS:
        judged(line.replace("k", key, 1).format(word))
