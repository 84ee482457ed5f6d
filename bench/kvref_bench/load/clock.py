"""The clock of one load worker and its line to the coordinator: what its sessions counted becomes its result.

The line has JSON lines over TCP. The worker says hello, ready, then once a second what it did; the coordinator says go,
and stop when the user does.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import select
import socket
import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, Protocol, Self

import psutil

from kvref.errors import cause_of
from kvref_bench.errors import BenchError
from kvref_bench.load.records import Progress, Usage, WorkerResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from kvref_bench.load.session import Crowd
    from kvref_bench.load.work import Task

_CONNECT_SECONDS: Final = 10.0
PATIENCE: Final = 600.0  # for the slowest of the other workers to be ready
_TICK: Final = 0.02  # seconds between looks at the channel and at what is still running
_PATIENCE: Final = 10_000_000  # ns for the whole of an expected reply


class Channel:
    """A worker's end; a context manager. Raises BenchError if the coordinator is not reachable.

    task: has the address and the token.
    """

    def __init__(self, task: Task) -> None:
        host, _, port = task.control.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS)
        except OSError as error:
            raise BenchError(
                f"the worker {task.worker} does not reach the coordinator at {task.control}: {cause_of(error)}; "
                "give an address that it reaches with --control-host"
            ) from error
        self._rest = b""
        self._stopped = False
        self._say({"hello": task.token, "worker": task.worker})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def ready(self) -> float:
        """Say that all is prepared and wait until all workers are.

        Returns:
            Seconds until the common start. Raises BenchError when the coordinator gave up.
        """
        self._say({"ready": True})
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for message in self._receive(0.5):
                if "go" in message:
                    return float(message["go"])
            if self._stopped:
                break
        raise BenchError("the point was given up before all workers were ready")

    def stopped(self) -> bool:
        """Return whether the coordinator said stop or is gone."""
        self._receive(0)
        return self._stopped

    def progress(self, what: Progress) -> None:
        """Report the progress to the coordinator."""
        self._say(asdict(what))

    def _say(self, message: dict[str, object]) -> None:
        # A coordinator that is gone is noticed by `stopped`; what was measured is still given back.
        with suppress(OSError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _receive(self, seconds: float) -> list[dict[str, float]]:
        messages: list[dict[str, float]] = []
        while not self._stopped and select.select([self._socket], [], [], 0 if messages else seconds)[0]:
            try:
                data = self._socket.recv(4096)
            except OSError:
                data = b""
            if not data:
                self._stopped = True
                break
            *lines, self._rest = (self._rest + data).split(b"\n")
            messages += [json.loads(line) for line in lines]
        self._stopped = self._stopped or any("stop" in message for message in messages)
        return messages


class Timed(Protocol):
    """A session as the clock sees it."""

    def start(self) -> None:
        """Send the first request."""

    def open(self) -> int:
        """Return the number of operations without an answer."""

    def take_pieces(self, before: int) -> None:
        """See `load.session.Session`; called only if replies are of several operations."""


async def run_clock(task: Task, channel: Channel, crowd: Crowd, sessions: Sequence[Timed]) -> WorkerResult:
    """Let the sessions of a worker run for the warm-up and the measured time, in the running loop."""
    await asyncio.sleep(channel.ready())
    clock, recorder = task.clock, crowd.recorder
    start = time.perf_counter_ns()
    for each in sessions:
        each.start()
    sender = asyncio.create_task(crowd.send(start))
    point = _Point(channel, crowd, sessions)
    # Of a number of operations each one counts.
    if task.work.operations is None:
        await point.until(start + int(clock.warmup * 1e9))
        recorder.clear()
    began, wall = time.perf_counter_ns(), time.time_ns()
    before = resource.getrusage(resource.RUSAGE_SELF)
    second = 0
    while not crowd.over:
        ends = min(second + 1, clock.measure)
        await point.until(began + int(ends * 1e9))
        if not point.going() or ends == clock.measure:
            crowd.over = True
            done = crowd.done if crowd.running == 0 else time.perf_counter_ns()
        errors, counts = recorder.errors, recorder.put_away(second)
        channel.progress(Progress(task.worker, second, sum(counts.values()), errors))
        second += 1
    # Before the loop runs again: otherwise it would receive replies that are not counted.
    open_now = sum(each.open() for each in sessions)
    used = resource.getrusage(resource.RUSAGE_SELF)
    await sender
    return WorkerResult(
        worker=task.worker,
        host=socket.gethostname(),
        pid=os.getpid(),
        began=wall,
        seconds=(done - began) / 1e9,
        histograms=recorder.cells,
        usage=Usage(
            used.ru_utime - before.ru_utime, used.ru_stime - before.ru_stime, psutil.Process().memory_info().rss
        ),
        open=open_now,
        skipped=crowd.left(),
        errors=recorder.errors,
        unexpected=recorder.unexpected,
        stopped=point.stopped,
    )


class _Point:
    """Waits for moments of a measurement, and for what may end it before; stopped: that, in words."""

    def __init__(self, channel: Channel, crowd: Crowd, sessions: Sequence[Timed]) -> None:
        self._channel = channel
        self._crowd = crowd
        self._sessions = sessions
        self.stopped: str | None = None

    def going(self) -> bool:
        return self.stopped is None and self._crowd.running > 0

    async def until(self, moment: int) -> None:
        while self.going() and (left := (moment - time.perf_counter_ns()) / 1e9) > 0:
            await asyncio.sleep(min(left, _TICK))
            self.stopped = "stopped by the user" if self._channel.stopped() else self._crowd.lost
            if self._crowd.failure is not None:
                raise self._crowd.failure
            if self._crowd.whole:
                long_ago = time.perf_counter_ns() - _PATIENCE
                for each in self._sessions:
                    each.take_pieces(long_ago)
