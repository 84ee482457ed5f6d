"""The CPU time of a server's processes between two moments."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

import psutil

from kvref_bench.turns import cpus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from kvref_bench.load.channel import Progress


class Readings:
    """Reads at `begin` and at `end`; children belong to their process.

    pids: by name.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def begin(self) -> None:
        """Read the first time."""
        self._first = self._read()

    def end(self) -> None:
        """Read the last time."""
        self._last = self._read()

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def used(self) -> dict[str, float]:
        """Return the CPU seconds in between, by name."""
        return {name: self._last[name] - self._first[name] for name in self._pids}

    def _read(self) -> dict[str, float]:
        return {name: sum(map(_seconds, cpus.tree([pid]))) for name, pid in self._pids.items()}


class Onlooker:
    """A `coordinator.Watch` that ends a measurement soon after an answer that is not allowed."""

    def __init__(self) -> None:
        self._errors = False

    def going(self, seconds: float) -> None:
        """See `coordinator.Watch`."""

    def progress(self, what: Progress) -> None:
        """See `coordinator.Watch`."""
        self._errors = self._errors or what.errors > 0

    def stopping(self) -> bool:
        """See `coordinator.Watch`."""
        return self._errors


class Timed(Onlooker):
    """Reads when the warm-up ends and when the measured time does; both are done, or given up, when the block ends.

    warmup, measure: seconds.
    """

    def __init__(self, readings: Readings, warmup: float, measure: float) -> None:
        super().__init__()
        self._readings = readings
        self._warmup = warmup
        self._measure = measure
        self._timers: list[threading.Timer] = []

    def going(self, seconds: float) -> None:
        """See `coordinator.Watch`."""
        first = threading.Timer(seconds + self._warmup, self._readings.begin)
        last = threading.Timer(seconds + self._warmup + self._measure, self._readings.end)
        self._timers = [first, last]
        for each in self._timers:
            each.daemon = True
            each.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for each in self._timers:
            if kind is not None:
                each.cancel()
            each.join()


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
