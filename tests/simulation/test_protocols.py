"""What clients of the simulation send and understand, in three protocols."""

from __future__ import annotations

import struct

import pytest

from kvref_testbed.simulation.plan import Command
from kvref_testbed.simulation.protocols import PROTOCOLS, Item, Reply, WrongReplyError

SET = Command("set", "k0", "100", number=3, exptime=2)
GET, GETS = Command("get", "k0"), Command("gets", "k0")
INCR = Command("incr", "k0", number=7)


def frame(opcode: int, status: int = 0, data: bytes = b"", extras: bytes = b"", cas: int = 0) -> bytes:
    return (
        struct.pack(">BBHBBHIIQ", 0x81, opcode, 0, len(extras), 0, status, len(extras + data), 7, cas) + extras + data
    )


@pytest.mark.parametrize(
    ("protocol", "command", "number", "sent"),
    [
        ("text", SET, 0, b"set k0 3 2 3\r\n100\r\n"),
        ("text", Command("cas", "k0", "1"), 9, b"cas k0 0 0 1 9\r\n1\r\n"),
        ("meta", SET, 0, b"ms k0 3 T2 F3 MS\r\n100\r\n"),
        ("meta", Command("cas", "k0", "1"), 9, b"ms k0 1 T0 F0 MS C9\r\n1\r\n"),
        ("meta", INCR, 0, b"ma k0 MI D7 v\r\n"),
        ("meta", GETS, 0, b"mg k0 v f c\r\n"),
        ("binary", SET, 0, bytes.fromhex("80010002080000000000000d00000007") + bytes(8) + b"\0\0\0\3\0\0\0\2k0100"),
        ("binary", GET, 0, bytes.fromhex("80000002000000000000000200000007") + bytes(8) + b"k0"),
        ("binary", Command("cas", "k0", "1"), 9, bytes.fromhex("80010002080000000000000b00000007") + bytes(7) + b"\x09" + bytes(8) + b"k01"),
    ],
)  # fmt: skip
def test_requests(protocol: str, command: Command, number: int, sent: bytes) -> None:
    assert PROTOCOLS[protocol].request(command, number) == sent


@pytest.mark.parametrize(
    ("protocol", "command", "data", "line", "items"),
    [
        ("text", SET, b"STORED\r\n", b"STORED", None),
        ("text", SET, b"SERVER_ERROR x\r\n", b"SERVER_ERROR x", None),
        ("text", GET, b"END\r\n", b"", {}),
        ("text", GETS, b"VALUE k0 3 3 9\r\n100\r\nEND\r\n", b"", {"k0": Item(b"100", 3, 9)}),
        ("meta", SET, b"HD\r\n", b"STORED", None),
        ("meta", Command("add", "k0", "1"), b"NS\r\n", b"NOT_STORED", None),
        ("meta", Command("touch", "k0"), b"EN\r\n", b"NOT_FOUND", None),
        ("meta", GET, b"EN\r\n", b"", {}),
        ("meta", GET, b"SERVER_ERROR x\r\n", b"SERVER_ERROR x", None),
        ("meta", GETS, b"VA 3 f3 c9\r\n100\r\n", b"", {"k0": Item(b"100", 3, 9)}),
        ("meta", INCR, b"VA 2\r\n17\r\n", b"17", None),
        ("binary", SET, frame(1, cas=9), b"STORED", None),
        ("binary", Command("add", "k0", "1"), frame(2, 2, b"exists"), b"NOT_STORED", None),
        ("binary", Command("replace", "k0", "1"), frame(3, 1, b"absent"), b"NOT_STORED", None),
        ("binary", SET, frame(1, 0x86, b"later"), b"SERVER_ERROR later", None),
        ("binary", GET, frame(0, 1, b"Not found"), b"", {}),
        ("binary", GETS, frame(0, 0, b"100", b"\0\0\0\3", 9), b"", {"k0": Item(b"100", 3, 9)}),
        ("binary", INCR, frame(5, 0, bytes(7) + b"\x11", cas=9), b"17", None),
    ],
)
def test_replies(protocol: str, command: Command, data: bytes, line: bytes, items: dict[str, Item] | None) -> None:
    assert PROTOCOLS[protocol].reply(command, data + b"following") == Reply(len(data), line, items)
    for end in range(len(data)):
        assert PROTOCOLS[protocol].reply(command, data[:end]) is None


@pytest.mark.parametrize(
    ("protocol", "command", "data"),
    [
        ("text", SET, b"DELETED\r\n"),
        ("text", GET, b"VALUE k1 0 1\r\n1\r\nEND\r\n"),
        ("text", GET, b"STORED\r\n"),
        ("meta", SET, b"VA 1 f0\r\n1\r\n"),
        ("meta", GET, b"HD\r\n"),
        ("meta", INCR, b"HD\r\n"),
        ("binary", SET, frame(4)),
        ("binary", SET, frame(1, 4, b"Invalid")),
        ("binary", GET, frame(0, 5)),
    ],
)
def test_replies_that_a_command_cannot_have(protocol: str, command: Command, data: bytes) -> None:
    with pytest.raises(WrongReplyError):
        PROTOCOLS[protocol].reply(command, data)
