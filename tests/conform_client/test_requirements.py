"""The requirements of a client are well formed, and their faults change what the server sends."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from kvref_conformance.clients import binary, text
from kvref_conformance.clients.faults import Fault
from kvref_conformance.clients.login import Gate
from kvref_conformance.clients.requirements import ALLOWED, LEVELS, PROTOCOLS, RIGHT, Requirement, load
from kvref_conformance.clients.store import Item, Store
from kvref_conformance.clients.tls import CERTIFICATES, RECORDS
from kvref_conformance.wire.frames import HEADER

REQUIREMENTS = load()


@pytest.mark.parametrize("one", REQUIREMENTS, ids=[each.id for each in REQUIREMENTS])
def test_a_requirement_is_well_formed(one: Requirement) -> None:
    assert re.fullmatch(r"KC-[A-Z]+-\d{3}", one.id)
    assert one.level in LEVELS
    assert re.search(rf"\b{one.level}\b", one.statement)
    assert one.statement.endswith(".")
    assert one.source
    assert one.protocols
    assert set(one.protocols) <= set(PROTOCOLS)
    assert len(one.calls) == len(one.right) <= 3
    assert one.allowed
    assert set(one.allowed) <= set(ALLOWED)
    assert not one.tls or one.tls["certificate"] in CERTIFICATES
    assert one.fault is None or one.fault.records in RECORDS
    # An honest server that the client accepts, and that accepts it, must permit the right result.
    refused = one.accepted or one.sends_nothing or one.tls.get("requires_certificate")
    if one.fault is None and not one.whole_keys and not refused:
        assert RIGHT in one.allowed or one.right[-1] == "miss"


def test_there_are_many_and_each_id_is_one() -> None:
    counts = Counter(each.id for each in REQUIREMENTS)
    assert len(counts) >= 100
    assert max(counts.values()) == 1
    for protocol in PROTOCOLS:
        assert sum(protocol in each.protocols for each in REQUIREMENTS) >= 100


def served(part: object, data: bytes, items: dict[bytes, Item], fault: Fault | None = None) -> bytes:
    store, buffer, units = Store(items), bytearray(data), []
    while (command := part.take(buffer)) is not None:  # type: ignore[attr-defined]
        units += part.answer(command, store)  # type: ignore[attr-defined]
    assert not buffer
    return b"".join((fault or Fault()).segments(units))


@pytest.mark.parametrize(
    ("sent", "reply"),
    [
        (b"get a b none\r\n", b"VALUE a 0 3\r\none\r\nVALUE b 7 1\r\n5\r\nEND\r\n"),
        (b"gets a\r\n", b"VALUE a 0 3 9\r\none\r\nEND\r\n"),
        (b"set a 0 0 1\r\nx\r\nget a\r\n", b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"),
        (b"cas a 0 0 1 8\r\nx\r\ncas a 0 0 1 9\r\nx\r\n", b"EXISTS\r\nSTORED\r\n"),
        (b"add a 0 0 1\r\nx\r\nreplace n 0 0 1\r\nx\r\n", b"NOT_STORED\r\nNOT_STORED\r\n"),
        (
            b"append a 0 0 1\r\nx\r\nprepend a 0 0 1\r\ny\r\nget a\r\n",
            b"STORED\r\nSTORED\r\nVALUE a 0 5\r\nyonex\r\nEND\r\n",
        ),
        (b"incr b 3\r\ndecr b 10\r\nincr n 1\r\n", b"8\r\n0\r\nNOT_FOUND\r\n"),
        (b"incr a 3\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        (b"delete a\r\ndelete a\r\n", b"DELETED\r\nNOT_FOUND\r\n"),
        (b"touch a 1\r\ntouch n 1\r\ngat 1 a\r\n", b"TOUCHED\r\nNOT_FOUND\r\nVALUE a 0 3\r\none\r\nEND\r\n"),
        (b"mg a f v c k O1\r\n", b"VA 3 f0 c9 ka O1\r\none\r\n"),
        (b"mg n v q\r\nmg YQ== b k v q\r\nmn\r\n", b"VA 3 b kYQ==\r\none\r\nMN\r\n"),
        (b"ms a 1 T0 F5\r\nx\r\nmg a f v\r\n", b"HD\r\nVA 1 f5\r\nx\r\n"),
        (b"ms a 1 C1\r\nx\r\nms a 1 ME\r\nx\r\nms n 1 MR\r\nx\r\n", b"EX\r\nNS\r\nNS\r\n"),
        (
            b"ma b v D3\r\nma n v\r\nma n N0 J4 v\r\nma b MD D9 v\r\n",
            b"VA 1\r\n8\r\nNF\r\nVA 1\r\n4\r\nVA 1\r\n0\r\n",
        ),
        (b"md a\r\nmd a\r\n", b"HD\r\nNF\r\n"),
        (b"hello\r\n", b"ERROR\r\n"),
    ],
)
def test_the_server_is_honest(sent: bytes, reply: bytes) -> None:
    items = {b"a": Item(b"one", 0, 9), b"b": Item(b"5", 7)}
    assert served(text, sent, items) == reply


def request(opcode: int, key: bytes, extras: bytes = b"", value: bytes = b"", cas: int = 0) -> bytes:
    total = len(extras) + len(key) + len(value)
    return HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, total, b"abcd", cas) + extras + key + value


@pytest.mark.parametrize(
    ("opcode", "more", "status", "value"),
    [
        (0x00, {}, 0, b"one"),
        (0x01, {"extras": bytes(8), "value": b"x"}, 0, b""),
        (0x01, {"extras": bytes(8), "value": b"x", "cas": 8}, 2, b"Data exists for key."),
        (0x02, {"extras": bytes(8), "value": b"x"}, 2, b"Data exists for key."),
        (0x04, {}, 0, b""),
        (0x05, {"extras": bytes(20)}, 6, b"Non-numeric server-side value for incr or decr"),
        (0x77, {}, 0x81, b"Unknown command"),
    ],
)
def test_the_binary_server_is_honest(opcode: int, more: dict[str, bytes], status: int, value: bytes) -> None:
    reply = served(binary, request(opcode, b"a", **more), {b"a": Item(b"one", 3, 9)})
    magic, sent, _, extras, _, found, total, opaque, _ = HEADER.unpack_from(reply)
    assert (magic, sent, found, opaque) == (0x81, opcode, status, b"abcd")
    assert len(reply) == HEADER.size + total
    assert reply[HEADER.size + extras :] == value


def gate(sent: list[bytes], credentials: tuple[str, str]) -> list[bytes]:
    """Return the reply to each command of a connection that requires authentication."""
    one, replies = Gate(credentials), []
    for data in sent:
        is_binary = data[0] == 0x80
        command = (binary if is_binary else text).take(bytearray(data))
        assert command is not None
        _, units = one.answer(command, Store({b"a": Item(b"one")}), is_binary=is_binary)
        replies.append(b"".join(unit.render() for unit in units))
    return replies


def test_a_text_connection_is_open_after_its_credentials() -> None:
    wrong, right = b"set x 0 0 5\r\nu bad\r\n", b"set x 0 0 6\r\nu word\r\n"
    assert gate([b"get a\r\n", wrong, b"get a\r\n", right, b"get a\r\n", right], ("u", "word")) == [
        b"CLIENT_ERROR unauthenticated\r\n",
        b"CLIENT_ERROR authentication failure\r\n",
        b"CLIENT_ERROR unauthenticated\r\n",
        b"STORED\r\n",
        b"VALUE a 0 3\r\none\r\nEND\r\n",
        b"STORED\r\n",
    ]


def test_a_binary_connection_is_open_after_its_credentials() -> None:
    get, plain = request(0x00, b"a"), [request(0x21, b"PLAIN", value=each) for each in (b"\0u\0bad", b"\0u\0word")]
    sent = [request(0x20, b""), get, plain[0], get, request(0x21, b"LOGIN", value=b"\0u\0word"), plain[1], get]
    statuses = [HEADER.unpack_from(each)[5] for each in gate(sent, ("u", "word"))]
    assert statuses == [0, 0x20, 0x20, 0x20, 0x20, 0, 0]
