"""The checker on small histories: accepted, rejected, with outcomes that are not known; and an endpoint that races."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kvref import profiles
from kvref_conformance.model import steps as s
from kvref_conformance.model.rules import Rules
from kvref_conformance.stateful.concurrency.linearizability import Operation, longest_order
from kvref_conformance.stateful.concurrency.simultaneous import Done, Key, KeySpecification

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = Rules(profiles.load("kvref"))
STORED, NOT_STORED, END = "STORED\r\n", "NOT_STORED\r\n", "END\r\n"
Command = s.Get | s.Store | s.Count | s.Delete
SET_1, SET_2, ADD = s.Store("a", "set", "k", "1"), s.Store("b", "set", "k", "2"), s.Store("b", "add", "k", "7")
GET, GETS, INCR = s.Get("a", ("k",)), s.Get("a", ("k",), cas=True), s.Count("a", "incr", "k", "1")
CAS = s.Store("b", "cas", "k", "9")


def shown(value: str, number: str = "") -> str:
    return f"VALUE k 0 {len(value)}{number}\r\n{value}\r\nEND\r\n"


def op(command: Command, reply: str | None, called: float, returned: float | None, number: int = 0) -> Operation[Done]:
    return Operation(Done(command, number, reply), called, returned)


@pytest.mark.parametrize("protocol", [s.TEXT, s.BINARY])
def test_a_number_that_a_missing_key_counts_from_is_not_stored(protocol: str) -> None:
    count = s.Count("a", "incr", "k", "1", protocol=protocol)
    number, get = (
        ("incr ok number=7", s.Get("a", ("k",), protocol=s.BINARY)) if protocol == s.BINARY else ("7\r\n", GET)
    )
    found, missed = ("get ok value=7", 'get 0x01 "Not found"') if protocol == s.BINARY else (shown("7"), END)
    for profile, reply, fine in (
        ("mysql-5.6", missed, True), ("mysql-5.6", found, False), ("mysql-8.0", missed, False),
    ):  # fmt: skip
        operations = [op(count, number, 0, 1), op(get, reply, 2, 3)]
        step = KeySpecification(Rules(profiles.load(profile))).step
        assert (len(longest_order(operations, Key(), step)) == 2) == fine, (profile, reply)


def linearizable(operations: Sequence[Operation[Done]]) -> bool:
    return len(longest_order(operations, Key(), KeySpecification(RULES).step)) == len(operations)


ONE = op(SET_1, STORED, 0, 1)
ACCEPTED = {
    "nothing": [],
    "one after the other": [ONE, op(GET, shown("1"), 2, 3), op(s.Delete("a", "k"), "DELETED\r\n", 4, 5)],
    "a read beside a write shows the old value": [ONE, op(SET_2, STORED, 2, 5), op(GET, shown("1"), 3, 4)],
    "a read beside a write shows the new value": [ONE, op(SET_2, STORED, 2, 5), op(GET, shown("2"), 3, 4)],
    "the reply that came first was executed last": [
        *(op(SET_2, STORED, 0, 9), op(SET_1, STORED, 1, 2)),
        *(op(GET, shown("2"), 3, 4), op(GET, shown("2"), 10, 11)),
    ],
    "two counts at the same time": [ONE, op(INCR, "2\r\n", 2, 5), op(INCR, "3\r\n", 3, 4)],
    "one of two adds": [op(ADD, STORED, 0, 3), op(ADD, NOT_STORED, 1, 2)],
    "cas with the number shown": [ONE, op(GETS, shown("1", " 5"), 2, 3), op(CAS, STORED, 4, 5, 5)],
    "cas with an old number": [
        *(ONE, op(GETS, shown("1", " 5"), 2, 3), op(SET_2, STORED, 4, 5), op(CAS, "EXISTS\r\n", 6, 7, 5))
    ],
}
REJECTED = {
    "a stale read": [ONE, op(SET_2, STORED, 2, 3), op(GET, shown("1"), 4, 5)],
    "a read of what nobody wrote": [ONE, op(GET, shown("3"), 2, 3)],
    "a read that goes back": [
        *(ONE, op(SET_2, STORED, 2, 9), op(GET, shown("2"), 3, 4), op(GET, shown("1"), 5, 6)),
    ],
    "a lost update": [ONE, op(INCR, "2\r\n", 2, 5), op(INCR, "3\r\n", 3, 4), op(GET, shown("2"), 6, 7)],
    "a count done twice": [ONE, op(INCR, "2\r\n", 2, 5), op(INCR, "2\r\n", 3, 4)],
    "two adds": [op(ADD, STORED, 0, 3), op(ADD, STORED, 1, 2)],
    "two items with one number": [
        *(ONE, op(GETS, shown("1", " 5"), 2, 3), op(CAS, STORED, 4, 7, 5), op(CAS, STORED, 5, 6, 5)),
    ],
    "a number that changes": [ONE, op(GETS, shown("1", " 5"), 2, 3), op(GETS, shown("1", " 6"), 4, 5)],
    "an item that came back": [ONE, op(s.Delete("a", "k"), "DELETED\r\n", 2, 3), op(GET, shown("1"), 4, 5)],
}
UNKNOWN = {
    "took effect at once": [op(SET_1, None, 0, None), op(GET, shown("1"), 1, 2)],
    "took effect late": [op(SET_1, None, 0, None), op(GET, END, 1, 2), op(GET, shown("1"), 3, 4)],
    "took no effect": [op(SET_1, None, 0, None), op(GET, END, 1, 2), op(GET, END, 3, 4)],
    "overwrote a later write": [op(SET_2, None, 0, None), op(SET_1, STORED, 1, 2), op(GET, shown("2"), 3, 4)],
}
IMPOSSIBLE = {
    "took effect twice": [
        *(op(SET_1, None, 0, None), op(GET, shown("1"), 1, 2), op(SET_2, STORED, 3, 4), op(GET, shown("1"), 5, 6))
    ],
    "took effect before it was sent": [op(GET, shown("1"), 0, 1), op(SET_1, None, 2, None)],
    "counted twice": [ONE, op(INCR, None, 2, None), op(GET, shown("3"), 3, 4)],
}


@pytest.mark.parametrize("name", ACCEPTED | UNKNOWN)
def test_a_history_with_an_order_is_linearizable(name: str) -> None:
    assert linearizable((ACCEPTED | UNKNOWN)[name])


@pytest.mark.parametrize("name", REJECTED | IMPOSSIBLE)
def test_a_history_without_one_is_not(name: str) -> None:
    assert not linearizable((REJECTED | IMPOSSIBLE)[name])


def test_the_longest_order_keeps_real_time_and_leaves_out_what_does_not_fit() -> None:
    stale = REJECTED["a stale read"]
    assert longest_order(stale, Key(), KeySpecification(RULES).step) == stale[:2]


def test_many_operations_at_once_are_searched_in_reasonable_time() -> None:
    """Without memoization the search of 20 counts at the same time visits 20! orders."""
    counts = [op(s.Count("a", "incr", "k", "1"), f"{number}\r\n", 2, 3) for number in range(2, 22)]
    assert linearizable([ONE, *counts])
    assert not linearizable([ONE, *counts, op(GET, shown("20"), 4, 5)])
