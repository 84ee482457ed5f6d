"""Two runs become one answer with holes, and the answer fits both runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref_conformance.corpus.conversation import Conversation, Recorded
from kvref_conformance.corpus.detect import RACE, answers, unexplained
from kvref_conformance.corpus.holes import CasNumbers, Clock, Json, matches
from kvref_conformance.corpus.observe import Observed, Played
from kvref_conformance.corpus.templates import request
from kvref_conformance.steps import AwaitReply, Sql

NOW = 1_700_000_000.0
SELECT = Recorded(Sql("SELECT c1, c4 FROM test.demo_test", on="s"))


def joined(steps: list[Recorded], one: list[Json], other: list[Json], sql: tuple[str, ...] = ()) -> list[Json]:
    conversation = Conversation("x-001", "x", "a title", tuple(steps), sql=sql)
    return answers(conversation, played(one, NOW), played(other, NOW + 40))


def played(got: list[Json], began: float) -> Played:
    return Played("", tuple(Observed(each, began, began + 0.1) for each in got), None, late=False)


def test_cas_numbers_are_numbered_by_their_first_answer() -> None:
    one: list[Json] = ["VALUE k 0 1 5\r\n1\r\nVALUE l 0 1 4\r\n1\r\nEND\r\n", {"rows": [["k", 5], ["l", 4], ["m", 6]]}]
    other: list[Json] = [
        "VALUE k 0 1 1005\r\n1\r\nVALUE l 0 1 1004\r\n1\r\nEND\r\n",
        {"rows": [["k", 1005], ["l", 1004], ["m", 1006]]},
    ]
    assert joined([Recorded(AwaitReply((), "a", 0.0)), SELECT], one, other) == [
        ["VALUE k 0 1 ", {"cas": 1}, "\r\n1\r\nVALUE l 0 1 ", {"cas": 2}, "\r\n1\r\nEND\r\n"],
        {"rows": [["k", {"cas": 1}], ["l", {"cas": 2}], ["m", {"cas": 3}]]},
    ]


def test_a_number_that_does_not_count_along_is_garbage() -> None:
    one: list[Json] = ["VALUE k 0 1 5\r\n1\r\nEND\r\n", {"rows": [["k", 140115993196874]]}]
    other: list[Json] = ["VALUE k 0 1 1005\r\n1\r\nEND\r\n", {"rows": [["k", 140053179286586]]}]
    assert joined([Recorded(AwaitReply((), "a", 0.0)), SELECT], one, other)[1] == {
        "rows": [["k", {"number": "garbage"}]]
    }


def test_times_count_from_their_step_even_when_equal() -> None:
    got = joined([SELECT], [{"rows": [["k", int(NOW) + 100]]}], [{"rows": [["k", int(NOW) + 140]]}])
    assert got == [{"rows": [["k", {"time": 100}]]}]
    same: list[Json] = [f"STAT time {NOW:.0f}\r\nEND\r\n"]
    conversation = Conversation("x-001", "x", "a title", (Recorded(AwaitReply((), "a", 0.0)),))
    assert answers(conversation, played(same, NOW), played(same, NOW)) == [["STAT time ", {"time": 0}, "\r\nEND\r\n"]]


def test_times_in_errors_and_below_zero() -> None:
    one: list[Json] = [{"error": [1690, f"out of range in '({NOW:.0f} - 1)'"]}, {"rows": [[-int(NOW) - 1]]}]
    other: list[Json] = [{"error": [1690, f"out of range in '({NOW + 40:.0f} - 1)'"]}, {"rows": [[-int(NOW) - 41]]}]
    assert joined([SELECT, SELECT], one, other) == [
        {"error": [1690, ["out of range in '(", {"time": 0}, " - 1)'"]]},
        {"rows": [[{"number": "less the time"}]]},
    ]


@pytest.mark.parametrize(
    ("one", "other", "joint"),
    [
        ("140115993196874\r\n", "0\r\n", [{"number": "garbage"}, "\r\n"]),
        ("one|\xa0|two\r\n", "one|\xbe\xba\xfe|two\r\n", ["one|", {"bytes": "garbage"}, "|two\r\n"]),
        ("STORED\r\n", "NOT_STORED\r\n", RACE),
        ("", "STORED\r\n", RACE),
        ("OK\r\n", "OK\r\n<EOF>", RACE),
    ],
)
def test_garbage_and_races_are_pointed_out(one: str, other: str, joint: Json) -> None:
    (got,) = joined([Recorded(AwaitReply((), "a", 0.0))], [one], [other])
    assert got == joint
    assert list(unexplained(got))


def test_cas_numbers_of_the_plugin_are_holes_even_where_equal() -> None:
    """Those of the memory cache (policy cache_only) and those after a restart count alike on any server."""
    answer = "VALUE k 0 1 {}\r\n1\r\nEND\r\n"
    got: list[Json] = [answer.format(6), answer.format(0), answer.format(2**64 - 1)]
    assert joined([Recorded(AwaitReply((), "a", 0.0))] * 3, got, got) == [
        ["VALUE k 0 1 ", {"cas": 1}, "\r\n1\r\nEND\r\n"],
        *got[1:],
    ]


def test_times_are_made_from_what_the_conversation_says() -> None:
    steps = [Recorded(request("a", "set k 0 100 1\r\n1\r\nset l 0 1900000000 1\r\n1\r\n")), SELECT]
    one, other = ({"rows": [[began + 100.9, 1], [began + 1900000000 - (1 << 32), 2]]} for began in (NOW, NOW + 40))
    runs: list[Json] = [{"rows": [[int(cell) for cell in row] for row in run["rows"]]} for run in (one, other)]
    assert joined(steps, ["STORED\r\n", runs[0]], ["STORED\r\n", runs[1]])[1] == {
        "rows": [[{"time": 100}, 1], [{"time": 1900000000 - (1 << 32)}, 2]]
    }


FRAME = "81{opcode}0000{extras}000000" + "{length:08x}" + "00000000" + "{cas:016x}" + "{body}"


def frame(body: str = "", cas: int = 0, opcode: str = "01") -> str:
    return FRAME.format(opcode=opcode, extras="00", length=len(body) // 2, cas=cas, body=body)


@pytest.mark.parametrize(
    ("one", "other", "joint"),
    [
        (frame(cas=7), frame(cas=1007), [frame()[:32], {"cas": 1}]),
        (frame("6e313233"), frame("6e343536"), [frame("6e313233")[:-6], {"number": "garbage"}]),
        # A pointer: bytes that are equal by chance mean nothing either.
        (frame("00003000a0"), frame("00003000b0"), [frame("00003000a0")[:-10], {"bytes": "garbage"}]),
        (frame("3030"), frame("30"), RACE),
        ("", frame(), RACE),
        (frame(), frame() + "<EOF>", RACE),
        (
            frame() + frame(cas=7) + "<EOF>",
            frame() + frame(cas=1007) + "<EOF>",
            [frame() + frame()[:32], {"cas": 1}, "<EOF>"],
        ),
    ],
)
def test_binary_frames(one: str, other: str, joint: Json) -> None:
    (got,) = joined([Recorded(request("a", "80", binary=True))], [one], [other])
    assert got == joint
    for each in (one, other):
        assert matches(got, each, CasNumbers(), Clock(NOW, NOW + 40), hexadecimal=True)


def test_rows_of_binary_stats_say_why_they_differ() -> None:
    def row(name: str, value: str) -> str:
        return frame((name + value).encode().hex(), opcode="10")

    one = row("pid", "700") + row("uptime", "9") + row("threads", "2") + row("cmd_get", "1")
    other = row("pid", "1700") + row("uptime", "10") + row("threads", "2") + row("cmd_get", "3")
    (got,) = joined([Recorded(request("a", "80", binary=True))], [one], [other])
    assert isinstance(got, list)
    assert [part for part in got if isinstance(part, dict)] == [
        {"bytes": "length"},
        {"number": "pid"},
        {"bytes": "length"},
        {"number": "counter"},
        {"bytes": "length"},
        {"number": "counter"},
    ]
    assert matches(got, other, CasNumbers(), Clock(NOW, NOW), hexadecimal=True)


def test_results_of_another_kind_are_a_race() -> None:
    error: Json = {"error": [1205, "Lock wait timeout exceeded"]}
    assert joined([SELECT, SELECT], [error, {"rows": [[1]]}], [{"rows": []}, {"rows": [[1], [2]]}]) == [
        RACE,
        {"rows": RACE},
    ]


VALUES = st.text(st.sampled_from("ab 19\r\n\xa0|"), max_size=12)


@given(st.lists(st.tuples(VALUES, st.integers(0, 5), VALUES), min_size=1, max_size=4))
def test_the_joint_answer_fits_both_runs(items: list[tuple[str, int, str]]) -> None:
    def run(base: int, second: bool) -> str:
        lines = []
        for number, (value, cas, changed) in enumerate(items):
            data = changed if second else value
            lines.append(f"VALUE k{number} 0 {len(data)} {base + cas}\r\n{data}\r\n")
        return "".join(lines) + "END\r\n"

    one, other = run(3, second=False), run(2000, second=True)
    (joint,) = joined([Recorded(AwaitReply((), "a", 0.0))], [one], [other])
    for each in (one, other):
        assert matches(joint, each, CasNumbers(), Clock(NOW, NOW + 40))
