"""Binary conversations: how frames are described, compared, explained, excluded, generated and shrunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from kvref_conformance.corpus import templates
from kvref_conformance.differential import exclusions, known_differences
from kvref_conformance.differential.compare import Counted, explained, lines, same
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.differential.generate import script_of, world_of
from kvref_conformance.differential.kinds import kind_of_frames
from kvref_conformance.differential.known_differences import Known
from kvref_conformance.steps import Send
from kvref_conformance.strategies import pools
from kvref_conformance.wire.frames import OPCODES, REPLY, encode, frames, split


def reply(name: str, status: int = 0, key: str = "", value: str = "", cas: int = 0) -> bytes:
    extras = " extras=00000000" if name.startswith("get") and not status else " extras="
    return encode(f"{name} magic={REPLY} vbucket={status} cas={cas}{extras} key={key} value={value}")


def same_frames(left: bytes, right: bytes, counted: Counted) -> bool:
    return same(lines(left, binary=True), lines(right, binary=True), counted)


def explained_frames(sent: str, left: bytes, right: bytes, rows: Sequence[Known]) -> list[str] | None:
    return explained(sent, lines(left, binary=True), lines(right, binary=True), rows, Counted())


def test_frames_are_cut_as_their_headers_tell() -> None:
    whole, short = "set key=k opaque=0x61626364 cas=5 value=v%0d%0a", "getk key=key keylen=250"
    first, second = frames(encode(f"{whole}; {short}") + b"\x80")
    assert (first.name, first.key, first.value, first.cas, first.opaque) == ("set", b"k", b"v\r\n", 5, b"abcd")
    assert (second.name, second.key, second.lengths) == ("getk", b"key", (250, 0, 3))
    assert split(reply("get") + reply("noop")[:-1]) == ([*frames(reply("get"))], reply("noop")[:-1])


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (reply("get", 1), reply("get"), "get: 0x01 / 0x00"),
        (reply("get", value="a"), reply("get", value="b"), "get 0x00: value"),
        (reply("getq") + reply("noop"), reply("noop"), "getq / noop: one has nothing to say"),
        (reply("get"), b"", "get: answered / not"),
        (reply("get"), reply("get") + b"<EOF>", "<EOF>: not / answered"),
        (reply("set", cas=1), reply("set"), "set 0x00: cas"),
    ],
)
def test_anything_else_is_a_difference_and_has_a_name(left: bytes, right: bytes, kind: str) -> None:
    assert same_frames(left, left, Counted())
    assert not same_frames(left, right, Counted())
    assert explained_frames("", left, right, ()) is None
    assert kind_of_frames("", lines(left, binary=True), lines(right, binary=True), (), Counted()) == kind


def test_a_row_explains_one_field_and_no_other() -> None:
    rows = known_differences.load(["mysql-8.0"])
    requests = "getk key=@>aaaa"
    zeros, record = reply("getk", key="b%00%00", value="v", cas=3), reply("getk", key="b7x", value="v", cas=8)
    assert explained_frames(requests, record, zeros, rows) == ["record-behind-the-key"]
    assert explained_frames("getk key=aaaa", record, zeros, rows) is None
    for other in (
        reply("getk", key="c7x", value="v"),
        reply("getk", key="b7x", value="w"),
        reply("getk", 1, "b7x"),
    ):
        assert explained_frames(requests, other, reply("getk", key="b%00%00", value="v"), rows) is None


@pytest.mark.parametrize(
    ("rule", "words", "safe"),
    [
        (exclusions.LONG_SWITCH_WORD, "set key=@@" + "x" * 248, False),
        (exclusions.LONG_SWITCH_WORD, "set key=@@" + "x" * 247, True),
        (exclusions.VBUCKET_OF_GET, "get key=k vbucket=1; set key=k", False),
        (exclusions.VBUCKET_OF_GET, "get key=k vbucket=1; getk key=k", True),
        (exclusions.VBUCKET_OF_GET, "get key=k vbucket=1; getk key=@@none", False),
        (exclusions.VBUCKET_OF_GET, "get key=@>k vbucket=1; getk key=k", False),
        (exclusions.VBUCKET_OF_GET, "set key=k vbucket=1", True),
        (exclusions.SHORT_APPEND, "append key=k keylen=5", False),
        (exclusions.SHORT_APPEND, "append key=k", True),
        (exclusions.COUNTERS, "stat; stat key=reset", False),
        (exclusions.COUNTERS, "stat key=reset; stat", True),
        (exclusions.SLABS, "stat key=slabs", False),
        (exclusions.SLABS, "stat key=slabs longer=-4", False),
        (exclusions.SLABS, "stat key=sizes", True),
        (exclusions.WELL_FORMED, "incr key=k%ff", False),
        (exclusions.WELL_FORMED, "get key=k%ff", True),
    ],
)
def test_a_rule_of_care_keeps_frames_out(rule: str, words: str, safe: bool) -> None:
    step = Send((words,), (), binary=True)
    assert exclusions.are_safe([step], frozenset({rule})) is safe
    assert exclusions.are_safe([step], frozenset())


def test_a_binary_flush_waits_for_the_other_connections_and_a_bound_for_no_secondary_index() -> None:
    read, flush = (
        templates.request("b", "get a\r\n"),
        Send(("flushq",), (), binary=True),
    )
    assert not exclusions.are_safe([read, flush], frozenset({exclusions.FLUSH_DURING_READS}))
    assert exclusions.are_safe([flush], frozenset({exclusions.FLUSH_DURING_READS}))
    bound, rule = (
        [Send(("getkq key=@<k",), (), binary=True)],
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
    # One of those that no plugin knows may not be drawn: draws depend on constants of the modules that are loaded.
    unknown = {frame.opcode for words in pools.ODD_OPCODES for frame in frames(encode(words))}
    assert not {*OPCODES.values(), 0x83, 0x84, 0x85} - unknown - opcodes.keys()
    assert len(opcodes.keys() & unknown) > len(unknown) / 2
    assert any(isinstance(templates.sent(step), list) for step in steps)
    assert any(step.cuts for step in steps)
    assert {len(frame.key) > 250 for frame in drawn} == {True, False}
    assert any(not frame.key and frame.name == "get" for frame in drawn)
    assert any(frame.lengths[2] < frame.lengths[0] + frame.lengths[1] for frame in drawn)
    assert any(b"\0" in frame.key or b" " in frame.key for frame in drawn)


@pytest.mark.long
def test_mixed_conversations_have_connections_of_both_kinds() -> None:
    kinds = {step.binary for step in talks("mixed", "mysql-8.0", 20)}
    assert kinds == {True, False}
    assert {step.binary for step in talks("text", "mysql-8.0", 5)} == {False}
