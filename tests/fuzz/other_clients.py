"""Two clients that do known things on a mapping of their own: what they are answered must never change."""

from __future__ import annotations

import socket
import struct
from typing import Final

NAME: Final = b"neighbour5eb1"  # no message and no change of a few bytes makes it
_HEAD: Final = struct.Struct(">BBHBBHIIQ")


class WrongReplyError(AssertionError):
    """A neighbor received a reply to another request."""


class TextClient:
    """One in the text protocol: stores, reads and counts keys that only it knows.

    Args:
        client: its connection.
    """

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._counted = self.rounds = self.replies = 0
        self._ask(b"bind %b\r\n" % NAME, b"SUCCEED\r\n")
        self._ask(b"set counter 0 0 1\r\n0\r\n", b"STORED\r\n")

    def go_on(self) -> None:
        """Do one round; raises WrongReplyError."""
        self.rounds += 1
        self._counted += 3
        value = b"%d" % self.rounds * (1 + self.rounds % 40)
        key = b"t%d" % (self.rounds % 50)
        self._ask(
            b"set %b %d 0 %d\r\n%b\r\nget %b\r\nincr counter 3\r\nget counter none\r\n"
            % (key, self.rounds % 1000, len(value), value, key),
            b"STORED\r\nVALUE %b %d %d\r\n%b\r\nEND\r\n%d\r\nVALUE counter 0 %d\r\n%d\r\nEND\r\n"
            % (key, self.rounds % 1000, len(value), value, self._counted, len(str(self._counted)), self._counted),
        )
        self.replies += 4

    def _ask(self, request: bytes, expected: bytes) -> None:
        self._client.sendall(request)
        _expect(self._client, request, expected)


class BinaryClient:
    """One in the binary protocol.

    Args:
        client: its connection.
    """

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self.rounds = self.replies = 0
        word = b"@@" + NAME
        client.sendall(_HEAD.pack(0x80, 0x00, len(word), 0, 0, 0, len(word), 1, 0) + word)
        head = _whole(client, 24)
        _whole(client, int.from_bytes(head[8:12]))

    def go_on(self) -> None:
        """Do one round: a quiet set, a get of its key, a noop; raises WrongReplyError."""
        self.rounds += 1
        value, key = b"%d" % self.rounds * 5, b"b%d" % (self.rounds % 50)
        request = (
            _HEAD.pack(0x80, 0x11, len(key), 8, 0, 0, 8 + len(key) + len(value), 2, 0) + bytes(8) + key + value
            + _HEAD.pack(0x80, 0x00, len(key), 0, 0, 0, len(key), 3, 0) + key
        )  # fmt: skip
        self._client.sendall(request)
        head = _whole(self._client, 24)
        expected = struct.pack(">BBHBBHII", 0x81, 0, 0, 4, 0, 0, 4 + len(value), 3)
        if head[:16] != expected:
            raise WrongReplyError(f"to {request!r}: {head!r} and not {expected!r}")
        _expect(self._client, request, bytes(4) + value)
        self.replies += 1


def _expect(client: socket.socket, request: bytes, expected: bytes) -> None:
    answer = _whole(client, len(expected))
    if answer != expected:
        raise WrongReplyError(f"to {request!r}: {answer!r} and not {expected!r}")


def _whole(client: socket.socket, length: int) -> bytes:
    """Return so many bytes, or what came until there were no more in time."""
    answer = b""
    while len(answer) < length:
        try:
            chunk = client.recv(length - len(answer))
        except TimeoutError:
            break
        if not chunk:
            break
        answer += chunk
    return answer
