"""Connections that send random commands for common keys, and record what was replied."""

from __future__ import annotations

import random
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from consistency.histories import History, Operation

UNKNOWN = b"it is not known whether it was written"
REPLY_SECONDS = 20.0  # after which a reply counts as lost
LATE_SECONDS = 1.0
_READS = ("get", "gets")
_RETRY = 0.01  # seconds
_PAUSE = 0.01  # seconds between two commands of a connection, on average
_LONGEST = 900  # bytes of a value that is appended to: the column takes 1,024 characters
_VALUE = re.compile(rb"VALUE \S+ \d+ (\d+)(?: (\d+))?\r\n")

# Kinds of keys by their first letter, each with commands and their weights.
REGISTER, NUMBER, LIST = "r", "n", "l"
_COMMANDS: dict[str, dict[str, int]] = {
    REGISTER: {"get": 40, "set": 25, "cas": 20, "add": 5, "delete": 10},
    NUMBER: {"get": 50, "incr": 50},
    LIST: {"get": 50, "append": 50},
}


class Client(threading.Thread):
    """Sends commands one by one, over a new connection each time that one ends.

    Args:
        number: of the client.
        connect: opens a connection; OSError: not just now.
        keys: begin with the letters of their kinds.
        history: takes the commands that may have had an effect.
    """

    def __init__(
        self, number: int, connect: Callable[[], socket.socket], keys: Sequence[str], history: History
    ) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self._number = number
        self._connect = connect
        self._keys = keys
        self._history = history
        self._random = random.Random(f"{number} {keys[0]}")
        self._socket: socket.socket | None = None
        self._opened = 0  # connections
        self._made = 0  # values
        self._full: set[str] = set()  # keys that are not appended to any more
        self._enough = threading.Event()
        self.acknowledged = 0
        self.refused = 0
        self.wrong: list[str] = []
        """Replies that no command has."""
        self.late: list[tuple[float, str]] = []
        """Commands that were refused, had no reply or took long: when each was sent (monotonic clock), and the rest."""

    def run(self) -> None:
        """Send commands until `stop`."""
        while not self._enough.is_set():
            key = self._random.choice(self._keys)
            kinds = _COMMANDS[key[0]]
            (kind,) = self._random.choices([*kinds], [*kinds.values()])
            if key in self._full:
                kind = "get"
            done = self._cas(key) if kind == "cas" else self.do(key, kind)
            self._enough.wait(self._random.uniform(0, 2 * _PAUSE) if done else _RETRY)
        self.close()

    def stop(self) -> None:
        """End after the next reply."""
        self._enough.set()
        self.join(2 * REPLY_SECONDS)
        assert not self.is_alive(), f"{self.name} has no reply"

    def close(self) -> None:
        """Close its connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def do(self, key: str, kind: str, argument: str | None = None) -> bool:
        """Send a command with a new value, or a given one; return whether it was carried out."""
        if argument is None:
            argument = self._argument(kind)
        line = f"{kind} {key}"
        if kind == "incr":
            line += f" {argument}"
        elif kind in ("set", "add", "append"):
            line += f" 0 0 {len(argument)}\r\n{argument}"
        return self._send(self._operation(key, kind, argument), f"{line}\r\n".encode()) is not None

    def _cas(self, key: str) -> bool:
        reply = self._send(self._operation(key, "gets"), f"gets {key}\r\n".encode())
        if reply is None:
            return False
        found = _VALUE.match(reply)
        if found is None:
            return True
        value = reply[found.end() : found.end() + int(found[1])].decode()
        new = self._argument("cas")
        line = f"cas {key} 0 0 {len(new)} {int(found[2])}\r\n{new}\r\n"
        return self._send(self._operation(key, "cas", new, value), line.encode()) is not None

    def _operation(self, key: str, kind: str, argument: str = "", expected: str = "") -> Operation:
        if self._socket is None:
            with suppress(OSError):
                self._socket = self._connect()
                self._opened += 1
        return Operation(self._number, self._opened, key, kind, argument, expected)

    def _argument(self, kind: str) -> str:
        if kind in (*_READS, "delete"):
            return ""
        self._made += 1
        return str(self._made) if kind == "incr" else f",{self._number}.{self._made}"

    def _send(self, operation: Operation, request: bytes) -> bytes | None:
        """Send a request and note its operation; return the reply of one that was carried out."""
        client = self._socket
        if client is None:
            return None
        client.settimeout(REPLY_SECONDS)
        called = time.monotonic_ns()
        try:
            client.sendall(request)
            reply = _reply(client)
        except (OSError, EOFError) as error:
            self.close()
            self._note(operation, called, None)
            self._note_late(called, request, repr(error))
            return None
        if reply.startswith(b"SERVER_ERROR") or time.monotonic_ns() - called > LATE_SECONDS * 1e9:
            self._note_late(called, request, _text(reply))
        if reply.startswith(b"SERVER_ERROR"):
            self.refused += 1
            if UNKNOWN in reply:
                self._note(operation, called, None)
            return None
        self._note(operation, called, reply)
        self.acknowledged += 1
        if len(reply) > _LONGEST:
            self._full.add(operation.key)
        return reply

    def _note_late(self, called: int, request: bytes, reply: str) -> None:
        sent = called / 1e9
        took = time.monotonic() - sent
        self.late.append((sent, f"{self.name}: {request.decode().splitlines()[0]}: {took:.2f} s: {reply[:200]}"))

    def _note(self, operation: Operation, called: int, reply: bytes | None) -> None:
        """Note an operation; a read without a reply is left out."""
        if reply is None and operation.kind in _READS:
            return
        returned = None if reply is None else time.monotonic_ns()
        text = "" if reply is None else _text(reply)
        self._history.add(replace(operation, reply=text, called=called, returned=returned))
        if text.startswith(("ERROR", "CLIENT_ERROR")):
            self.wrong.append(f"{operation}: {text}")


def _reply(client: socket.socket) -> bytes:
    """Return a reply of one line, or of one item and END.

    Raises:
        EOFError: the connection has ended.
    """
    reply = b""
    while not (reply.endswith(b"\r\n") and (not reply.startswith(b"VALUE") or reply.endswith(b"\r\nEND\r\n"))):
        more = client.recv(65536)
        if not more:
            raise EOFError
        reply += more
    return reply


def _text(reply: bytes) -> str:
    """Return a reply as the checker knows it: VALUE and the value, or the line."""
    found = _VALUE.match(reply)
    if found is None:
        return reply.decode().strip()
    return f"VALUE {reply[found.end() : found.end() + int(found[1])].decode()}"


def read_all(connect: Callable[[], socket.socket], keys: Sequence[str], history: History, number: int) -> None:
    """Read each key by each command that reads, when no other command is on its way."""
    reader = Client(number, connect, keys, history)
    deadline = time.monotonic() + 3 * REPLY_SECONDS
    for key in keys:
        for kind in _READS:
            while not reader.do(key, kind):
                assert time.monotonic() < deadline, f"{key} cannot be read"
                time.sleep(_RETRY)  # the next attempt of a client that was refused
    reader.close()
