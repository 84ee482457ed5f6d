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


def test_a_version_that_did_not_answer_takes_no_share_of_a_line() -> None:
    one = of(
        {"send": {"on": "a", "packets": ["get k\r\n"]}, "got": {"8.0.33": "END\r\n", "5.6.14": "END\r\n"}},
        {"send": {"on": "a", "packets": ["get @>k\r\n"]}, "got": {"8.0.33": "END\r\n"}},
    )
    assert one.exchanges[1].answers == (Answer(("8.0.33",), r"END\r\n"),)


def test_the_last_answer_on_the_wire_is_found_by_version() -> None:
    one = of(
        {"send": {"on": "a", "packets": ["get k\r\n"]}, "got": {"8.0.33": "END\r\n", "5.6.14": "END\r\n"}},
        {"send": {"on": "a", "packets": ["get @>k\r\n"]}, "got": {"8.0.33": "VALUE\r\n", "5.6.14": "END\r\n"}},
        {"sql": {"on": "s", "statement": "SELECT 1"}, "got": {"8.0.33": {"rows": [[1]]}, "5.6.14": {"rows": [[2]]}}},
        {"send": {"on": "a", "packets": ["quit\r\n"]}, "got": {"8.0.33": "", "5.6.14": ""}},
    )
    assert one.last_answer("8.0.33") == (r"get @>k\r\n", r"VALUE\r\n")
    assert one.last_answer("5.6.14") == (r"get @>k\r\n", r"END\r\n")
    assert one.last_answer("memcached-1.6.18") is None


def test_what_is_no_command_is_explained() -> None:
    one = of(
        {"send": {"on": "a", "packets": ["set k 0 0 2\r\nx"], "quiet": True}},
        {"hang up": {"on": "a", "how": "half"}, "got": {"8.0.33": "<EOF>"}},
        {"hang up": {"on": "a", "how": "close"}},
        {"answer": {"on": "a"}, "got": {"8.0.33": ""}},
        {"pause": {"seconds": 1.5}},
        {"restart": {"how": "reload"}, "got": {"8.0.33": "open"}},
        {"crowd": {"many": 3, "name": "c", "send": "get k{i}\r\n"}, "got": {"8.0.33": {"END\r\n": 3}}},
        {"sql end": {"on": "s"}, "got": {"8.0.33": {"affected": 1}}},
    )
    reported = [
        (exchange.on, exchange.sent, [answer.text for answer in exchange.answers]) for exchange in one.exchanges
    ]
    assert reported == [
        ("a", r"set k 0 0 2\r\nx", []),
        ("a", "shuts down its sending side", ["<EOF>"]),
        ("a", "closes", []),
        ("a", "listens", [""]),
        ("", "waits 1.5 s", []),
        ("server", "reload", ["open"]),
        ("3 of c", r"get k{i}\r\n", [r"3 times END\r\n"]),
        ("sql s", "waits for its result", ["1 rows"]),
    ]


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


def test_frames_are_shown_in_words_with_their_holes() -> None:
    answer = ["81000000040000000000000500000007", {"cas": 2}, "0000000478"]
    one = of(
        {"send": {"on": "a", "frames": "get opaque=7 cas={c2} key=k"}, "got": {"8.0.33": answer, "5.6.14": "<EOF>"}}
    )
    assert one.exchanges[0].sent == "get opaque=7 cas=«cas 2» key=k"
    assert one.exchanges[0].answers == (
        Answer(("5.6.14",), "<EOF>"),
        Answer(("8.0.33",), "get ok opaque=7 cas=«cas 2» flags=4 value=x"),
    )


def test_frames_with_bytes_that_nobody_set_stand_as_recorded() -> None:
    one = of({"send": {"on": "a", "frames": "raw %80"}, "got": {"8.0.33": ["8100", {"bytes": "garbage"}]}})
    assert one.exchanges[0].sent == "raw %80"
    assert one.exchanges[0].answers == (Answer((), "8100«bytes garbage»"),)
