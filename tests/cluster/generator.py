"""Clients that write numbers through every fault, and know what must be there at any moment."""

from __future__ import annotations

import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Sequence
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


class NumberWriter(threading.Thread, ABC):
    """One connection that sets its own keys to higher and higher numbers.

    client: its name, the beginning of its keys.
    """

    def __init__(self, client: str) -> None:
        super().__init__(daemon=True)
        self._keys = [f"{client}.{number}" for number in range(KEYS)]
        self.stopping = False
        self.acknowledged: dict[str, int] = {}
        """The last number by key."""
        self.unknown: dict[str, set[int]] = {key: set() for key in self._keys}
        """Numbers that may have been written after that."""
        self.times: list[float] = []
        """When writes were acknowledged."""
        self.times_of: dict[str, list[float]] = {key: [] for key in self._keys}
        """When writes of each key were acknowledged."""
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
            self._close()

    def _move(self) -> None:
        """Use another server from now on, if the test has set one."""

    @abstractmethod
    def _set(self, key: str, number: int) -> None:
        """Write a number."""

    @abstractmethod
    def _get(self, key: str) -> None:
        """Read a key."""

    @abstractmethod
    def _close(self) -> None:
        """Close the connection."""

    def _acknowledge(self, key: str, number: int) -> None:
        self.acknowledged[key] = number
        self.unknown[key].clear()
        now = time.monotonic()
        self.times.append(now)
        self.times_of[key].append(now)

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


class Writer(NumberWriter):
    """A memcached client, which reads each number back.

    client: its name, the beginning of its keys.
    """

    def __init__(self, server: Server, client: str) -> None:
        super().__init__(client)
        self._open(server)
        self._next: Server | None = None

    def move(self, server: Server) -> None:
        """Let it use another server from its next command on, and wait for a write there."""
        self._next = server
        until(lambda: self._next is None, seconds=PATIENCE)
        self.wait_for_an_acknowledgement()

    def _move(self) -> None:
        if self._next is not None:
            self._close()
            self._open(self._next)
            self._next = None

    def _open(self, server: Server) -> None:
        self._connection = server.connect()
        self._connection.settimeout(PATIENCE)
        self._replies = self._connection.makefile("rb")

    def _close(self) -> None:
        self._replies.close()
        self._connection.close()

    def _set(self, key: str, number: int) -> None:
        value = b"%d" % number
        reply = self._ask(b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value))
        if reply == b"STORED\r\n":
            self._acknowledge(key, number)
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


@contextmanager
def writing(server: Server, name: str) -> Iterator[list[Writer]]:
    """Write on several connections for the block."""
    writers = [Writer(server, f"{name}{number}") for number in range(CLIENTS)]
    with started(writers):
        yield writers


@contextmanager
def started(writers: Sequence[NumberWriter]) -> Iterator[None]:
    """Let some write for the block, which begins when each has written."""
    for each in writers:
        each.start()
    try:
        for each in writers:
            each.wait_for_an_acknowledgement()
        yield
    finally:
        for each in writers:
            each.stopping = True
        for each in writers:
            each.join(PATIENCE)


def without_service(writers: Iterable[NumberWriter], keys: Container[str] | None = None) -> float:
    """Return the longest time in which no connection got a write acknowledged, in seconds; of these keys only."""
    times = sorted(
        moment
        for each in writers
        for key, moments in each.times_of.items()
        if keys is None or key in keys
        for moment in moments
    )
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
