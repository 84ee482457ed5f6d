"""Lines of touch and the meta commands to commands, whole and byte by byte; what the judge cannot see from outside."""

from __future__ import annotations

import pytest

from kvref import profiles
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.rules import wire_rules
from kvref.protocol.text import TextParser, encode

RULES = {name: wire_rules(profiles.load(name), 1 << 20) for name in ("kvref", "mysql-8.0")}


def parsed(data: bytes, profile: str = "kvref", *, packets: int = 1) -> list[c.Command]:
    parser = TextParser(RULES[profile])
    commands = []
    size = -(-len(data) // packets)
    for start in range(0, len(data), size):
        parser.feed(data[start : start + size])
        while (command := parser.next_command()) is not None:
            commands.append(command)
    assert not parser.closed
    return commands


LINES: list[tuple[bytes, c.Command]] = [
    (b"touch k 5 noreply\r\n", c.Touch(b"k", 5, noreply=True)),
    (b"gats 5 a b\r\n", c.GetAndTouch([b"a", b"b"], 5, with_cas=True)),
    (b"mg k v T5 N6 R7\r\n", c.MetaGet(b"k", [b"v", b"T5", b"N6", b"R7"], 5, 6, 7)),
    (b"ms YQ== 4 b T5 C7 I\r\n\r\n\r\n\r\n", c.MetaSet(b"a", [b"b", b"T5", b"C7", b"I"], "cas", 0, 5, 7, stale=True, data=b"\r\n\r\n")),
    (b"ms k 0 ME C7 F9\r\n\r\n", c.MetaSet(b"k", [b"ME", b"C7", b"F9"], "add", flags=9)),
    (b"ms k 1 MA C7\r\nx\r\n", c.MetaSet(b"k", [b"MA", b"C7"], "append", cas=7, data=b"x")),
    (b"md k C0 I T5\r\n", c.MetaDelete(b"k", [b"C0", b"I", b"T5"], 0, 5, stale=True)),
    (b"ma k M- D5 J6 T8\r\n", c.MetaArithmetic(b"k", [b"M-", b"D5", b"J6", b"T8"], increment=False, delta=5, exptime=8)),
    (b"ma k N7 J6\r\n", c.MetaArithmetic(b"k", [b"N7", b"J6"], initial=6, vivify=7)),
    (b"me AAA= b k\r\n", c.MetaDebug(b"\0\0", [b"b"])),
    (b"mn k\r\n", c.MetaNoop()),
]  # fmt: skip


@pytest.mark.parametrize(("line", "command"), LINES)
def test_a_line_is_a_command_however_it_comes(line: bytes, command: c.Command) -> None:
    for packets in (1, 2, len(line)):
        assert parsed(line + b"version\r\n", packets=packets) == [command, c.Version()]


@pytest.mark.parametrize("line", [line for line, _ in LINES if line.count(b"\r\n") == 1])
def test_the_plugin_knows_none_of_them(line: bytes) -> None:
    assert parsed(line, "mysql-8.0") == [c.Refused(b"ERROR")]


def test_a_long_gat_may_come_in_packets_like_a_get() -> None:
    keys = b" ".join(b"key%d" % number for number in range(500))
    assert parsed(b"gat 5 " + keys + b"\r\n", packets=3) == [c.GetAndTouch(keys.split(), 5, with_cas=False)]


def test_the_data_of_a_line_with_nul_is_thrown_away_where_its_length_is_known() -> None:
    assert parsed(b"ms k 1\0 x\r\nmn\r\n") == [c.Refused(b"CLIENT_ERROR bad command line format"), c.MetaNoop()]
    assert parsed(b"ms k 1 \0\r\nx\r\nmn\r\n") == [c.Refused(b"CLIENT_ERROR bad command line format"), c.MetaNoop()]


@pytest.mark.parametrize(
    ("command", "reply", "line"),
    [
        (c.MetaGet(b"k", [b"q"]), r.Meta(r.MetaCode.MISSED), b""),
        (c.MetaGet(b"k", [b"q"]), r.ServerError("gone"), b"SERVER_ERROR gone\r\n"),
        (c.MetaSet(b"k", [b"q"]), r.Meta(r.MetaCode.DONE), b""),
        (c.MetaSet(b"k", [b"q", b"c", b"k"]), r.Meta(r.MetaCode.NOT_STORED), b"NS c0 kk\r\n"),
        (c.MetaGet(b"\0", [b"k", b"b"]), r.Meta(r.MetaCode.DONE, stale=True, won=True), b"HD kAA== b X W\r\n"),
        (c.MetaGet(b"k", [b"t", b"T5"], 5), r.Meta(r.MetaCode.DONE, r.MetaItem(ttl=5)), b"HD t-1\r\n"),
        (c.MetaNoop(), r.Status.NOOP, b"MN\r\n"),
    ],
)
def test_replies(command: c.Command, reply: r.Reply, line: bytes) -> None:
    assert encode(command, reply) == line
