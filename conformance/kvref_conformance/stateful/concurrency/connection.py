"""A memcached connection with late replies: sending a request and reading its reply are two calls."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from kvref.addresses import connect
from kvref_conformance.connection import KEPT_BYTES, MAX_ANSWER_BYTES, beyond
from kvref_conformance.errors import CaseFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.endpoint import Endpoint

CONNECT_SECONDS = 5.0


class SocketLine:
    """The `play.Line` of a live endpoint; a sentinel, `version`, ends each answer.

    Raises:
        CaseFailed: the endpoint, which answered before, cannot be reached any more.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        try:
            self._socket = connect(endpoint.address, CONNECT_SECONDS)
        except OSError as error:
            raise CaseFailed(f"cannot connect to {endpoint.where} any more: {error.strerror or error}") from error
        self._sentinel = endpoint.sentinel
        self._data = b""
        self._ended = False
        self._flooded = False

    def ask(self, request: bytes) -> None:
        """Send a request and the sentinel."""
        self.tell(request + b"version\r\n")

    def tell(self, request: bytes) -> None:
        """Send a request that has no answer."""
        with suppress(OSError):  # closed already, which is seen when an answer is read
            self._socket.sendall(request)

    def answer(self, patience: float) -> str | None:
        """Return the reply to the last request; None if it is not complete after this number of seconds."""
        if not self._read_until(lambda: self._data.endswith(self._sentinel), patience):
            return None
        if self._flooded:
            return f"{self._data[:KEPT_BYTES].decode('latin-1')}({beyond(MAX_ANSWER_BYTES)})"
        answer = self._data.removesuffix(self._sentinel).decode("latin-1")
        self._data = b""
        return f"{answer}(connection closed)" if self._ended else answer

    def closes(self, patience: float) -> bool:
        """Shut this side and tell whether the endpoint closes within so many seconds."""
        with suppress(OSError):  # closed already
            self._socket.shutdown(socket.SHUT_WR)
        closed = self._read_until(lambda: False, patience)
        self.close()
        return closed

    def close(self) -> None:
        """Close it at once."""
        self._socket.close()

    def _read_until(self, whole: Callable[[], bool], patience: float) -> bool:
        deadline = time.monotonic() + patience
        while not (self._ended or whole()):
            rest = deadline - time.monotonic()
            if rest <= 0 or not select.select([self._socket], [], [], rest)[0]:
                return False
            try:
                received = self._socket.recv(1 << 16)
            except ConnectionError:
                received = b""
            self._data += received
            self._flooded = len(self._data) > MAX_ANSWER_BYTES
            self._ended = not received or self._flooded
            if self._flooded:
                self.close()
        return True
