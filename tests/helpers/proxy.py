"""A TCP proxy in front of a real server: it cuts a connection at a chosen moment, goes silent, or replies an error."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

# COM_QUERY, and what a node of a Galera cluster answers to whatever comes after it has rolled a transaction back.
_ROLLBACK: Final = b"\x09\x00\x00\x00\x03ROLLBACK"
_TEXT: Final = b"\xff\xbd\x04#40001Deadlock found when trying to get lock; try restarting transaction"
_DEADLOCK: Final = bytes([len(_TEXT), 0, 0, 1]) + _TEXT
PING: Final = b"\x01\x00\x00\x00\x0e"


class Proxy:
    """Forward each connection; `trap` decides at what a client says, once, how its connection ends.

    Args:
        target: host and port of the server.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._trap: tuple[bytes, str] | None = None
        self._refusal = b""  # what a request has in it that gets the next of `_errors`
        self._errors: list[bytes] = []
        self._aborted: set[socket.socket] = set()  # servers whose next answer is replaced
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def trap(self, reply: bytes, how: str) -> None:
        """End the next connection whose client sends this: `before` or `after` the server receives it, or in `silence`.

        `abort` ends only its transaction, as error 1213 does: MySQL's protocol, and the request is not carried out.
        """
        self._trap = (reply, how)

    def refuse(self, request: bytes, *errors: tuple[int, str]) -> None:
        """Reply the next requests that contain this with errors of MySQL, one each; the server does not receive them."""
        self._refusal, self._errors = request, [_error(number, text) for number, text in errors]

    @property
    def refusals(self) -> int:
        """Return how many errors are still to be replied."""
        return len(self._errors)

    def redirect(self, target: tuple[str, int]) -> None:
        """Cut all connections, and forward new ones to another server."""
        self._target = target
        for each in self._open:
            _cut(each)

    @property
    def trapped(self) -> bool:
        """Return whether the client has sent it."""
        return self._trap is None

    def close(self) -> None:
        """Cut everything."""
        _cut(self._listener)
        self._listener.close()
        for each in self._open:
            _cut(each)
        for thread in self._threads:
            thread.join(timeout=10)
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for work, ends in ((self._forward, (client, server)), (self._back, (server, client))):
                    self._threads.append(threading.Thread(target=work, args=ends, daemon=True))
                    self._threads[-1].start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self._errors and self._refusal in data:
                    client.sendall(self._errors.pop(0))
                    continue
                trap = self._trap
                if trap is None or trap[0] not in data:
                    server.sendall(data)
                    continue
                self._trap = None
                if trap[1] == "after":
                    # Its answer must not reach the client.
                    _cut(client)
                    server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    return
                if trap[1] == "abort":
                    self._aborted.add(server)
                    server.sendall(_ROLLBACK)
                    continue
                if trap[1] == "silence":
                    continue
                break
        _cut(client)
        _cut(server)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if server in self._aborted:
                    self._aborted.remove(server)
                    data = _DEADLOCK
                client.sendall(data)
        _cut(client)


def _error(number: int, text: str) -> bytes:
    """Return the packet of an error, as the reply to a request."""
    payload = b"\xff" + number.to_bytes(2, "little") + b"#HY000" + text.encode()
    return len(payload).to_bytes(3, "little") + b"\x01" + payload


def _cut(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy_to(host: str, port: int) -> Iterator[Proxy]:
    """Start a proxy for the block."""
    proxy = Proxy((host, port))
    try:
        yield proxy
    finally:
        proxy.close()
