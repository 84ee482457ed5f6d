"""What a parent and a worker say to each other: messages with bounds, and connections that are handed on."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any, Final

_MAX_MESSAGE: Final = 1 << 17  # bytes of a message; the text of an error is cut
_MAX_TEXT: Final = 1 << 14
_CONNECTION: Final = b"c"
SEND_SECONDS: Final = 5.0
LOST: Final = "lost"  # the message for a connection for which this process has no free descriptor


@dataclass(frozen=True, slots=True)
class Handed:
    """A connection that is handed on, and the number of its listener."""

    connection: socket.socket
    listener: int


class Channel:
    """One end of a pair of sockets.

    Args:
        end: a socket that keeps messages apart; not blocking from now on.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        end.settimeout(0)

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._end.fileno()

    def close(self) -> None:
        """Close this end: the other one reads its end."""
        self._end.close()

    def say(self, what: str, text: str = "", settings: dict[str, int] | None = None) -> None:
        """Send a message.

        Raises:
            OSError: the other end is gone, or has not read for SEND_SECONDS.
        """
        self._end.settimeout(SEND_SECONDS)
        try:
            self._end.send(json.dumps([what, text[:_MAX_TEXT], settings or {}]).encode())
        finally:
            self._end.settimeout(0)

    def hand_on(self, connection: socket.socket, listener: int) -> None:
        """Send a connection, which the caller still has to close.

        Args:
            connection: just accepted.
            listener: number of the one that did, below 256.

        Raises:
            OSError: the other end is gone, or is behind.
        """
        socket.send_fds(self._end, [_CONNECTION + bytes([listener])], [connection.fileno()])

    def hear(self) -> tuple[str, str, dict[str, int]] | Handed | None:
        """Return what the other end has sent: what it is about, a text and settings; or a connection; None: nothing.

        Raises:
            EOFError: the other end is gone.
        """
        try:
            data, descriptors, _, _ = socket.recv_fds(self._end, _MAX_MESSAGE, 1)
        except BlockingIOError:
            return None
        except ConnectionResetError as error:  # it ended with something unread
            raise EOFError from error
        if descriptors:
            return Handed(socket.socket(fileno=descriptors[0]), data[1])
        if data[:1] == _CONNECTION:
            return LOST, "", {}  # recvmsg(2) leaves out what there is no descriptor for
        if not data:
            raise EOFError
        message: Any = json.loads(data)
        what, text, settings = message
        return what, text, settings


def pair() -> tuple[Channel, Channel]:
    """Return the two ends of a channel."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(one), Channel(other)
