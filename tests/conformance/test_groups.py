"""Failures of a run grouped by likely cause, in the terminal's words and as Markdown."""

from __future__ import annotations

import pytest
from helpers.reports import HEADER

from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.judging.verdict import CRASH, FAILS, HOLDS, SUITE_ERROR, Tally, Verdict
from kvref_conformance.reports import markdown
from kvref_conformance.reports.difference import differing_part, first_difference
from kvref_conformance.reports.groups import MAX_GROUPS, grouped, lines


def failed(case: str, *exchanges: Exchange, requirements: tuple[str, ...] = ("KV-CORE-041",)) -> Verdict:
    return Verdict(case, "storage", requirements, FAILS, "why", 0.5, exchanges, f"text of {case}")


def exchange(sent: str, got: str, *allowed: str, note: str = "") -> Exchange:
    return Exchange("a", sent, allowed, got, note, passed=got in allowed)


TOUCH = [
    failed(f"touch-{n}", exchange(f"touch k{n} 0\r\n", "ERROR\r\n", word), requirements=names)
    for n, word, names in ((1, "TOUCHED\r\n", ("KV-TOUCH-001",)), (2, "TOUCHED\r\n", ("KV-TOUCH-001", "KV-TOUCH-003")))
]
SET = failed("set", exchange("set k 0 0 1\r\nx\r\n", "NOT_STORED\r\n", "STORED\r\n"))


@pytest.mark.parametrize(
    ("conversation", "cause"),
    [
        ([exchange("incr k 1\r\n", "7\r\n", "NOT_FOUND\r\n")], "`incr` receives a number instead of NOT_FOUND"),
        ([exchange("get k\r\n", "", "END\r\n", note="hang after 5 s")], "`get` receives no complete reply"),
        ([exchange("get k\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n", "VALUE k 0 1\r\ny\r\nEND\r\n")], "`get` receives another VALUE"),
        (
            [
                exchange("set k 0 0 1 noreply\r\nx\r\n", "", ""),
                exchange("SELECT c2 FROM t\r\n", "[]", "[('x',)]"),
            ],
            "`SELECT` after `set noreply` receives other rows",
        ),
        (
            [exchange("touch k 1\r\n", "TOUCHED\r\n", "TOUCHED\r\n"), exchange("get k\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n", "END\r\n")],
            "`get` after `touch` receives VALUE instead of END",
        ),
        ([exchange("set key=k", "set not-stored", "set ok cas=<cas>")], "`set` receives set not-stored instead of set ok"),
        (
            [exchange("set k 0 0 1\r\nx\r\n", "SERVER_ERROR at 17\r\n", "STORED\r\n")],
            "`set` receives SERVER_ERROR at N instead of STORED",
        ),
    ],
)  # fmt: skip
def test_a_cause_names_request_reply_and_what_was_allowed(conversation: list[Exchange], cause: str) -> None:
    (group,) = grouped([failed("case", *conversation)])
    assert group.cause == cause


def test_a_crash_and_an_error_of_the_suite_have_causes_of_their_own() -> None:
    gone = Verdict("a", "bind", (), CRASH, "why", 0.0, (exchange("bind x\r\n", "", "SUCCEED\r\n"),))
    broken = Verdict("b", "bind", (), SUITE_ERROR, "KeyError", text="Traceback")
    assert [each.cause for each in grouped([gone, broken])] == [
        "`bind` ends the endpoint",
        "the suite failed: KeyError",
    ]


def test_a_deviation_that_does_not_occur_has_its_own_cause() -> None:
    passed = exchange("get k\r\n", "END\r\n", "END\r\n")
    row = 'unexpected pass: a deviation row says "no"; remove it when it healed'
    verdicts = [
        Verdict(
            f"case-{n}", "storage", (), FAILS, "why", 0.0, (exchange(f"set k{n}\r\n", "x", "x"), passed), f"head\n{row}"
        )
        for n in range(2)
    ]
    (group,) = grouped(verdicts)
    assert group.cause == row
    assert group.verdicts == tuple(verdicts)


def test_the_terminal_has_a_limited_number_of_groups() -> None:
    many = [failed(f"case-{n}", exchange(f"verb{n} k\r\n", "ERROR\r\n", "OK\r\n")) for n in range(MAX_GROUPS + 3)]
    received = lines(many)
    assert len(received) == MAX_GROUPS + 2
    assert received[-1] == "  3 more causes are in the report"
    assert lines([Verdict("kept", "storage", (), HOLDS)]) == []


