"""A server whose replies are the model's: what it replies in each protocol, and what it says is beyond it."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

from kvref import profiles
from kvref_conformance.traffic.modelled import BEYOND, ModelServer
from kvref_conformance.wire.frames import decode, encode

ERROR = f"SERVER_ERROR {BEYOND.decode()}\r\n"


def talk(requests: Sequence[bytes], profile: str = "kvref", lasts: float = 60.0) -> list[bytes]:
    """Return what comes in reply to each request, up to its end; requests without a reply are sent with the next one."""
    replies = []
    with (
        ModelServer(profiles.load(profile), lasts) as server,
        socket.create_connection(server.address, timeout=5) as connection,
    ):
        for request in requests:
            connection.sendall(request)
            reply = b""
            while not complete(reply):
                data = connection.recv(1 << 16)
                assert data, reply
                reply += data
            replies.append(reply)
    return replies


def complete(reply: bytes) -> bool:
    if reply[:1] == b"\x81":
        return len(reply) >= 24 + int.from_bytes(reply[8:12], "big")
    if reply.startswith(b"VALUE"):
        return reply.endswith(b"END\r\n")
    return reply.endswith(b"\r\n") and not (reply.startswith(b"VA ") and reply.count(b"\r\n") < 2)


def test_the_text_protocol_is_answered() -> None:
    queries = {
        "set k 7 0 3\r\none\r\n": "STORED\r\n",
        "gets k none\r\n": "VALUE k 7 3 1\r\none\r\nEND\r\n",
        "cas k 0 0 1 9\r\nx\r\n": "EXISTS\r\n",
        "cas k 0 0 1 1\r\n5\r\n": "STORED\r\n",
        "set n 0 0 1 noreply\r\n8\r\nincr n 3\r\n": "11\r\n",
        "decr k 9\r\n": "0\r\n",
        "append none 0 0 1\r\nx\r\n": "NOT_STORED\r\n",
        "touch k 0\r\n": "TOUCHED\r\n",
        "gat 0 k\r\n": "VALUE k 0 1\r\n0\r\nEND\r\n",
        "delete k\r\n": "DELETED\r\n",
        "delete k \r\n": ERROR,
        "flush_all\r\n": "OK\r\n",
        "get n\r\n": "END\r\n",
        "version\r\n": ERROR,
    }
    replies = talk([each.encode() for each in queries])
    assert [each.decode() for each in replies] == list(queries.values())


def test_frames_are_answered_with_their_opaque() -> None:
    queries = {
        "set key=k flags=3 opaque=7 value=a b%0d": "set ok opaque=7 cas=1",
        "getk key=k opaque=8": "getk ok opaque=8 cas=1 flags=3 key=k value=a b%0d",
        "set key=k cas=9 value=x": '"Data exists for key"',
        "set key=k cas=1 value=x": "set ok cas=2",
        "getq key=none; setq key=q value=1; incr key=q delta=2 exp=4294967295": "incr ok cas=3 number=3",
        "noop opaque=5": "noop ok opaque=5",
        "delete key=none": '"Not found"',
        "version opaque=4": f'version 0x83 opaque=4 "{BEYOND.decode()}"',
    }
    replies = [decode(each) for each in talk([encode(each) for each in queries])]
    # The numbers that the model gives are its own.
    assert all(reply.endswith(expected) for reply, expected in zip(replies, queries.values(), strict=True)), replies


def test_meta_commands_are_answered_in_the_form_that_the_model_writes() -> None:
    queries = {
        "ms k 3 F5 T0 c\r\none\r\n": "HD c1\r\n",
        "mg k v f c k\r\n": "VA 3 f5 c1 kk\r\none\r\n",
        "mg k s t\r\n": ERROR,
        "ms k 1 F0 T0 C8 c\r\nx\r\n": "EX c",
        "ma n v c D1 N0 J5\r\n": "VA 1 c2\r\n5\r\n",
        "md k\r\n": "HD\r\n",
    }
    replies = [each.decode() for each in talk([each.encode() for each in queries])]
    found = dict(zip(queries, replies, strict=True))
    assert found.pop("ms k 1 F0 T0 C8 c\r\nx\r\n") == ERROR  # the number behind a refusal is not determined
    assert found == {key: value for key, value in queries.items() if key in found}


@pytest.mark.parametrize(
    "store",
    [
        "set k 0 60 1\r\nx\r\n",
        "set k 0 2592001 1\r\nx\r\n",
        f"set k 0 0 {(1 << 20) + 1}\r\n{'v' * ((1 << 20) + 1)}\r\n",
    ],
)
def test_a_key_is_beyond_the_model_until_it_is_set(store: str) -> None:
    other, same = "set k 0 61 1\r\ny\r\n", "get k\r\n"
    replies = talk([each.encode() for each in (store, same, "get other k\r\n", other, same)])
    assert [each.decode() for each in replies] == [ERROR] * 3 + ["STORED\r\n", "VALUE k 0 1\r\ny\r\nEND\r\n"]


@pytest.mark.parametrize("request_", [b"touch k 0\r\n", b"gat 0 k\r\n", b"md k\r\n"])
def test_commands_that_the_plugin_does_not_have_are_beyond_its_model(request_: bytes) -> None:
    assert talk([request_], "mysql-8.0") == [ERROR.encode()]
    assert talk([request_], "memcached") != [ERROR.encode()]


@pytest.mark.parametrize(("profile", "reply"), [("kvref", ERROR), ("memcached", "END\r\n")])
def test_the_names_of_mappings_are_not_in_a_recording(profile: str, reply: str) -> None:
    assert talk([b"get @@aaa.k\r\n"], profile) == [reply.encode()]
