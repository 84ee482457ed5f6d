"""One load worker: a plain function that any engine can run, here or on another machine."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
import time
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import uvloop

from kvref_bench.errors import BenchError
from kvref_bench.load import null, usage
from kvref_bench.load.channel import Channel, Progress
from kvref_bench.load.histogram import quantile
from kvref_bench.load.recorder import TIMINGS, Recorder
from kvref_bench.load.result import WorkerResult
from kvref_bench.load.schedule import Scheduled, ScheduledSession, moments
from kvref_bench.load.session import Crowd, Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.load.plan import Plan
    from kvref_bench.load.work import Task

_TICK: Final = 0.02  # seconds between looks at the channel and at what is still running
_PATIENCE: Final = 10_000_000  # ns for the whole of an expected reply
_SAMPLE: Final = 256  # exchanges from which the mean number of operations in one is taken


class Line(Protocol):
    """What a worker needs of its `Channel`."""

    def ready(self) -> float:
        """Return the seconds until the common start."""

    def stopped(self) -> bool:
        """Return whether the user wants it to end."""

    def progress(self, what: Progress) -> None:
        """Report the progress of a second."""


def run(task: Task) -> WorkerResult:
    """Do one worker's part of a point.

    Raises:
        BenchError: nothing was measured: no connection, a wrong statement, a coordinator that is gone.
    """
    with Channel(task) as channel:
        if task.cpu is not None:
            os.sched_setaffinity(0, {task.cpu})
        if task.work.driver != "wire":
            # Client libraries are needed by this driver alone.
            from kvref_bench.load import clients  # noqa: PLC0415

            return clients.run(task, channel)
        plan = _plan_of(task)
        with _without_collector():
            return uvloop.run(measure(task, plan, channel))


def _plan_of(task: Task) -> Plan:
    if task.work.protocol == "null":
        return null.plan_of(task)
    from kvref_bench import workload  # noqa: PLC0415 -- the null responder needs no encoder

    return workload.plan_of(task)


@contextmanager
def _without_collector() -> Iterator[None]:
    # A collection stops all sessions for as long as the pool of exchanges is big.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


async def measure(task: Task, plan: Plan, channel: Line) -> WorkerResult:
    """Run a worker's part of a point in the running loop.

    Args:
        task: the part. plan: the requests. channel: reports start and stop.

    Raises:
        Exception: what the plan's reader raised.
    """
    crowd, sessions = _crowd(task, plan)

    def fail(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        crowd.failure = crowd.failure or context.get("exception") or BenchError(context["message"])

    # A loop logs what a session raises and goes on without that session.
    asyncio.get_running_loop().set_exception_handler(fail)
    sockets = [await _connect(plan, each) for each in sessions]
    try:
        return await _Point(task, channel, crowd, sessions, sockets).run(plan)
    finally:
        crowd.over = True
        for each in sockets:
            each.close()


def _crowd(task: Task, plan: Plan) -> tuple[Crowd, Sequence[Session]]:
    mine = range(len(range(task.worker, task.work.sessions, task.workers)))
    # Several answers come in several pieces, and each would wake the worker: half of its CPU time at depth 16.
    whole = task.work.depth * task.work.multiget > 1
    if task.clock.rate is None:
        crowd = Crowd(Recorder(plan.kinds), plan.reader, whole=whole)
        return crowd, [Session(crowd, plan.exchanges(each)) for each in mine]
    operations = [len(kinds) for _, _, kinds in islice(plan.exchanges(0), _SAMPLE)]
    share = len(operations) / sum(operations) * len(mine) / task.work.sessions
    due = moments(task.clock, share, task.work.seed + task.worker)
    scheduled = Scheduled(Recorder(plan.kinds, TIMINGS), plan.reader, due, whole=whole)
    return scheduled, [ScheduledSession(scheduled, plan.exchanges(each)) for each in mine]


async def _connect(plan: Plan, session: Session) -> _Connection:
    opened = plan.connect()
    opened.settimeout(0)
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: session, sock=opened)
    return _Connection(opened, transport)


class _Connection:
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
        self._transport.abort()


class _Point:
    """The clock of one worker: warm-up, seconds, end."""

    def __init__(
        self, task: Task, channel: Line, crowd: Crowd, sessions: Sequence[Session], connections: list[_Connection]
    ) -> None:
        self._task = task
        self._channel = channel
        self._crowd = crowd
        self._sessions = sessions
        self._connections = connections
        self._stopped: str | None = None

    async def run(self, plan: Plan) -> WorkerResult:
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
            distinct=plan.distinct,
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
