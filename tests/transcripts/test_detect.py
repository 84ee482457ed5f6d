"""Two runs become one answer with holes, and the answer fits both runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref_conformance.corpus.conversation import Conversation, Recorded
from kvref_conformance.corpus.detect import RACE, answers, unexplained
from kvref_conformance.corpus.holes import CasNumbers, Clock, Json, matches
from kvref_conformance.corpus.observe import Observed, Played
from kvref_conformance.steps import AwaitReply

NOW = 1_700_000_000.0


def joined(steps: list[Recorded], one: list[Json], other: list[Json], sql: tuple[str, ...] = ()) -> list[Json]:
    conversation = Conversation("x-001", "x", "a title", tuple(steps), sql=sql)
    return answers(conversation, played(one, NOW), played(other, NOW + 40))


def played(got: list[Json], began: float) -> Played:
    return Played("", tuple(Observed(each, began, began + 0.1) for each in got), None, late=False)


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
