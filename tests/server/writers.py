"""Clients that write until their connection or the database goes, and know what must be there then."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

UNKNOWN = b"it is not known whether it was written"
SHARED = "all"
KEYS = 5  # few, so that every verb meets rows and gaps


def ask_line(client: socket.socket, line: bytes) -> bytes | None:
    """Send a request and return the line that answers it, None where the connection has ended."""
    reply = b""
    try:
        client.sendall(line)
        while not reply.endswith(b"\r\n"):
            chunk = client.recv(4096)
            if not chunk:
                return None
            reply += chunk
    except OSError:
        return None
    return reply.removesuffix(b"\r\n")


@dataclass
class Writer(threading.Thread):
    """One connection that writes its own keys and counts with the others on one key.

    Args:
        client: the connection.
        name_of_keys: what its keys begin with.
        seed: of what it writes.
        shared: the key that all count on.
    """

    client: socket.socket
    name_of_keys: str
    seed: int
    shared: str
    acknowledged: int = 0
    counted: list[int] = field(default_factory=list)
    """What its increments of the shared key answered."""
    values: dict[str, str | None] = field(default_factory=dict)
    """By key: what was acknowledged last, None: deleted."""
    unknown: tuple[str, str | None] | None = None
    """The last write, if it was never answered: key, and its value if the write was carried out."""
    wrong: list[str] = field(default_factory=list)
    """Answers that contradict what was acknowledged before."""

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self._random = random.Random(self.seed)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        """Write until an answer is an error or none comes."""
        while self._write():
            self.acknowledged += 1

    def _write(self) -> bool:
        if self._random.random() < 0.2:
            return self._count()
        key = f"{self.name_of_keys}.{self._random.randrange(KEYS)}"
        before = self.values.get(key)
        number = str(self._random.randrange(10**6))
        verb = self._random.choice(["set", "set", "add", "incr", "delete"])
        after: str | None = number
        if verb in ("set", "add"):
            line = f"{verb} {key} 0 0 {len(number)}\r\n{number}\r\n"
            expected = "STORED" if verb == "set" or before is None else "NOT_STORED"
            after = number if expected == "STORED" else before
        elif verb == "incr":
            line = f"incr {key} {number}\r\n"
            after = None if before is None else str(int(before) + int(number))
            expected = after or "NOT_FOUND"
        else:
            line, after = f"delete {key}\r\n", None
            expected = "NOT_FOUND" if before is None else "DELETED"
        answer = ask_line(self.client, line.encode())
        if answer is None or answer.startswith(b"SERVER_ERROR"):
            # An error that does not say so promises that nothing was written.
            self.unknown = (key, after) if answer is None or UNKNOWN in answer else None
            return False
        if answer != expected.encode():
            self.wrong.append(f"{line!r}: {answer!r} instead of {expected}")
        self.values[key] = after
        return True

    def _count(self) -> bool:
        answer = ask_line(self.client, f"incr {self.shared} 1\r\n".encode())
        if answer is None or not answer.isdigit():
            self.unknown = (self.shared, None) if answer is None or UNKNOWN in answer else None
            return False
        self.counted.append(int(answer))
        return True


def differences(writers: Iterable[Writer], shared: str, rows: Mapping[str, str]) -> list[str]:
    """Compare rows with what was acknowledged: every value is there, and nothing else but a last write.

    Args:
        writers: all that wrote, ended.
        shared: the key that they counted on, from 0.
        rows: values by key, as SQL sees them.
    """
    found: list[str] = []
    left = dict(rows)
    counted: list[int] = []
    open_counts = 0
    for writer in writers:
        found += writer.wrong
        counted += writer.counted
        open_counts += writer.unknown is not None and writer.unknown[0] == shared
        for number in range(KEYS):
            key = f"{writer.name_of_keys}.{number}"
            allowed = {writer.values.get(key)}
            if writer.unknown is not None and writer.unknown[0] == key:
                allowed.add(writer.unknown[1])
            if left.get(key) not in allowed:
                found.append(f"{key} is {left.get(key)}, acknowledged were {allowed}")
            left.pop(key, None)
    if len(set(counted)) != len(counted):
        found.append(f"{shared}: a number was answered twice")
    total = int(left.pop(shared, "0"))
    if not len(counted) <= total <= len(counted) + open_counts or max(counted, default=0) > total:
        found.append(f"{shared} is {total}: {len(counted)} acknowledged, {open_counts} unknown")
    return found + [f"{key} is {value}, and nobody wrote it" for key, value in left.items()]
