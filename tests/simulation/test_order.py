"""The search for an order: real time, the order of each connection, and outcomes that are not known."""

from __future__ import annotations

import pytest

from kvref_testbed.simulation.clients import Operation
from kvref_testbed.simulation.order import Fate, Step, longest_order
from kvref_testbed.simulation.plan import Command
from kvref_testbed.simulation.protocols import Item
from kvref_testbed.simulation.specification import KeySpecification, State

END = 1000.0


def write(
    line: int,
    verb: str,
    value: str,
    called: float,
    returned: float | None,
    fate: Fate = Fate.DONE,
    reply: bytes | None = b"STORED",
) -> Step:
    known = reply if returned is not None else None
    return Step(Operation(line, Command(verb, "k0", value), 0, called, called, returned, known), line, fate)


def read(line: int, value: str | None, called: float, returned: float) -> Step:
    items = {} if value is None else {"k0": Item(value.encode(), 0, None)}
    return Step(Operation(line, Command("get", "k0"), 0, called, called, returned, b"", items), line)


def in_order(*history: Step) -> bool:
    return longest_order(history, State(), KeySpecification("k0", END).step) is None


ONE = write(0, "set", "1", 0, 1)


@pytest.mark.parametrize(
    ("history", "fine"),
    [
        ([ONE, read(1, "1", 2, 3)], True),
        ([ONE, read(1, None, 2, 3)], False),
        ([ONE, write(0, "set", "2", 2, 5), read(1, "1", 3, 4)], True),
        ([ONE, write(0, "set", "2", 2, 5), read(1, "2", 3, 4), read(1, "1", 6, 7)], False),
        ([ONE, write(1, "set", "2", 2, None, Fate.UNKNOWN), read(2, "1", 3, 4), read(2, "2", 5, 6)], True),
        ([ONE, write(1, "set", "2", 2, None, Fate.UNKNOWN), read(2, "2", 3, 4), read(2, "1", 5, 6)], False),
        # A later command of a connection has taken effect only if the one before it has.
        ([write(0, "set", "1", 0, None, Fate.LAST), write(0, "append", "2", 0, None, Fate.LAST), read(1, "12", 3, 4)], True),
        ([write(0, "append", "1", 0, None, Fate.LAST), write(0, "add", "2", 0, None, Fate.LAST), read(1, "2", 3, 4)], True),
        ([write(0, "set", "1", 0, None, Fate.LAST), write(0, "add", "2", 0, None, Fate.LAST), read(1, "2", 3, 4)], False),
        ([write(0, "set", "1", 0, None, Fate.UNKNOWN), write(0, "add", "2", 0, None, Fate.UNKNOWN), read(1, "2", 3, 4)], True),
        # Commands that are sent at once are carried out in their order.
        ([write(0, "set", "1", 0, 5), write(0, "add", "2", 0, 5, reply=b"NOT_STORED"), read(0, "1", 0, 5)], True),
        ([write(0, "set", "1", 0, 5), write(0, "add", "2", 0, 5), read(0, "2", 0, 5)], False),
    ],
)  # fmt: skip
def test_histories(history: list[Step], fine: bool) -> None:
    assert in_order(*history) is fine


def test_a_pipeline_without_answers_takes_no_exponential_time() -> None:
    history = [write(line, "append", str(number), 0, None, Fate.LAST) for line in range(3) for number in range(30)]
    assert in_order(*history, read(4, None, 1, 2))
