"""The grammar of the specification accepts what the endpoints accept, and nothing that they refuse."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvref import profiles
from kvref.engine.steps import ranges
from kvref.errors import SuiteError
from kvref.protocol import binary, command_table, opcodes
from kvref.protocol import commands as c
from kvref.protocol.grammar import NO_SHUTDOWN, NO_TLS, TOO_LARGE, Discard
from kvref.protocol.rules import WireRules, wire_rules
from kvref.protocol.text import parse_line
from kvref.specification import normative
from kvref_conformance import corpus
from kvref_conformance.cases import all_cases
from kvref_conformance.corpus.templates import sent
from kvref_conformance.spec import grammar
from kvref_conformance.spec.abnf import Abnf
from kvref_conformance.steps import AwaitReply, Disconnect, Send, StartRequest, innermost

VERSIONS = {"mysql-8.0": "8.0.33", "mysql-5.6": "5.6.14"}
PROFILES = ("kvref", *VERSIONS)
# Replies of the two versions to a line that is malformed whatever the table has.
SYNTAX = re.compile(
    r"ERROR\r\n|CLIENT_ERROR (bad command line format(\.  Usage: delete <key> \[noreply\])?|invalid numeric delta argument"
    r"|Invalid expire time|invalid exptime argument)\r\n"
)
STORAGE = ("set ", "add ", "replace ", "append ", "prepend ", "cas ")
# An unknown subcommand is refused for what it names.
STATS = "stats "


@cache
def rules(profile: str) -> WireRules:
    return wire_rules(profiles.load(profile), 1 << 20)


def is_refused(line: str, profile: str) -> bool:
    """Return whether the parser of the server refuses a line for its form; a value can be too large in any form.

    The only replies to `refresh_certs` and `shutdown` are errors, whatever their form.
    """
    parsed = parse_line(line.encode("latin-1"), rules(profile))
    command = parsed.command if isinstance(parsed, Discard) else parsed
    if isinstance(command, c.Refused):
        return not command.line.startswith(TOO_LARGE) and command.line not in (NO_TLS, NO_SHUTDOWN)
    return isinstance(command, c.Foreign) or (isinstance(command, c.Get) and command.refused)


def recorded_texts() -> Iterator[str]:
    for name in corpus.SETS:
        for conversation in corpus.load(name).values():
            steps = (each.step for each in conversation.steps)
            parts = (sent(step) for step in steps if isinstance(step, Send) and not step.binary)
            yield from (part for part in parts if isinstance(part, str))


@cache
def recorded_lines() -> frozenset[str]:
    lines = {line for text in recorded_texts() for line in text.split("\r\n")[:-1]}
    return frozenset(line for line in lines if "\n" not in line)


@cache
def lines_of_cases() -> frozenset[str]:
    steps = (innermost(step) for case in all_cases() for step in case.steps)
    sent = ["".join(step.packets) for step in steps if isinstance(step, Send | StartRequest) and not step.binary]
    return frozenset(line for text in sent for line in re.split(r"\r?\n", text)[:-1])


@pytest.mark.parametrize("profile", PROFILES)
def test_the_grammar_accepts_every_recorded_line_that_the_server_accepts_and_no_other(profile: str) -> None:
    assert len(recorded_lines()) > 4000
    assert [line for line in recorded_lines() if grammar.accepts(line, profile) == is_refused(line, profile)] == []


@pytest.mark.parametrize("profile", PROFILES)
def test_the_grammar_accepts_every_line_of_a_case_that_the_server_accepts_and_no_other(profile: str) -> None:
    assert len(lines_of_cases()) > 1900
    assert [line for line in lines_of_cases() if grammar.accepts(line, profile) == is_refused(line, profile)] == []


def first_answers(version: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that are the first on their connection, with the answer of a version."""
    for name in corpus.SETS:
        for conversation in corpus.load(name).values():
            seen = set()
            for step in conversation.steps:
                on = getattr(step.step, "on", None)
                if not isinstance(step.step, Send | AwaitReply | Disconnect) or on in seen:
                    continue
                seen.add(on)
                answer = step.got.get(version)
                text = sent(step.step) if isinstance(step.step, Send) and not step.binary else None
                if not isinstance(text, str) or not isinstance(answer, str) or not answer:
                    continue
                line, end, rest = text.partition("\r\n")
                if end and not rest and not line.startswith((*STORAGE, STATS)) and "\n" not in line:
                    yield line, answer


@pytest.mark.parametrize(("profile", "version"), VERSIONS.items())
def test_a_recorded_line_was_refused_if_and_only_if_it_does_not_match(profile: str, version: str) -> None:
    answers = dict(first_answers(version))
    assert len(answers) > 300
    refused = {line for line, answer in answers.items() if SYNTAX.match(answer)}
    assert len(refused) > 30
    assert {line for line in answers if not grammar.accepts(line, profile)} == refused


@pytest.mark.parametrize("profile", PROFILES)
def test_the_server_accepts_every_generated_line_that_matches(profile: str) -> None:
    start = normative.table("grammar")["start"][profile]

    @settings(max_examples=2 * settings().max_examples, database=None)
    @given(st.from_regex(grammar.grammar().pattern(start), fullmatch=True))
    def generated(line: str) -> None:
        assert grammar.accepts(line, profile) != is_refused(line, profile)

    generated()