def test_the_markdown_has_groups_and_an_example_of_each() -> None:
    text = markdown.failures(HEADER, Tally([SET, *TOUCH], ["a row matches no case"]))
    assert text.index("### 2 cases: \\`touch\\` receives ERROR") < text.index(
        "### 1 case: \\`set\\` receives NOT_STORED"
    )
    assert "- a row matches no case" in text
    assert "Requirements: KV-TOUCH-001 (2), KV-TOUCH-003 (1)" in text
    assert "text of touch-1" in text
    assert "text of touch-2" not in text


def test_the_markdown_fits_the_comment_of_a_pull_request() -> None:
    many = [
        Verdict(f"case-{n}", "bind", ("KV-BIND-001",), FAILS, "", 0.0, (exchange(f"verb{n}\r\n", "x", "y"),), "z" * 900)
        for n in range(200)
    ]
    text = markdown.failures(HEADER, Tally(many))
    assert 50_000 < len(text) <= 60_000
    left = 200 - text.count("\n### ")
    assert text.endswith(f"{left} more parts are left out here: the HTML page has them.\n")
    assert len(markdown.failures(HEADER, Tally(many), limit=3_000)) <= 3_000


@pytest.mark.parametrize(
    ("got", "allowed", "place"),
    [
        ("STORED\r\n", ("NOT_FOUND\r\n",), 0),
        ("VALUE k 0 1\r\nx\r\n", ("END\r\n", "VALUE k 0 1\r\ny\r\n"), 13),
        ("VALUE k 0 1\r\n", ("VALUE k 0 1\r\ny\r\n",), 13),
        ("VALUE k 0 1 77\r\nx", ("VALUE k 0 1 <cas a>\r\ny",), 16),
        ("VERSION 1.6\r\nEND", ("VERSION <text>\r\nOK",), 13),
        ("STAT a 1\r\nSTAT b 2\r\nEND\r\n", ("<stats>STAT b 3\r\n<stats>END\r\n",), 20),
        ("anything", (), 0),
    ],
)
def test_the_first_byte_that_differs(got: str, allowed: tuple[str, ...], place: int) -> None:
    assert first_difference(got, allowed) == place


@pytest.mark.parametrize(
    ("got", "allowed", "received"),
    [
        ("STORED\r\n", ("NOT_STORED\r\n",), ""),
        ("a\r\nx\r\nEND\r\n", ("a\r\nb\r\nEND\r\n",), "line 2 of 3: x, expected b"),
        ("a\r\nb\r\n", ("a\r\nb\r\nEND\r\n",), "after line 2, the last one: (end), expected END"),
        ("a\r\nEND\r\nx\r\n", ("a\r\nEND\r\n",), "line 3 of 3: x, expected (end)"),
        ("a\r\nbc\r\nEND\r\n", ("x\r\n", "a\r\nbd\r\nEND\r\n", "a\r\nEND\r\n"), "line 2 of 3: bc, expected bd"),
        ("STAT p 1\r\nSTAT c no\r\nEND\r\n", ("STAT p <number>\r\nSTAT c yes\r\nEND\r\n",), "line 2 of 3: STAT c no, expected STAT c yes"),
        ("get ok value=x; noop 0x01", ("get ok value=<value>; noop ok",), "frame 2 of 2: noop 0x01, expected noop ok"),
        ("[('a',), ('b',)]", ("[('a',), ('c',)]",), "row 2 of 2: 'b',)], expected 'c',)]"),
        ("HD c3 W\r\n", ("HD c<number> X W\r\n",), "word 3 of 3: W, expected X"),
        ("HD c3\r\n", ("HD c3 W\r\n",), "after word 2, the last one: (end), expected W"),
        ("HD c3 W\r\n", ("HD c3\r\n",), "word 3 of 3: W, expected (end)"),
        ("ERROR\r\n", ("CLIENT_ERROR bad data chunk\r\n",), ""),
        ("", ("a\r\nb\r\n",), "after line 0, the last one: (end), expected a"),
    ],
)  # fmt: skip
def test_the_part_of_a_reply_that_differs_is_named(got: str, allowed: tuple[str, ...], received: str) -> None:
    assert differing_part(got, allowed) == received
