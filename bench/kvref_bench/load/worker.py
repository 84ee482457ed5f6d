"""One load worker: a plain function that any engine can run, here or on another machine, and its clock."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
import time
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import psutil
import uvloop

from kvref_bench.errors import BenchError
from kvref_bench.load import null
from kvref_bench.load.channel import Channel, Progress
from kvref_bench.load.histogram import quantile
from kvref_bench.load.records import TIMINGS, Recorder, Usage, WorkerResult
from kvref_bench.load.session import Crowd, Scheduled, ScheduledSession, Session, moments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.load.records import Plan
    from kvref_bench.load.work import Task

_TICK: Final = 0.02  # seconds between looks at the channel and at what is still running
_PATIENCE: Final = 10_000_000  # ns for the whole of an expected reply


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
        p50, p99 = quantile(counts, 0.5), quantile(counts, 0.99)
        channel.progress(Progress(task.worker, second, sum(counts.values()), errors, p50, p99))
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


_SAMPLE: Final = 256  # exchanges from which the mean number of operations in one is taken


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


async def measure(task: Task, plan: Plan, channel: Channel) -> WorkerResult:
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
    opened = [await _connect(plan, each) for each in sessions]
    try:
        return await run_clock(task, channel, crowd, sessions)
    finally:
        crowd.over = True
        for each in opened:
            each.abort()


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


async def _connect(plan: Plan, session: Session) -> asyncio.Transport:
    opened = plan.connect()
    opened.settimeout(0)
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: session, sock=opened)
    return transport
