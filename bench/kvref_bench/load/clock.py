"""The clock of one load worker: common start, warm-up, seconds, end; what its sessions counted becomes its result."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from typing import TYPE_CHECKING, Final, Protocol

from kvref_bench.load import usage
from kvref_bench.load.channel import Progress
from kvref_bench.load.histogram import quantile
from kvref_bench.load.result import WorkerResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.load.session import Crowd
    from kvref_bench.load.work import Task

_TICK: Final = 0.02  # seconds between looks at the channel and at what is still running
_PATIENCE: Final = 10_000_000  # ns for the whole of an expected reply


class Line(Protocol):
    """What a worker needs of its `Channel`."""

    def ready(self) -> float:
        """Return the seconds until the common start."""

    def stopped(self) -> bool:
        """Return whether the user wants it to end."""

    def progress(self, what: Progress) -> None:
        """Report the progress of a second."""


class Timed(Protocol):
    """A session as the clock sees it."""

    def start(self) -> None:
        """Send the first request."""

    def open(self) -> int:
        """Return the number of operations without an answer."""

    def take_pieces(self, before: int) -> None:
        """See `load.session.Session`; called only if replies are of several operations."""


class Connection:
    """A socket in the loop, whose bytes the kernel counts."""

    def __init__(self, opened: socket.socket, transport: asyncio.Transport) -> None:
        self._socket = opened
        self._transport = transport
        self._known = (0, 0)

    def bytes(self) -> tuple[int, int]:
        """Return how many bytes the peer has acknowledged and sent; of a lost connection the last known numbers.

        A unix socket does not count them: (0, 0).
        """
        if self._socket.fileno() == -1 or self._socket.family == socket.AF_UNIX:
            return self._known
        # struct tcp_info of linux/tcp.h: tcpi_bytes_acked and tcpi_bytes_received, since Linux 4.1.
        known = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
        acked, received = struct.unpack_from("=QQ", known, 120)
        self._known = acked, received
        return self._known

    def close(self) -> None:
        """Close it at once."""
        self._transport.abort()


class Point:
    """The clock of one worker: warm-up, seconds, end."""

    def __init__(
        self,
        task: Task,
        channel: Line,
        crowd: Crowd,
        sessions: Sequence[Timed],
        connections: Sequence[Connection] = (),
    ) -> None:
        self._task = task
        self._channel = channel
        self._crowd = crowd
        self._sessions = sessions
        self._connections = connections
        self._stopped: str | None = None

    async def run(self, distinct: int) -> WorkerResult:
        """Measure in the running loop; `distinct`: number of different keys that the sessions can name."""
        await asyncio.sleep(self._channel.ready())
        clock = self._task.clock
        start = time.perf_counter_ns()
        for each in self._sessions:
            each.start()
        sender = asyncio.create_task(self._crowd.send(start))
        # Of a number of operations each one counts.
        if self._task.work.operations is None:
            await self._until(start + int(clock.warmup * 1e9))
            self._crowd.recorder.clear()
        began, wall = time.perf_counter_ns(), time.time_ns()
        before, sent = usage.now(), self._bytes()
        second = 0
        while not self._crowd.over:
            ends = min(second + 1, clock.measure)
            await self._until(began + int(ends * 1e9))
            if not self._going() or ends == clock.measure:
                self._crowd.over = True
                done = self._crowd.done if self._crowd.running == 0 else time.perf_counter_ns()
            self._tell(second)
            second += 1
        # Before the loop runs again: otherwise it would receive replies that are not counted.
        open_now = sum(each.open() for each in self._sessions)
        used, bytes_now = usage.since(before), self._bytes()
        await sender
        return WorkerResult(
            worker=self._task.worker,
            host=socket.gethostname(),
            pid=os.getpid(),
            began=wall,
            seconds=(done - began) / 1e9,
            histograms=self._crowd.recorder.cells,
            usage=used,
            sent=bytes_now[0] - sent[0],
            received=bytes_now[1] - sent[1],
            distinct=distinct,
            open=open_now,
            skipped=self._crowd.left(),
            errors=self._crowd.recorder.errors,
            unexpected=self._crowd.recorder.unexpected,
            stopped=self._stopped,
        )

    def _going(self) -> bool:
        return self._stopped is None and self._crowd.running > 0

    async def _until(self, moment: int) -> None:
        while self._going() and (left := (moment - time.perf_counter_ns()) / 1e9) > 0:
            await asyncio.sleep(min(left, _TICK))
            if self._channel.stopped():
                self._stopped = "stopped by the user"
            elif self._crowd.lost is not None:
                self._stopped = self._crowd.lost
            if self._crowd.failure is not None:
                raise self._crowd.failure
            if self._crowd.whole:
                long_ago = time.perf_counter_ns() - _PATIENCE
                for each in self._sessions:
                    each.take_pieces(long_ago)

    def _tell(self, second: int) -> None:
        errors = self._crowd.recorder.errors
        counts = self._crowd.recorder.put_away(second)
        p50, p99 = quantile(counts, 0.5), quantile(counts, 0.99)
        self._channel.progress(Progress(self._task.worker, second, sum(counts.values()), errors, p50, p99))

    def _bytes(self) -> tuple[int, int]:
        known = [each.bytes() for each in self._connections]
        return sum(acked for acked, _ in known), sum(received for _, received in known)
