"""A socket that gives up an answer which exceeds a limit: pymemcache reads until a line or a value ends."""

from __future__ import annotations

import socket

from kvref.client.errors import InvalidReplyError


class LimitedSocket:
    """A connected socket whose answers are limited in bytes.

    Args:
        connected: the socket, or one with TLS.
        name: of the server, for errors.
        max_answer: maximum number of bytes received between two requests.
    """

    def __init__(self, connected: socket.socket, name: str, max_answer: int) -> None:
        self._connected = connected
        self._name = name
        self._max_answer = max_answer
        self._received = 0

    def sendall(self, data: bytes) -> None:
        """Send a request; raises OSError."""
        self._received = 0
        self._connected.sendall(data)

    def recv(self, size: int) -> bytes:
        """Return bytes of the answer, b"" at the end of the connection.

        Raises:
            InvalidReplyError: the answer exceeds the limit.
            OSError: nothing came in time, or the connection is broken.
        """
        data = self._connected.recv(size)
        self._received += len(data)
        self.expect(0)
        return data

    def expect(self, size: int) -> None:
        """Raise InvalidReplyError if the answer exceeds the limit after as many bytes more."""
        if self._received + size > self._max_answer:
            raise InvalidReplyError(
                f"{self._name}: the answer cannot be read: it has more than {self._max_answer} bytes"
            )

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._connected.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._connected.close()
