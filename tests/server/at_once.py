"""Many clients whose requests reach kvref in one tick: it is stopped while they send."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from serving import Served

_WHOLE = re.compile(rb"(?:VALUE [^\r]*\r\n.*)?END\r\n|(?!VALUE)[^\r]*\r\n", re.DOTALL)


class Crowd:
    """So many connections to one server."""

    def __init__(self, served: Served, clients: int) -> None:
        self._served = served
        self._stack = ExitStack()
        self.clients = [self._stack.enter_context(served.connect()) for _ in range(clients)]
        for each in self.clients:
            each.sendall(b"version\r\n")  # accepted, and all its first costs paid
            answer(each)

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def send(self, requests: Sequence[bytes]) -> None:
        """Send one request on each of the first connections; kvref sees all of them at once."""
        os.kill(self._served.process.pid, signal.SIGSTOP)
        try:
            for client, request in zip(self.clients, requests, strict=False):
                client.sendall(request)
        finally:
            os.kill(self._served.process.pid, signal.SIGCONT)

    def ask(self, requests: Sequence[bytes]) -> list[bytes]:
        """Send, and return the replies in order."""
        assert len(requests) <= len(self.clients)
        self.send(requests)
        return [answer(client) for client in self.clients[: len(requests)]]


def answer(client: socket.socket) -> bytes:
    """Return one whole reply."""
    reply = b""
    while not _WHOLE.fullmatch(reply):
        chunk = client.recv(65536)
        assert chunk, f"the connection was closed behind {reply!r}"
        reply += chunk
    return reply
