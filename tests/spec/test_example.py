"""A recording as lines: every kind of step and answer, versions grouped where they answered the same."""

from __future__ import annotations

from typing import Any

import pytest

from kvref_conformance.corpus.conversation import from_json
from kvref_conformance.spec.example import Answer, Example, example, text


def of(*steps: dict[str, Any], **fields: Any) -> Example:
    line = {"id": "map-001", "group": "map", "title": "a switch", "steps": list(steps), **fields}
    return example("core:map-001", from_json(line))


def test_versions_that_answered_the_same_share_a_line() -> None:
    one = of(
        {"send": {"on": "a", "packets": ["get k\r\n"]}, "got": {"8.0.33": "END\r\n", "5.6.14": "END\r\n"}},
        {
            "send": {"on": "a", "packets": ["incr k 1\r\n"]},
            "got": {"8.0.33": "NOT_FOUND\r\n", "5.6.14": [{"number": "garbage"}, "\r\n"]},
        },
    )
    assert one.versions == ("5.6.14", "8.0.33")
    assert one.exchanges[0].sent == r"get k\r\n"
    assert one.exchanges[0].answers == (Answer((), r"END\r\n"),)
    assert one.exchanges[1].answers == (
        Answer(("5.6.14",), r"«number garbage»\r\n"),
        Answer(("8.0.33",), r"NOT_FOUND\r\n"),
    )


def test_the_set_up_and_how_it_ended_are_given() -> None:
    one = of(
        {"send": {"on": "a", "packets": ["get k\r\n"]}, "got": {"8.0.33": "END\r\n"}},
        options=["--loose-daemon_memcached_w_batch_size=5"],
        sql=["DELETE FROM test.t"],
        port={"5.6.14": "closed"},
        crash={"8.0.33": -11},
    )
    assert one.given == (
        "mysqld --loose-daemon_memcached_w_batch_size=5",
        "DELETE FROM test.t",
        "5.6.14: the port stays closed",
        "8.0.33: the server ends, exit status -11",
    )


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("a\r\n\xff", r"a\r\n\xff"),
        (["VALUE k 0 1 ", {"cas": 2}, "\r\n"], r"VALUE k 0 1 «cas 2»\r\n"),
        ({"time": 100}, "«time +100 s»"),
        ({"rows": []}, "no rows"),
        ({"rows": [["k", None, 5, {"cas": 1}], ["l", ["a", {"bytes": "memory"}], 0.5, {"time": 0}]]},
         "('k', NULL, 5, «cas 1»)\n('l', a«bytes memory», 0.5, «time +0 s»)"),
        ({"affected": 2}, "2 rows"),
        ({"error": [1062, "Duplicate entry"]}, "ERROR 1062: Duplicate entry"),
        ({"seen": [[["a", 1]], [["a", 2]]]}, "(('a', 1))\nthen (('a', 2))"),
        (None, ""),
    ],
)  # fmt: skip
def test_an_answer_is_shown_as_a_reader_types_it(recorded: Any, shown: str) -> None:
    assert text(recorded) == shown
