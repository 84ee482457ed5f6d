"""Connections that write one request at a time through a fault, and go on after it; they know what must be there then."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from faults.description import Fault
from helpers.serving import Served
from helpers.waiting import until_risen
from server.writers import UNKNOWN, ask_line

HANG = 60.0  # seconds after which a request counts as never answered
_RETRY = 0.02  # seconds behind an error

Value = str | None


class Steady(threading.Thread):
    """One connection.

    Args:
        client: its socket.
        name: what its keys begin with.
    """

    def __init__(self, client: socket.socket, name: str) -> None:
        super().__init__(name=name, daemon=True)
        client.settimeout(HANG)
        self._socket = client
        self._random = random.Random(name)
        self._values: dict[str, Value] = {}
        self._names = [f"{name}.{number}" for number in range(5)]
        self._made = len(self._names)
        self._enough = threading.Event()
        self._go = threading.Event()
        self._go.set()
        self.unsure: dict[str, set[Value]] = {}
        """Keys whose last write has an unknown outcome, with both possible values; they are not used any more."""
        self.acknowledged = 0
        self.tried = 0
        self.errors: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.longest = 0.0
        """Seconds of the slowest reply."""
        self.ended = False
        """The server has closed the connection, or did not reply."""

    @property
    def keys(self) -> list[str]:
        """Return all keys that it has written to."""
        return [*self._values, *self.unsure]

    def stop(self) -> None:
        """End behind the next answer."""
        self._enough.set()
        self._go.set()
        self.join(HANG)

    def pause(self) -> None:
        """Send nothing until `go_on`."""
        self._go.clear()

    def go_on(self) -> None:
        """Send again."""
        self._go.set()

    def run(self) -> None:
        """Write until `stop`."""
        with self._socket:
            while not self._enough.is_set() and not self.ended:
                if not self._go.is_set():
                    self._go.wait()
                    continue
                self._write()

    def wrong_rows(self, rows: Mapping[str, str]) -> list[str]:
        """Return what is there and may not be, or is not there and must be."""
        allowed = {key: {value} for key, value in self._values.items()} | self.unsure
        return [f"{key} is {rows.get(key)}: {may}" for key, may in allowed.items() if rows.get(key) not in may]

    def _write(self) -> None:
        key = self._random.choice(self._names)
        line, answer, after = self._next(key, self._values.get(key))
        self.tried += 1
        begun = time.monotonic()
        received = ask_line(self._socket, line)
        self.longest = max(self.longest, time.monotonic() - begun)
        if received == answer:
            self._values[key] = after
            self.acknowledged += 1
            return
        if received is not None and received.startswith(b"SERVER_ERROR"):
            self.errors[received.decode()] += 1
        elif received is None:
            self.ended = True
        else:
            self.wrong.append(f"{line!r}: {received!r} instead of {answer!r}")
        if received is None or UNKNOWN in received:
            self.unsure[key] = {self._values.pop(key, None), after}
            self._names[self._names.index(key)] = f"{self.name}.{self._made}"
            self._made += 1
        self._enough.wait(_RETRY)

    def _next(self, key: str, before: Value) -> tuple[bytes, bytes, Value]:
        word, number = key.encode(), str(self.tried)
        verb = self._random.choice(["set", "incr", "incr", "delete"] if before is not None else ["set", "add"])
        if verb == "incr":
            after = str(int(before or 0) + self.tried)
            return b"incr %s %s\r\n" % (word, number.encode()), after.encode(), after
        if verb == "delete":
            return b"delete %s\r\n" % word, b"DELETED", None
        request = b"%s %s 0 0 %d\r\n%s\r\n" % (verb.encode(), word, len(number), number.encode())
        return request, b"STORED", number


@contextmanager
def writing(served: Served, fault: Fault, clients: int = 4) -> Iterator[list[Steady]]:
    """Write on several connections for the block; none may have been cut off, or answered wrongly, by its end."""
    writers = [Steady(served.connect(), f"w{number}") for number in range(clients)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        for writer in writers:
            writer.stop()
    assert [writer.name for writer in writers if writer.is_alive()] == [], "never answered"
    fault.acknowledged += sum(writer.acknowledged for writer in writers)
    fault.add("refused", sum(sum(writer.errors.values()) for writer in writers))
    fault.add("unknown", sum(len(writer.unsure) for writer in writers))
    fault.most("longest_answer_s", max(writer.longest for writer in writers))
    assert [text for writer in writers for text in writer.wrong] == []
    assert [writer.name for writer in writers if writer.ended] == [], "cut off"


def all_go_on(writers: Iterable[Steady], seconds: float) -> float:
    """Wait until each has written once more; returns after how long the last one had.

    Args:
        writers: all.
        seconds: that this may take.
    """
    begun = time.monotonic()
    until_risen(lambda: [each.acknowledged for each in writers], seconds=seconds)
    return time.monotonic() - begun


def all_fail(writers: Iterable[Steady], seconds: float) -> None:
    """Wait until each was refused once more; as `all_go_on`."""
    until_risen(lambda: [sum(each.errors.values()) for each in writers], seconds=seconds)
