"""A client that runs during the misbehavior of others: its replies are correct and none is missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from faults.description import Fault
from helpers.serving import Served, ask

# A reply that is still missing then is a hang. The longest wait is a figure of the report and no condition: it depends
# on the disk and on what else the machine does.
HANG_SECONDS = 30
_PAUSE = 0.01


class OtherClient(threading.Thread):
    """Writes and reads a row of its own, again and again."""

    def __init__(self, served: Served) -> None:
        super().__init__(daemon=True)
        self._client = served.connect()
        self._client.settimeout(HANG_SECONDS)
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
                output = ask(self._client, b"set beside 0 0 %d\r\n%s\r\nget beside\r\n" % (len(value), value))
                self.longest = max(self.longest, time.monotonic() - begun)
                if output != b"STORED\r\nVALUE beside 0 %d\r\n%s\r\nEND\r\n" % (len(value), value):
                    self.wrong.append(output)
                self.rounds += 1
                self._enough.wait(_PAUSE)

    def stop(self) -> None:
        """End behind the next answer."""
        self._enough.set()
        self.join(60)


@contextmanager
def other_client(served: Served, fault: Fault) -> Iterator[OtherClient]:
    """Run another client during the block, which must have been served well."""
    client = OtherClient(served)
    client.start()
    try:
        yield client
    finally:
        client.stop()
    assert not client.is_alive()
    assert client.wrong == []
    assert client.rounds > 10
    fault.acknowledged += client.rounds
    fault.most("other_client_longest_s", client.longest)
