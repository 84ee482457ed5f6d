"""The binary parser and its replies: frames whole, in pieces, with wrong lengths, and with something behind them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref import profiles
from kvref.protocol import commands as c
from kvref.protocol.binary import BinaryParser, encode
from kvref.protocol.replies import ClientError, Closed, Fault, Item, Items, Number, Reply, ServerError, StatRows, Status
from kvref.protocol.rules import WireRules, wire_rules

LIMIT = 1 << 20
RULES = {name: wire_rules(profiles.load(name), LIMIT) for name in ("kvref", "mysql-8.0", "mysql-5.6")}
OPAQUE = b"\1\2\3\4"
SET, GETK, GETKQ, APPEND, INCR, STAT, TAP, SETQ = 0x01, 0x0C, 0x0D, 0x0E, 0x05, 0x10, 0x40, 0x11


def frame(
    opcode: int, key: bytes = b"", extras: bytes = b"", data: bytes = b"", cas: int = 0, *, body: int | None = None
) -> bytes:
    length = len(extras) + len(key) + len(data) if body is None else body
    head = struct.pack(">BBHBBHI4sQ", 0x80, opcode, len(key), len(extras), 0, 0, length, OPAQUE, cas)
    return head + extras + key + data


def parse(rules: WireRules, pieces: list[bytes]) -> tuple[list[c.Command], bool]:
    parser = BinaryParser(rules)
    commands = []
    for piece in pieces:
        parser.feed(piece)
        while (command := parser.next_command()) is not None:
            commands.append(command)
    return commands, parser.closed


def made(opcode: int, key: bytes = b"", **more: Any) -> c.Frame:
    return c.Frame(opcode, OPAQUE, key, **more)


FLAGS = struct.pack(">II", 7, 9)
NOOP = (c.Noop(frame=made(0x0A)),)


@pytest.mark.parametrize(
    ("data", "command"),
    [
        (frame(GETK, b"a b\0"), c.Get([b"a b\0"], with_cas=True, frame=made(GETK, b"a b\0", with_key=True))),
        (frame(SET, b"k", FLAGS, b"v\r\n"), c.Store("set", b"k", 7, 9, b"v\r\n", frame=made(SET, b"k"))),
        (frame(SETQ, b"k", FLAGS, cas=5), c.Store("cas", b"k", 7, 9, b"", 5, frame=made(SETQ, b"k", quiet=True))),
        (frame(APPEND, b"k", data=b"v", cas=5), c.Store("append", b"k", 0, 0, b"v", 5, frame=made(APPEND, b"k"))),
        (
            frame(INCR, b"k", struct.pack(">QQI", 2, 3, 4)),
            c.Arithmetic(True, b"k", 2, initial=3, exptime=4, frame=made(INCR, b"k")),  # noqa: FBT003
        ),
        (
            frame(INCR, b"k", struct.pack(">QQI", 2, 3, 0xFFFFFFFE)),
            c.Arithmetic(True, b"k", 2, initial=3, exptime=-2, frame=made(INCR, b"k")),  # noqa: FBT003
        ),
        (frame(0x08, extras=b"\0\0\0\5"), c.FlushAll(5, frame=made(0x08))),
        (frame(STAT, b"settings and more"), c.Stats([b"settings"], frame=made(STAT, b"settings and more"))),
        (frame(STAT, b"detail dump"), c.Stats([b"detail", b"dump"], frame=made(STAT, b"detail dump"))),
        (frame(TAP, b"k", b"123", b"4"), c.Refused(b"Not supported", status=0x83, frame=made(TAP))),
        (frame(0x1F, b"k", b"123", b"4"), c.Refused(b"", status=0x81, frame=made(0x1F))),
        (frame(0xF0, b"k"), c.Refused(b"", frame=made(0xF0))),
        (frame(0x83, b"7", b"ac", b"tive"), c.VBucket("set", b"a", b"c7tive", frame=made(0x83))),
        (frame(0x84, b"7"), c.VBucket("get", b"7", frame=made(0x84))),
    ],
)
def test_frames(data: bytes, command: c.Command) -> None:
    rules = RULES["mysql-8.0"]
    behind = frame(0x0A)
    assert parse(rules, [data + behind]) == ([command, *NOOP], False)
    assert parse(rules, [bytes([byte]) for byte in data + behind]) == ([command, *NOOP], False)


def test_touch_is_the_default_profiles_alone() -> None:
    touch = frame(0x1C, b"k", b"\0\0\0\5")
    sent = c.GetAndTouch([b"k"], 5, with_cas=True, frame=made(0x1C, b"k"))
    assert parse(RULES["kvref"], [touch]) == ([sent], False)
    assert parse(RULES["mysql-8.0"], [touch]) == ([c.Refused(b"", status=0x81, frame=made(0x1C))], False)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (frame(GETK), 4),
        (frame(GETK, b"k" * 251), 4),
        (frame(0x1F, b"k" * 251), 4),
        (frame(GETK, b"k", b"1"), 4),
        (frame(GETK, b"k", data=b"v"), 4),
        (frame(SET, b"k", b"1234"), 4),
        (frame(APPEND, b"k", FLAGS), 4),
        (frame(0x0A, data=b"x"), 4),
        (frame(STAT, b"k", b"1"), 4),
        (frame(GETK, b"k", body=0), 0x81),
        (frame(SET, b"k", FLAGS, body=8), 0x81),
    ],
)
def test_wrong_lengths_end_the_connection(data: bytes, status: int) -> None:
    commands, closed = parse(RULES["mysql-8.0"], [data + frame(0x0A)])
    assert [type(each) for each in commands] == [c.Refused]
    assert isinstance(commands[0], c.Refused)
    assert (commands[0].status, closed) == (status, True)


def test_a_header_announces_a_wrong_length_before_its_body_comes() -> None:
    assert parse(RULES["kvref"], [frame(GETK, b"k" * 251)[:24]])[1]


def test_another_magic_ends_the_connection_without_an_answer() -> None:
    assert parse(RULES["kvref"], [frame(0x0A) + b"\x81" + frame(0x0A)[1:]]) == ([*NOOP], True)
    assert parse(RULES["kvref"], [frame(0x0A) + b"get k\r\n"]) == ([*NOOP], False)  # no whole header yet


def test_the_plugin_answers_a_noop_with_the_magic_of_a_reply() -> None:
    noop, get = b"\x81" + frame(0x0A)[1:], b"\x81" + frame(GETK, b"k")[1:]
    assert parse(RULES["mysql-8.0"], [frame(0x0A) + noop]) == ([*NOOP, *NOOP], False)
    assert parse(RULES["mysql-8.0"], [frame(0x0A) + get]) == ([*NOOP], True)


@pytest.mark.parametrize("profile", ["kvref", "mysql-5.6"])
def test_a_value_beyond_the_limit_is_refused_at_once_and_thrown_away(profile: str) -> None:
    size = LIMIT + 1
    refusal = c.Refused(b"Too large", removes=b"k", status=3, frame=made(SET))
    head = frame(SET, b"k", FLAGS, body=9 + size)
    assert parse(RULES[profile], [head]) == ([refusal], False)
    assert parse(RULES[profile], [head + b"v" * size + frame(0x0A)]) == ([refusal, *NOOP], False)


def test_a_body_without_meaning_is_not_kept() -> None:
    parser = BinaryParser(RULES["kvref"])
    parser.feed(frame(0x1F, body=1 << 30))
    for _ in range(64):
        parser.feed(b"x" * (1 << 20))
        assert parser.next_command() is None
        assert parser.pending == 0


def test_a_value_behind_the_name_of_a_statistic_is_read_as_the_next_header() -> None:
    assert parse(RULES["kvref"], [frame(STAT, b"items", data=b"x") + frame(0x0A)])[1]


@given(st.lists(st.binary(max_size=60)), st.sampled_from(sorted(RULES)))
def test_pieces_do_not_matter(pieces: list[bytes], profile: str) -> None:
    pieces = [b"\x80", *pieces]
    assert parse(RULES[profile], pieces) == parse(RULES[profile], [b"".join(pieces)])


requests = st.builds(
    frame, st.integers(0, 255), st.binary(max_size=9), st.binary(max_size=20), st.binary(max_size=9),
    st.integers(0, 3), body=st.none() | st.integers(0, 60),
)  # fmt: skip


@given(st.lists(requests, max_size=8), st.sampled_from(sorted(RULES)))
def test_any_frames_give_commands_or_wait(frames: list[bytes], profile: str) -> None:
    data = b"".join(frames)
    assert parse(RULES[profile], [bytes([byte]) for byte in data]) == parse(RULES[profile], [data])


def reply(
    opcode: int, status: int = 0, extras: bytes = b"", key: bytes = b"", data: bytes = b"", cas: int = 0
) -> bytes:
    length = len(extras) + len(key) + len(data)
    head = struct.pack(">BBHBBHI4sQ", 0x81, opcode, len(key), len(extras), 0, status, length, OPAQUE, cas)
    return head + extras + key + data


HIT = Items([Item(b"k", 2**32 - 1, b"v", 6)], with_cas=True)
MISS = Items([], with_cas=True)
NOT_FOUND = b"Not found"


STORE = c.Store("set", b"k", 0, 0, b"", frame=made(SET))
FAULTS = {
    Fault.NOT_A_NUMBER: 0x06,
    Fault.NOT_STORED: 0x05,
    Fault.NOT_FLUSHED: 0x04,
    Fault.TOO_LARGE: 0x03,
    Fault.OUT_OF_MEMORY: 0x82,
    Fault.UNFIT_TABLE: 0x86,
    Fault.CONFLICT: 0x86,
}


@pytest.mark.parametrize("fault", Fault)
def test_each_fault_has_its_status(fault: Fault) -> None:
    assert STORE.frame is not None
    assert encode(STORE, STORE.frame, ServerError("any text", fault), 0)[6:8] == bytes([0, FAULTS[fault]])


@pytest.mark.parametrize(
    "text",
    [
        "object too large for cache", "failed to store item", "failed to flush cache", "temporary failure",
        "out of memory storing object", "cannot increment or decrement non-numeric value", "lock wait timeout", "deadlock",
    ],
)  # fmt: skip
def test_no_text_chooses_a_status(text: str) -> None:
    assert STORE.frame is not None
    assert encode(STORE, STORE.frame, ServerError(text), 0) == reply(SET, 0x84, data=text.encode())
    assert encode(STORE, STORE.frame, ClientError(text), 0) == reply(SET, 0x04, data=text.encode())


@pytest.mark.parametrize(
    ("command", "answer", "expected"),
    [
        (c.Get([b"k"], with_cas=True, frame=made(0, b"k")), HIT, reply(0, 0, b"\xff" * 4, b"", b"v", 6)),
        (c.Get([b"k"], with_cas=True, frame=made(GETK, b"k", with_key=True)), HIT, reply(GETK, 0, b"\xff" * 4, b"k", b"v", 6)),
        (c.Get([b"k"], with_cas=True, frame=made(0, b"k")), MISS, reply(0, 1, data=NOT_FOUND)),
        (c.Get([b"k"], with_cas=True, frame=made(GETK, b"k", with_key=True)), MISS, reply(GETK, 1, key=b"k")),
        (c.Get([b"k"], with_cas=True, frame=made(GETKQ, b"k", quiet=True, with_key=True)), MISS, b""),
        (c.GetAndTouch([b"k"], 5, with_cas=True, frame=made(0x1C, b"k")), HIT, reply(0x1C, 0, b"\xff" * 4, b"", b"", 6)),
        (c.GetAndTouch([b"k"], 5, with_cas=True, frame=made(0x1D, b"k")), HIT, reply(0x1D, 0, b"\xff" * 4, b"", b"v", 6)),
        (c.Store("set", b"k", 0, 0, b"", frame=made(SET)), Status.STORED, reply(SET, cas=77)),
        (c.Store("set", b"k", 0, 0, b"", frame=made(SETQ, quiet=True)), Status.STORED, b""),
        (c.Store("set", b"k", 0, 0, b"", frame=made(SETQ, quiet=True)), Status.NOT_STORED, reply(SETQ, 5, data=b"Not stored")),
        (c.Store("add", b"k", 0, 0, b"", frame=made(2)), Status.NOT_STORED, reply(2, 2, data=b"Data exists for key")),
        (c.Store("replace", b"k", 0, 0, b"", frame=made(3)), Status.NOT_STORED, reply(3, 1, data=NOT_FOUND)),
        (c.Store("cas", b"k", 0, 0, b"", 1, frame=made(3)), Status.EXISTS, reply(3, 2, data=b"Data exists for key")),
        (c.Delete(b"k", frame=made(4)), Status.DELETED, reply(4)),
        (c.Delete(b"k", frame=made(4)), ServerError("gone", Fault.UNFIT_TABLE), reply(4, 4, data=b"Invalid arguments")),
        (c.Arithmetic(True, b"k", 1, frame=made(5)), Number(258), reply(5, data=b"\0" * 6 + b"\1\2", cas=77)),  # noqa: FBT003
        (
            c.Arithmetic(True, b"k", 1, frame=made(5)),  # noqa: FBT003
            ClientError("no number", Fault.NOT_A_NUMBER),
            reply(5, 6, data=b"Non-numeric server-side value for incr or decr"),
        ),
        (c.FlushAll(frame=made(8)), ServerError("in use", Fault.CONFLICT), reply(8, 0x86, data=b"in use")),
        (c.FlushAll(frame=made(8)), ServerError("disk full"), reply(8, 0x84, data=b"disk full")),
        (c.FlushAll(5, frame=made(8)), ClientError("send 0"), reply(8, 4, data=b"send 0")),
        (c.Stats([], frame=made(STAT)), StatRows([("pid", "1")]), reply(STAT, key=b"pid", data=b"1") + reply(STAT)),
        (c.Stats([b"x"], frame=made(STAT)), Status.ERROR, reply(STAT, 1, data=NOT_FOUND)),
        (c.Quit(frame=made(7)), Closed(), reply(7)),
        (c.Quit(frame=made(0x17, quiet=True)), Closed(), b""),
    ],
)  # fmt: skip
def test_replies(command: c.Command, answer: Reply, expected: bytes) -> None:
    assert command.frame is not None
    assert encode(command, command.frame, answer, 77) == expected
