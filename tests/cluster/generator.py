"""Clients that write numbers through every fault, and know what must be there at any moment."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Protocol

from helpers.waiting import until

UNKNOWN = b"it is not known whether it was written"
KEYS = 4  # of each client
CLIENTS = 6
PATIENCE = 60.0


class Server(Protocol):
    """What a client connects to."""

    def connect(self) -> socket.socket:
        """Open a connection."""


class Writer(threading.Thread):
    """One connection that sets keys of its own to higher and higher numbers, and reads each one back.

    client: its name, the beginning of its keys.
    """

    def __init__(self, server: Server, client: str) -> None:
        super().__init__(daemon=True)
        self._open(server)
        self._next: Server | None = None
        self._keys = [f"{client}.{number}" for number in range(KEYS)]
        self.stopping = False
        self.acknowledged: dict[str, int] = {}
        """The last number by key."""
        self.unknown: dict[str, set[int]] = {key: set() for key in self._keys}
        """Numbers that may have been written after that."""
        self.times: list[float] = []
        """When writes were acknowledged."""
        self.refusals: list[bytes] = []
        """Replies to writes that failed, or whose outcome is unknown."""
        self.wrong: list[str] = []
        """Wrong replies, and closed connections."""

    def run(self) -> None:
        """Write until `stopping`."""
        number = 0
        try:
            while not self.stopping:
                self._move()
                number += 1
                key = self._keys[number % KEYS]
                self._set(key, number)
                self._get(key)
        except OSError as error:
            self.wrong.append(repr(error))
        finally:
            self._replies.close()
            self._connection.close()

    def move(self, server: Server) -> None:
        """Let it use another server from its next command on, and wait for a write there."""
        self._next = server
        until(lambda: self._next is None, seconds=PATIENCE)
        self.wait_for_an_acknowledgement()

    def _move(self) -> None:
        if self._next is not None:
            self._replies.close()
            self._connection.close()
            self._open(self._next)
            self._next = None

    def _open(self, server: Server) -> None:
        self._connection = server.connect()
        self._connection.settimeout(PATIENCE)
        self._replies = self._connection.makefile("rb")

    def _set(self, key: str, number: int) -> None:
        value = b"%d" % number
        reply = self._ask(b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value))
        if reply == b"STORED\r\n":
            self.acknowledged[key] = number
            self.unknown[key].clear()
            self.times.append(time.monotonic())
        elif reply.startswith(b"SERVER_ERROR "):
            self.refusals.append(reply)
            if UNKNOWN in reply:
                self.unknown[key].add(number)
            time.sleep(0.01)  # the next attempt of a client that was refused
        else:
            self.wrong.append(f"set {key}: {reply!r}")

    def _get(self, key: str) -> None:
        reply = self._ask(b"get %s\r\n" % key.encode())
        if reply.startswith(b"SERVER_ERROR "):
            return
        value: int | None = None
        if reply != b"END\r\n":
            value = int(self._replies.readline())
            self._replies.readline()
        if value not in self.allowed(key):
            self.wrong.append(f"get {key}: {value}, allowed are {self.allowed(key)}")

    def _ask(self, request: bytes) -> bytes:
        self._connection.sendall(request)
        reply = self._replies.readline()
        if not reply:
            raise ConnectionError(f"the connection has ended at {request!r}")
        return reply

    def allowed(self, key: str) -> set[int | None]:
        """Return what the row of a key may be."""
        return {self.acknowledged.get(key), *self.unknown[key]}

    def differences(self, rows: dict[str, str]) -> list[str]:
        """Return which rows are not what was acknowledged, nor what may have been written after that."""
        found = {key: int(rows[key]) if key in rows else None for key in self._keys}
        return [
            f"{key} is {value}, allowed are {self.allowed(key)}"
            for key, value in found.items()
            if value not in self.allowed(key)
        ]

    def wait_for_an_acknowledgement(self) -> None:
        """Wait until a write that begins from now on is acknowledged."""
        since = time.monotonic()

        def acknowledged() -> bool:
            assert self.is_alive(), self.wrong
            return bool(self.times) and self.times[-1] > since

        until(acknowledged, seconds=PATIENCE)


@contextmanager
def writing(server: Server, name: str) -> Iterator[list[Writer]]:
    """Write on several connections for the block."""
    writers = [Writer(server, f"{name}{number}") for number in range(CLIENTS)]
    for each in writers:
        each.start()
    try:
        for each in writers:
            each.wait_for_an_acknowledgement()
        yield writers
    finally:
        for each in writers:
            each.stopping = True
        for each in writers:
            each.join(PATIENCE)


def without_service(writers: Iterable[Writer]) -> float:
    """Return the longest time in which no connection got a write acknowledged, in seconds."""
    times = sorted(moment for each in writers for moment in each.times)
    return max(later - earlier for earlier, later in pairwise(times))


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Send a request and return its reply of one line."""
    connection.sendall(request)
    reply = b""
    while not reply.endswith(b"\r\n"):
        more = connection.recv(4096)
        assert more, f"the connection has ended at {request!r}: {reply!r}"
        reply += more
    return reply
