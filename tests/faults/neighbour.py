"""A client that runs during the misbehavior of others: its replies are correct and fast."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from faults.description import Fault
from helpers.serving import Served, ask

SECOND = 1.0
_PAUSE = 0.01


class Neighbour(threading.Thread):
    """Writes and reads a row of its own, again and again."""

    def __init__(self, served: Served) -> None:
        super().__init__(daemon=True)
        self._client = served.connect()
        self._client.settimeout(30)
        self._enough = threading.Event()
        self.rounds = 0
        self.longest = 0.0
        self.wrong: list[bytes] = []

    def run(self) -> None:
        """Go on until `stop`."""
        with self._client:
            while not self._enough.is_set():
                value = b"%d" % self.rounds
                begun = time.monotonic()
                said = ask(self._client, b"set beside 0 0 %d\r\n%s\r\nget beside\r\n" % (len(value), value))
                self.longest = max(self.longest, time.monotonic() - begun)
                if said != b"STORED\r\nVALUE beside 0 %d\r\n%s\r\nEND\r\n" % (len(value), value):
                    self.wrong.append(said)
                self.rounds += 1
                self._enough.wait(_PAUSE)

    def stop(self) -> None:
        """End behind the next answer."""
        self._enough.set()
        self.join(60)


@contextmanager
def beside(served: Served, fault: Fault) -> Iterator[Neighbour]:
    """Keep a neighbour for the block, which must have been served well."""
    neighbour = Neighbour(served)
    neighbour.start()
    try:
        yield neighbour
    finally:
        neighbour.stop()
    assert not neighbour.is_alive()
    assert neighbour.wrong == []
    assert neighbour.rounds > 10
    assert neighbour.longest < SECOND
    fault.acknowledged += neighbour.rounds
    fault.most("neighbour_longest_s", neighbour.longest)
