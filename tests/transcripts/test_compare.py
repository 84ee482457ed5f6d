"""Recorded against observed: what counts as a difference, on a live plugin and on kvref over SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kvref_conformance.corpus.compare import Difference, ServerKind, differences
from kvref_conformance.corpus.conversation import Conversation, Recorded
from kvref_conformance.corpus.observe import Observed, Played
from kvref_conformance.corpus.templates import request
from kvref_conformance.steps import Sql

if TYPE_CHECKING:
    from kvref_conformance.corpus.holes import Json

V = "8.0.33"
OTHER = ServerKind.KVREF_OVER_OTHER_SQL


def talked(recorded: Json, observed: Json, kind: ServerKind = ServerKind.PLUGIN) -> list[Difference]:
    return compared(Recorded(request("a", "x\r\n"), {V: recorded}), observed, kind)


def compared(step: Any, observed: Json, kind: ServerKind = ServerKind.PLUGIN) -> list[Difference]:
    conversation = Conversation("c-001", "c", "", steps=(step,))
    played = Played("", (Observed(observed, 100.0, 100.1),), None, late=False)
    return differences(conversation, played, V, kind)


def rows(recorded: Json, observed: Json, kind: ServerKind) -> list[Difference]:
    step = Recorded(Sql("SELECT 1", on="s"), {V: {"rows": recorded}})
    return compared(step, {"rows": observed}, kind)


@pytest.mark.parametrize(
    ("recorded", "observed", "same"),
    [
        ("END\r\n", "END\r\n", True),
        ("END\r\n", "ERROR\r\n", False),
        (["VALUE k 0 1 ", {"cas": 1}, "\r\nx\r\nEND\r\n"], "VALUE k 0 1 99\r\nx\r\nEND\r\n", True),
        (["VALUE k 0 1 ", {"cas": 1}, "\r\nx\r\nEND\r\n"], "VALUE k 0 2 99\r\nxx\r\nEND\r\n", False),
        (["STAT time ", {"time": 5}, "\r\n"], "STAT time 105\r\n", True),
        (["STAT time ", {"time": 5}, "\r\n"], "STAT time 150\r\n", False),
    ],
)
def test_answer_is_the_same_up_to_its_holes(recorded: Json, observed: str, same: bool) -> None:
    expected = [] if same else [Difference(1, recorded, observed)]
    assert talked(recorded, observed) == expected


def test_one_cas_number_is_one_number_all_through_the_conversation() -> None:
    hole: Json = ["VALUE k 0 1 ", {"cas": 1}, "\r\nx\r\nEND\r\n"]
    steps = tuple(Recorded(request("a", "gets k\r\n"), {V: hole}) for _ in range(3))
    seen = [f"VALUE k 0 1 {number}\r\nx\r\nEND\r\n" for number in (7, 7, 8)]
    played = Played("", tuple(Observed(answer, 0.0, 0.0) for answer in seen), None, late=False)
    found = differences(Conversation("c", "c", "", steps=steps), played, V, OTHER)
    assert [each.step for each in found] == [3]


@pytest.mark.parametrize(
    ("recorded", "observed", "same"),
    [
        ([[1, "a"]], [[1, "a"]], True),
        ([[1, "a"]], [["1", "a"]], False),
        ([["2", "a"]], [[2, "a"]], True),  # SUM is a decimal in MySQL, shown as text
        ([["2.5", "a"]], [[2, "a"]], False),
        ([[1]], [[1], [2]], False),
        ([[1, 2]], [[1]], False),
        ([[{"cas": 1}]], [[5]], True),
        ([[None]], [[0]], False),
    ],
)
def test_rows_of_sqlite_are_those_of_mysql(recorded: Json, observed: Json, same: bool) -> None:
    assert (rows(recorded, observed, OTHER) == []) is same
