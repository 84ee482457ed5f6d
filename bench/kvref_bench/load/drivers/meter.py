"""The clock and the counters of a client that gets one key after the other: a thread, or all coroutines of a loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from kvref_bench.load import usage
from kvref_bench.load.channel import Progress
from kvref_bench.load.histogram import add, quantile
from kvref_bench.load.plan import Kind
from kvref_bench.load.recorder import UNEXPECTED, Recorder
from kvref_bench.load.result import Cell, Usage

if TYPE_CHECKING:
    import resource
    from collections.abc import Iterator

    from kvref_bench.load.channel import Channel
    from kvref_bench.load.work import Task

Pair = tuple[str, bytes]  # a key, and the value that must come
Pools = Sequence[Sequence[Pair]]

KINDS: Final = (Kind("get", "hit"), Kind("get", "miss"), Kind("get", "error"))
_SECOND: Final = 1_000_000_000
# Seconds after the end of a second until all sessions are expected to have reported it.
_LATE: Final = 0.25


@dataclass(slots=True)
class Measured:
    """What the sessions of a worker did; see `load.result.WorkerResult` for the fields."""

    began: int
    seconds: float
    usage: Usage
    histograms: dict[Cell, dict[int, int]] = field(default_factory=dict)
    errors: int = 0
    unexpected: list[tuple[bytes, bytes]] = field(default_factory=list)
    stopped: str | None = None


class Window:
    """The point as one worker sees it: its begin, its messages, and its end.

    pause: seconds between two checks of `over`.
    wall: wall clock at the begin of the measured time, ns.
    stopped: why it ended before its time.
    """

    pause: Final = 0.02

    def __init__(self, task: Task, channel: Channel) -> None:
        self._task = task
        self._channel = channel
        self._lock = threading.Lock()
        self._told: dict[int, dict[int, int]] = {}
        self._usage: resource.struct_rusage | None = None
        self._began = 0
        self.wall = 0
        self.stopped: str | None = None

    def ready(self) -> float:
        """Wait for all workers. Returns seconds until they start."""
        return self._channel.ready()

    def start(self) -> int:
        """Begin now. Returns this moment of `perf_counter_ns`."""
        now = perf_counter_ns()
        # Of a number of operations each one counts.
        warmup = 0.0 if self._task.work.operations is not None else self._task.clock.warmup
        self._began = now + int(warmup * _SECOND)
        self.wall = time.time_ns() + int(warmup * _SECOND)
        if not warmup:
            self._usage = usage.now()
        return now

    def over(self) -> bool:
        """Return whether the user ended it; also read the CPU time after the warm-up, and report finished seconds."""
        now = perf_counter_ns()
        if self._usage is None and now >= self._began:
            self._usage = usage.now()
        self._send(now)
        if self._channel.stopped():
            self.stopped = "stopped by the user"
        return self.stopped is not None

    def tell(self, second: int, bins: dict[int, int]) -> None:
        """Take what was counted in a second; from any thread."""
        with self._lock:
            add(self._told.setdefault(second, {}), bins)

    def used(self) -> Usage:
        """Return what this process used in the measured time."""
        return Usage() if self._usage is None else usage.since(self._usage)

    def measured(self, meters: Sequence[Meter]) -> Measured:
        """Put together what each of them counted, when all have finished."""
        used = self.used()
        self.flush()
        done = max(each.done for each in meters)
        stopped = self.stopped or next((each.stopped for each in meters if each.stopped is not None), None)
        measured = Measured(self.wall, max(0, done - self._began) / _SECOND, used, stopped=stopped)
        for each in meters:
            measured.errors += each.recorder.errors
            measured.unexpected += each.recorder.unexpected[: UNEXPECTED - len(measured.unexpected)]
            for cell, bins in each.recorder.cells.items():
                add(measured.histograms.setdefault(cell, {}), bins)
        return measured

    def flush(self) -> None:
        """Report the seconds that were not reported to the coordinator yet."""
        self._send(None)

    def _send(self, now: int | None) -> None:
        with self._lock:
            told = [each for each in self._told if now is None or now > self._began + (each + 1 + _LATE) * _SECOND]
            bins = {second: self._told.pop(second) for second in sorted(told)}
        for second, counts in bins.items():
            count = sum(counts.values())
            progress = Progress(self._task.worker, second, count, 0, quantile(counts, 0.5), quantile(counts, 0.99))
            self._channel.progress(progress)


class Meter:
    """Counts gets by second; called with the time after each get, it detects the end of the warm-up and of the point.

    task: task of the worker. window: receives the counts of each second.

    over: no further get is to be sent.
    boundary: `perf_counter_ns` from which on `turn` must be called.
    done: `perf_counter_ns` when it finished.
    stopped: why it ended early.
    """

    def __init__(self, task: Task, window: Window) -> None:
        self.recorder = Recorder(KINDS)
        self.over = False
        self.boundary = 0
        self.done = 0
        self.stopped: str | None = None
        self._window = window
        self._warmup = 0 if task.work.operations is not None else int(task.clock.warmup * _SECOND)
        self._measure = int(task.clock.measure * _SECOND)
        self._began = 0
        self._second = -1

    def start(self, moment: int) -> None:
        """Begin the warm-up at a moment of `perf_counter_ns`."""
        self._began = moment + self._warmup
        self.boundary = self._began
        if not self._warmup:
            self.turn(moment)

    def hit(self, sent: int, now: int) -> None:
        """Count a get that was answered with the key's value."""
        self.recorder.add(0, now - sent)
        if now >= self.boundary:
            self.turn(now)

    def otherwise(self, key: str, answer: bytes | None, sent: int, now: int) -> None:
        """Count a get that was answered with something else than the key's value; None: nothing."""
        self.recorder.add(1 if answer is None else 2, now - sent)
        if answer is not None:
            self.recorder.refuse(key.encode(), answer)
        if now >= self.boundary:
            self.turn(now)

    def turn(self, now: int) -> None:
        """Put away what was counted in the second that ended, or forget it when it was the warm-up."""
        self._put_away()
        self._second = max(0, (now - self._began) // _SECOND)
        self.over = self.over or now >= self._began + self._measure
        self.boundary = self._began + min((self._second + 1) * _SECOND, self._measure)

    def finish(self, stopped: str | None = None) -> None:
        """Store the remaining counts; no further get is counted.

        stopped: why it ended early.
        """
        self.done = perf_counter_ns()
        self.stopped = stopped
        self._put_away()

    def _put_away(self) -> None:
        if self._second < 0:
            self.recorder.clear()
            return
        together = self.recorder.put_away(self._second)
        if together:
            self._window.tell(self._second, together)


def endless(pool: Sequence[Pair]) -> Iterator[Pair]:
    """Yield a pool's pairs over and over."""
    while True:
        yield from pool
