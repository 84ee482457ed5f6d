"""Binary conversations: how frames are described, compared, explained, excluded, generated and shrunk."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kvref_conformance.corpus import templates
from kvref_conformance.differential import exclusions, known_differences
from kvref_conformance.differential.compare import Counted
from kvref_conformance.differential.compare_frames import explained_frames, kind_of, same_frames
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.differential.generate import script_of, world_of
from kvref_conformance.frames import OPCODES, REPLY, Request, frames, split
from kvref_conformance.steps import Send


def request(name: str, key: bytes = b"", **more: object) -> Request:
    return replace(Request(OPCODES[name], key), **more)  # type: ignore[arg-type]


def sent(*requests: Request) -> bytes:
    return b"".join(part for each in requests for part in each.parts() if isinstance(part, bytes))


def reply(name: str, status: int = 0, key: bytes = b"", value: bytes = b"", cas: int = 0) -> bytes:
    extras = bytes(4) if name.startswith("get") and not status else b""
    return sent(request(name, key, magic=REPLY, vbucket=status, extras=extras, value=value, cas=cas))


def test_frames_are_cut_as_their_headers_tell() -> None:
    whole = request("set", b"k", value=b"v\r\n", extras=bytes(8), cas=5, opaque=b"abcd")
    short = request("getk", b"key", lengths=(250, None, None))
    first, second = frames(sent(whole, short) + b"\x80")
    assert str(first) == r"set extras=0000000000000000 key=k value=v\r\n cas=5 opaque=61626364"
    assert str(second) == "getk key=key stated lengths=250/0/3"
    assert split(reply("get") + reply("noop")[:-1]) == ([*frames(reply("get"))], reply("noop")[:-1])
    assert whole.parts() == [sent(whole)]
    assert replace(whole, heard=2).parts() == [sent(whole)[:16], 2, sent(whole)[24:]]


def test_answers_are_the_same_up_to_cas_numbers() -> None:
    counted = Counted()
    assert same_frames(reply("set", cas=5), reply("set", cas=9), counted)
    assert same_frames(reply("get", value=b"v", cas=5), reply("get", value=b"v", cas=9), counted)
    assert not same_frames(reply("set", cas=5), reply("set", cas=10), counted)
    assert not same_frames(reply("set", cas=5), reply("set"), counted)


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (reply("get", 1), reply("get"), "get: 0x01 / 0x00"),
        (reply("get", value=b"a"), reply("get", value=b"b"), "get 0x00: value"),
        (reply("getq") + reply("noop"), reply("noop"), "getq / noop: one has nothing to say"),
        (reply("get"), b"", "get: answered / not"),
        (reply("get"), reply("get") + b"<EOF>", "end: open / <EOF>"),
        (reply("set", cas=1), reply("set"), "set 0x00: cas"),
    ],
)
def test_anything_else_is_a_difference_and_has_a_name(left: bytes, right: bytes, kind: str) -> None:
    assert same_frames(left, left, Counted())
    assert not same_frames(left, right, Counted())
    assert explained_frames(b"", left, right, (), Counted()) is None
    assert kind_of(b"", left, right, (), Counted()) == kind


def test_a_row_explains_one_field_and_no_other() -> None:
    rows = known_differences.load(["mysql-8.0"])
    asked = sent(request("getk", b"@>aaaa"))
    zeros, record = reply("getk", key=b"b\0\0", value=b"v", cas=3), reply("getk", key=b"b7x", value=b"v", cas=8)
    assert explained_frames(asked, record, zeros, rows, Counted()) == ["record-behind-the-key"]
    assert explained_frames(sent(request("getk", b"aaaa")), record, zeros, rows, Counted()) is None
    for other in (
        reply("getk", key=b"c7x", value=b"v"),
        reply("getk", key=b"b7x", value=b"w"),
        reply("getk", 1, b"b7x"),
    ):
        assert explained_frames(asked, other, reply("getk", key=b"b\0\0", value=b"v"), rows, Counted()) is None


def test_a_failed_sum_of_5_6_may_be_any_number_where_the_other_side_says_0() -> None:
    rows, asked = known_differences.load(["mysql-5.6"]), sent(request("incr", b"k", extras=bytes(20)))
    assert explained_frames(asked, reply("incr", value=b"garbage!"), reply("incr", value=bytes(8)), rows, Counted())
    assert not explained_frames(
        asked, reply("incr", value=b"garbage!"), reply("incr", value=b"\0" * 7 + b"1"), rows, Counted()
    )


@pytest.mark.parametrize(
    ("rule", "requests", "safe"),
    [
        (exclusions.LONG_SWITCH_WORD, [request("set", b"@@" + b"x" * 248)], False),
        (exclusions.LONG_SWITCH_WORD, [request("set", b"@@" + b"x" * 247)], True),
        (exclusions.VBUCKET_OF_GET, [request("get", b"k", vbucket=1), request("set", b"k")], False),
        (exclusions.VBUCKET_OF_GET, [request("get", b"k", vbucket=1), request("getk", b"k")], True),
        (exclusions.VBUCKET_OF_GET, [request("get", b"@>k", vbucket=1), request("getk", b"k")], False),
        (exclusions.VBUCKET_OF_GET, [request("set", b"k", vbucket=1)], True),
        (exclusions.SHORT_APPEND, [request("append", b"k", lengths=(5, None, None))], False),
        (exclusions.SHORT_APPEND, [request("append", b"k")], True),
        (exclusions.COUNTERS, [request("stat"), request("stat", b"reset")], False),
        (exclusions.COUNTERS, [request("stat", b"reset"), request("stat")], True),
        (exclusions.SLABS, [request("stat", b"slabs")], False),
        (exclusions.SLABS, [request("stat", b"slabs", lengths=(None, None, 1))], False),
        (exclusions.SLABS, [request("stat", b"sizes")], True),
        (exclusions.WELL_FORMED, [request("incr", b"k\xff", extras=bytes(20))], False),
        (exclusions.WELL_FORMED, [request("get", b"k\xff")], True),
    ],
)
def test_a_rule_of_care_keeps_frames_out(rule: str, requests: list[Request], safe: bool) -> None:
    step = templates.request("a", sent(*requests).hex(), binary=True)
    assert exclusions.are_safe([step], frozenset({rule})) is safe
    assert exclusions.are_safe([step], frozenset())


def test_a_binary_flush_waits_for_the_other_connections_and_a_bound_for_no_secondary_index() -> None:
    read, flush = (
        templates.request("b", "get a\r\n"),
        templates.request("a", sent(request("flushq")).hex(), binary=True),
    )
    assert not exclusions.are_safe([read, flush], frozenset({exclusions.FLUSH_BESIDE_READERS}))
    assert exclusions.are_safe([flush], frozenset({exclusions.FLUSH_BESIDE_READERS}))
    bound, rule = (
        [templates.request("a", sent(request("getkq", b"@<k")).hex(), binary=True)],
        frozenset({exclusions.UPPER_BOUND}),
    )
    assert not exclusions.are_safe(bound, rule, secondary=True)
    assert exclusions.are_safe(bound, rule)


def talks(protocol: str, plugin: str, count: int) -> list[Send]:
    version = {"mysql-8.0": "8.0.33", "mysql-5.6": "5.6.14"}[plugin]
    configuration = Configuration(version, exclusions.rules_for([plugin]), protocol)
    worlds = [world_of(5, 100 * n, configuration) for n in range(16)]
    scripts = [script_of(5, n, 30, configuration, worlds[n % 16]) for n in range(count)]
    for script in scripts:
        world = script.world
        assert exclusions.are_safe(
            script.steps, configuration.rules, secondary=world.secondary, delimiter=world.delimiter
        )
    return [step for script in scripts for step in script.steps if isinstance(step, Send)]


@pytest.mark.long
@pytest.mark.parametrize("plugin", ["mysql-8.0", "mysql-5.6"])
def test_every_opcode_and_every_fault_is_drawn(plugin: str) -> None:
    steps = talks("binary", plugin, 160)
    assert all(step.binary for step in steps)
    drawn = [frame for step in steps for frame in frames(templates.bytes_of(step))]
    opcodes = Counter(frame.opcode for frame in drawn)
    assert not OPCODES.values() - opcodes.keys()
    assert {0x83, 0x84, 0x85} <= opcodes.keys()
    # One of them may not be drawn: draws depend on constants of the modules that are loaded.
    assert len(opcodes.keys() - OPCODES.values()) > 20
    assert any(isinstance(templates.sent(step), list) for step in steps)
    assert any(step.quiet for step in steps)
    assert {len(frame.key) > 250 for frame in drawn} == {True, False}
    assert any(not frame.key and frame.name == "get" for frame in drawn)
    assert any(frame.lengths[2] < frame.lengths[0] + frame.lengths[1] for frame in drawn)
    assert any(b"\0" in frame.key or b" " in frame.key for frame in drawn)


@pytest.mark.long
def test_mixed_conversations_have_connections_of_both_kinds() -> None:
    kinds = {step.binary for step in talks("mixed", "mysql-8.0", 20)}
    assert kinds == {True, False}
    assert {step.binary for step in talks("text", "mysql-8.0", 5)} == {False}
