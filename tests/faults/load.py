"""Connections that write rows of their own, pipelined, until theirs ends; they know what must be there then.

A connection's commands are carried out in order, so that its rows are those after the first N of its writes, where N lies
between how many were answered and how many were sent.
"""

from __future__ import annotations

import random
import re
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

TEXTS = 4  # keys of text
NUMBERS = 3  # keys of numbers
LONGEST = 900  # bytes of a value; the column takes 1,024
_VALUE = re.compile(rb"VALUE (\S+) \d+ (\d+) (\d+)\r\n")

Rows = dict[str, str]


@dataclass(frozen=True)
class Mix:
    """The commands to send.

    Args:
        depth: maximum number of requests in one write to the socket.
        counts: also increments of a key that all connections share.
        asks: also sends gets, for cas numbers.
    """

    depth: int = 16
    counts: bool = True
    asks: bool = True


@dataclass
class Numbers:
    """The cas numbers that were shown, each with the write whose it is."""

    of: dict[int, tuple[str, int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def contradicts(self, cas: int, key: str, write: int) -> bool:
        """Record a number; return whether it was shown for another write."""
        with self.lock:
            return self.of.setdefault(cas, (key, write)) != (key, write)


class Client(threading.Thread):
    """One connection.

    Args:
        client: its socket, closed at the end.
        name: what its keys begin with.
        seed: of what it writes.
        numbers: cas numbers seen by all.
        mix: what it sends.
    """

    def __init__(self, client: socket.socket, name: str, seed: int, numbers: Numbers, mix: Mix) -> None:
        super().__init__(name=name, daemon=True)
        self._socket = client
        self._in = client.makefile("rb")
        self._random = random.Random(seed)
        self._numbers = numbers
        self._mix = mix
        self._rows: Rows = {}
        self._written_by: dict[str, int] = {}
        self._enough = threading.Event()
        self.steps: list[tuple[str, str | None]] = []
        """What each request makes of which key; SHARED adds one to what all share, and a get changes nothing."""
        self.acknowledged = 0
        self.counted: list[int] = []
        """What its increments of the shared key answered."""
        self.wrong: list[str] = []
        """Answers that are not what they must be."""

    @property
    def shared(self) -> str:
        """Return the key that all connections of its run count on."""
        return f"{self.name.rpartition('.')[0]}.all"

    @property
    def keys(self) -> list[str]:
        """Return all keys of its own."""
        return [
            f"{self.name}.{kind}{number}" for kind, many in (("t", TEXTS), ("n", NUMBERS)) for number in range(many)
        ]

    def stop(self) -> None:
        """Let it end behind its next answer."""
        self._enough.set()

    def run(self) -> None:
        """Write until no answer comes, or until `stop`."""
        with self._socket, self._in:
            while not self._enough.is_set() and self._round():
                pass

    @property
    def written(self) -> int:
        """Return how many of the acknowledged requests were writes."""
        return sum(key != "" for key, _ in self.steps[: self.acknowledged])

    def after(self, count: int) -> Rows:
        """Return its rows after so many requests."""
        rows: Rows = {}
        for key, value in self.steps[:count]:
            if key not in ("", self.shared):
                rows[key] = value or ""
                if value is None:
                    del rows[key]
        return rows

    def shares(self, count: int) -> int:
        """Return how many of its first so many requests count on the shared key."""
        return sum(key == self.shared for key, _ in self.steps[:count])

    def possible(self, rows: Mapping[str, str], batch: int = 1) -> list[int]:
        """Return after how many requests its rows may be these: none where something is lost or torn.

        Args:
            rows: all there are, by key.
            batch: writes that are committed together; what a batch that is not full holds is not there.
        """
        own = {key: rows[key] for key in self.keys if key in rows}
        counts = sorted({count - count % batch for count in range(self.acknowledged, len(self.steps) + 1)})
        return [count for count in counts if self.after(count) == own]

    def _round(self) -> bool:
        queries = [self._next() for _ in range(self._random.randint(1, self._mix.depth))]
        try:
            self._socket.sendall(b"".join(line for line, _ in queries))
            for line, check in queries:
                reply = self._in.readline()
                if reply.startswith(b"VALUE "):
                    reply += self._in.read(int(reply.split()[3]) + len(b"\r\nEND\r\n"))
                if not reply.endswith(b"\r\n") or (reply.startswith(b"VALUE ") and not reply.endswith(b"END\r\n")):
                    return False
                received = check(reply)
                if received:
                    self.wrong.append(f"{line!r}: {reply!r}: {received}")
                self.acknowledged += 1
        except OSError:
            return False
        return True

    def _next(self) -> tuple[bytes, Callable[[bytes], str]]:
        drawn = self._random.random()
        if self._mix.counts and drawn < 0.1:
            self.steps.append((self.shared, None))
            return b"incr %s 1\r\n" % self.shared.encode(), self._take_count
        key = self._random.choice(self.keys)
        if self._mix.asks and drawn < 0.25:
            self.steps.append(("", None))
            return b"gets %s\r\n" % key.encode(), self._checks_value(
                key, self._rows.get(key), self._written_by.get(key)
            )
        line, answer, value = self._write(key)
        self.steps.append((key, value))
        self._written_by[key] = len(self.steps)
        if value is None:
            del self._rows[key]
        else:
            self._rows[key] = value
        return line, lambda reply: "" if reply == answer + b"\r\n" else f"must be {answer!r}"

    def _write(self, key: str) -> tuple[bytes, bytes, str | None]:
        """Draw a write that succeeds; returns the request, its answer and the value that is there then."""
        word, before = key.encode(), self._rows.get(key)
        if before is not None and self._random.random() < 0.15:
            return b"delete %s\r\n" % word, b"DELETED", None
        number = len(self.steps)
        if before is not None and self._random.random() < 0.5:
            if key.rpartition(".")[2].startswith("n"):
                after = str(int(before) + number)
                return b"incr %s %d\r\n" % (word, number), after.encode(), after
            more = f"+{number}"
            if len(before) < LONGEST:
                return b"append %s 0 0 %d\r\n%s\r\n" % (word, len(more), more.encode()), b"STORED", before + more
        filler = "" if key.rpartition(".")[2].startswith("n") else f":{'v' * self._random.randrange(400)}:{number}"
        value = f"{number}{filler}"
        verb = self._random.choice([b"set", b"set", b"replace"]) if before is not None else b"add"
        return b"%s %s 0 0 %d\r\n%s\r\n" % (verb, word, len(value), value.encode()), b"STORED", value

    def _take_count(self, reply: bytes) -> str:
        if not reply.strip().isdigit():
            return "must be a number"
        self.counted.append(int(reply))
        return ""

    def _checks_value(self, key: str, value: str | None, write: int | None) -> Callable[[bytes], str]:
        def check(reply: bytes) -> str:
            if value is None or write is None:
                return "" if reply == b"END\r\n" else "must be a miss"
            head = _VALUE.match(reply)
            if head is None or reply[head.end() :] != value.encode() + b"\r\nEND\r\n":
                return f"must be {value!r}"
            again = self._numbers.contradicts(int(head[3]), key, write)
            return f"cas number {head[3].decode()} was shown for another write" if again else ""

        return check


def lost_counts(clients: Iterable[Client], possible: Mapping[Client, list[int]], total: int) -> list[str]:
    """Return what is wrong with the key that all have counted on.

    Args:
        clients: all that counted.
        possible: see `Client.possible`.
        total: what is there.
    """
    counted = [number for client in clients for number in client.counted]
    least = sum(client.shares(counts[0]) for client, counts in possible.items() if counts)
    most = sum(client.shares(counts[-1]) for client, counts in possible.items() if counts)
    found = [] if len(set(counted)) == len(counted) else ["a number was answered twice"]
    if not least <= total <= most or max(counted, default=0) > total:
        found.append(f"{total} is there: {len(counted)} acknowledged, from {least} to {most} carried out")
    return found


def differences(clients: list[Client], rows: Mapping[str, str], batch: int = 1) -> list[str]:
    """Return what is there and may not be, or is not there and must be.

    Args:
        clients: ended connections of one run.
        rows: all rows, by key.
        batch: see `Client.possible`.
    """
    possible = {client: client.possible(rows, batch) for client in clients}
    found = [f"{client.name}: {wrong}" for client in clients for wrong in client.wrong]
    for client, counts in possible.items():
        if not counts:
            own = {key: rows.get(key) for key in client.keys}
            needed = f"after {client.acknowledged} of {len(client.steps)}: {client.after(client.acknowledged)}"
            found.append(f"{client.name}: {own}, {needed}")
    return found + lost_counts(clients, possible, int(rows.get(clients[0].shared, "0")))


def fetch(client: socket.socket, keys: Iterable[str]) -> Rows:
    """Return the rows of these keys as a server answers them."""
    rows: Rows = {}
    client.sendall(b"get %s\r\n" % " ".join(keys).encode())
    with client.makefile("rb") as replies:
        while (line := replies.readline()) != b"END\r\n":
            assert line.startswith(b"VALUE "), line
            _, key, _, size = line.split()
            rows[key.decode()] = replies.read(int(size)).decode()
            assert replies.read(2) == b"\r\n"
    return rows
