"""Durations of commands, from the start of each to the sending of its reply.

They are measured only while metrics are served. A command that gets no reply (noreply, a quiet opcode without an error)
is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from kvref.protocol.command_table import TIMED
from kvref.server.telemetry.histogram import Histogram, cells_of
from kvref.server.workers.shared_memory import CELL, anonymous

# Upper bounds of the classes, in seconds.
COMMAND_BOUNDS: Final = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip


class CommandDurations:
    """The durations of the commands of one process, by the values of the label `command`.

    Attributes:
        of: the histogram of each name of `TIMED`.
        observe: counts a duration in seconds, by the same names.
    """

    def __init__(self) -> None:
        size = cells_of(COMMAND_BOUNDS)
        cells = anonymous(len(TIMED) * size * CELL).cast("Q")
        self.of = {
            name: Histogram(cells[number * size : (number + 1) * size], COMMAND_BOUNDS)
            for number, name in enumerate(TIMED)
        }
        self.observe = {name: histogram.observe for name, histogram in self.of.items()}


class CommandTimes:
    """Measures the commands of one connection.

    Args:
        durations: counts them.
    """

    __slots__ = ("_observe", "_queued", "_started")

    def __init__(self, durations: CommandDurations) -> None:
        self._observe = durations.observe
        self._started = 0.0
        self._queued: list[tuple[str, float]] = []  # of the replies that are not sent yet, in their order

    def start(self) -> None:
        """Record that the next command, or commands that are run together, begin now."""
        self._started = time.perf_counter()

    def replied(self, names: Iterable[str]) -> None:
        """Count commands whose replies are sent next, all of them started together."""
        seconds = time.perf_counter() - self._started
        for name in names:
            self._observe[name](seconds)

    def queue(self, names: Sequence[str]) -> None:
        """Record that the replies to these commands are in the reply queue."""
        self._queued += [(name, self._started) for name in names]

    def sending(self, count: int) -> None:
        """Count the commands of the oldest replies of the queue, which are sent next."""
        now = time.perf_counter()
        for name, started in self._queued[:count]:
            self._observe[name](now - started)
        del self._queued[:count]
