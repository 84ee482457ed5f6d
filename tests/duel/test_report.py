"""A difference is shown whole and saved so that it can be replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvref_conformance.corpus import conversation
from kvref_conformance.corpus.templates import request
from kvref_conformance.differential import report
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.differential.exchange import Difference, Outcome
from kvref_conformance.differential.generate import Script, world_of
from kvref_conformance.differential.run import Found, Tally
from kvref_conformance.steps import Sql

STEPS = (
    request("a", "gets k\r\n"),
    Sql("DELETE FROM test.t1", on="s"),
    request("a", ["cas k 0 0 1 ", {"cas": 1}, "\r\nx\r\n"]),
)
ANSWERS: list[tuple[bytes | None, bytes | None]] = [
    (b"VALUE k 0 1 77\r\nx\r\nEND\r\n", b"VALUE k 0 1 12\r\nx\r\nEND\r\n"),
    (b"<SQL done>", b"<SQL done>"),
    (b"NOT_FOUND\r\n", b"STORED\r\n"),
]


@pytest.fixture(scope="module")
def script() -> Script:
    return Script(12, world_of(1, 12, Configuration("8.0.33", frozenset())), STEPS, ("DELETE FROM test.t1",))


@pytest.fixture
def found(script: Script) -> Found:
    difference = Difference(2, "cas: NOT_FOUND / STORED", "NOT_FOUND", "STORED")
    return Found(script, Outcome(ANSWERS, difference), repeats=True)


def test_a_difference_shows_the_world_the_steps_and_both_answers(script: Script, found: Found) -> None:
    text = report.describe(found, ("left", "right"))
    assert "conversation 12, repeats" in text
    for statement in script.world.set_up():
        assert statement in text
    assert "  2. s> DELETE FROM test.t1\n" in text
    assert text.endswith("     left: 'NOT_FOUND\\r\\n'\n     right: 'STORED\\r\\n'")


def test_rows_are_shown_behind_the_steps(script: Script) -> None:
    found = Found(script, Outcome(ANSWERS[:2], Difference(None, "rows: x", "t: [1]", "t: []")), repeats=False)
    text = report.describe(found, ("left", "right"))
    assert "DID NOT REPEAT" in text
    assert text.endswith("afterwards:\n     left: t: [1]\n     right: t: []")


def test_a_saved_difference_is_a_conversation_with_the_first_sides_answers(
    tmp_path: Path, script: Script, found: Found
) -> None:
    path = report.save(found, tmp_path / "new", "8.0.33")
    saved = conversation.from_json(json.loads(path.read_text()))
    assert saved.sql == (*script.world.set_up(), "DELETE FROM test.t1")
    assert [each.step for each in saved.steps] == list(STEPS)
    assert saved.steps[0].got == {"8.0.33": ["VALUE k 0 1 ", {"cas": 1}, "\r\nx\r\nEND\r\n"]}  # type: ignore[union-attr]
    assert saved.steps[2].got == {"8.0.33": "NOT_FOUND\r\n"}  # type: ignore[union-attr]


def test_counts_go_into_the_table_and_the_json() -> None:
    tally = Tally(conversations=3, steps=90, worlds=1)
    tally.kinds["rows: x"] += 2
    tally.unrepeated["get: a / b"] += 1
    tally.known["uninitialised-number"] += 7
    tally.numbers |= {"rows: x": [1, 2], "get: a / b": [3]}
    assert tally.differences == 2
    counts = report.as_json(tally, 5, ("one", "other"))
    assert counts["differences"] == {"rows: x": 2}
    assert counts["did_not_repeat"] == {"get: a / b": 1}
    assert counts["known"] == {"uninitialised-number": 7}
    assert json.loads(json.dumps(counts)) == counts
    assert report.table(tally).row_count == 3