@pytest.mark.parametrize("profile", PROFILES)
def test_the_server_refuses_every_line_with_a_change_that_does_not_match(profile: str) -> None:
    octets = st.characters(min_codepoint=1, max_codepoint=255, exclude_characters="\n")
    lines = st.sampled_from(sorted(line for line in recorded_lines() if len(line) < 80))

    @settings(max_examples=4 * settings().max_examples, database=None)
    @given(lines, st.integers(0, 80), st.integers(0, 2), st.text(octets, max_size=2))
    def changed(line: str, place: int, cut: int, new: str) -> None:
        line = (line[:place] + new + line[place + cut :]).removesuffix("\r")
        assert grammar.accepts(line, profile) != is_refused(line, profile)

    changed()


def test_a_word_is_a_range_in_the_grammar_where_the_server_reads_one() -> None:
    words = {word for line in recorded_lines() for word in line.split(" ") if 0 < len(word) <= 250 and "\0" not in word}
    pattern = grammar.grammar().pattern("range")
    read = {word for word in words if ranges.parse(word.encode("latin-1")) is not None}
    assert len(read) > 20
    assert {word for word in words if pattern.fullmatch(word)} == read


def test_the_opcodes_are_those_of_the_server() -> None:
    rows = normative.table("binary")["opcode"]
    forms = command_table.BINARY | command_table.BINARY_BEYOND_PLUGIN
    assert [row["number"] for row in rows] == sorted(forms)
    for row in rows:
        form = forms[row["number"]]
        assert row["quiet"] == form.quiet
        assert ("mysql-8.0" in row["profiles"]) == (row["number"] in command_table.BINARY)
        if not form.own_engine:
            assert row["key"] == {True: "required", False: "none", None: "optional"}[form.key]
            assert row["value"] == ("ignored" if form.leaves_value else "allowed" if form.value else "none")
            sizes = {sum(map(int, re.findall(r"(?<=\()\d+(?=\))", row["extras"])))} - {0}
            assert sizes <= set(form.extras)


def test_the_header_is_that_of_the_server() -> None:
    header = normative.table("binary")["header"]
    assert [row["offset"] for row in header] == [sum(row["length"] for row in header[:n]) for n in range(len(header))]
    assert sum(row["length"] for row in header) == opcodes.HEADER_SIZE


def test_the_statuses_are_those_of_the_server() -> None:
    rows = {row["number"]: row["text"] for row in normative.table("binary")["status"]}
    fixed = {number: text.decode() for number, text in binary.TEXTS.items()}
    # 0x85 is the response of the daemon's own engine to scrub, which kvref never sends.
    assert rows == {0: "", 0x20: "Auth failure.", 0x85: "", binary.INTERNAL: "*", **fixed}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = b", "there is no rule b"),
        ("a = b\nb = [a]", "rule a contains itself"),
        ('a = ("x"', "is not closed"),
        ('a = "x"\na = "y"', "the first definition has ="),
        ('a =/ "x"', "the first definition has ="),
        ("a = <prose>", "unexpected"),
        ("1 = 2", "no rule of ABNF"),
    ],
)
def test_a_malformed_grammar_is_rejected(text: str, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        Abnf(text)


@pytest.mark.parametrize(
    ("body", "matching", "others"),
    [
        ('"ab" / %x41.42', ["ab", "AB", "Ab"], ["a", ""]),
        ('%s"ab"', ["ab"], ["AB"]),
        ("2*3%x30-39", ["12", "123"], ["1", "1234", "ab"]),
        ('2("a" / "b")', ["ab", "bb"], ["a", "aaa"]),
        ('*1"a" ["b"]', ["", "a", "b", "ab"], ["aa"]),
    ],
)
def test_the_forms_of_abnf(body: str, matching: list[str], others: list[str]) -> None:
    read = Abnf(f"r = {body}  ; a comment")
    assert [text for text in [*matching, *others] if read.match("r", text) is not None] == matching


def test_a_captured_rule_is_returned_in_the_order_of_the_text() -> None:
    read = Abnf('line = a-word " " number\na-word = 1*%x61-7A\nnumber = 1*%x30-39')
    assert read.match("line", "abc 12", ["number", "a-word"]) == [("a-word", "abc"), ("number", "12")]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("line", ["incr k {}", "set k {} 0 1", "set k 0 {} 1", "set k 0 0 {}", "cas k 0 0 1 {}"])
def test_a_word_is_a_number_in_the_grammar_where_the_server_reads_one(profile: str, line: str) -> None:
    letters = "\t\r+-5x"
    words = ["".join(each) for size in range(1, 5) for each in itertools.product(letters, repeat=size)]
    lines = [line.format(word) for word in words]
    assert len(lines) > 1500
    assert [each for each in lines if grammar.accepts(each, profile) == is_refused(each, profile)] == []


@pytest.mark.parametrize("profile", [*PROFILES, "memcached"])
@pytest.mark.parametrize(
    ("rule", "line"), [("flags", "set k {} 0 1"), ("delta", "incr k {}"), ("length", "set k 0 0 {}")]
)
def test_the_ends_of_ranges_are_those_of_the_server(profile: str, rule: str, line: str) -> None:
    name = f"plugin-{rule}" if profile in VERSIONS and rule != "delta" else rule
    ranges = normative.table("grammar")["ranges"][name]
    for low, high, *_ in ranges.get(profile, ranges.get("*")):
        for number in (low - 1, low, high, high + 1):
            each = line.format(number)
            assert grammar.accepts(each, profile) != is_refused(each, profile), each
