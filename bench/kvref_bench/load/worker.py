"""One load worker: a plain function that any engine can run, here or on another machine."""

from __future__ import annotations

import asyncio
import gc
import os
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import uvloop

from kvref_bench.errors import BenchError
from kvref_bench.load import null
from kvref_bench.load.clock import Channel, run_clock
from kvref_bench.load.records import TIMINGS, Recorder, WorkerResult
from kvref_bench.load.session import Crowd, Scheduled, ScheduledSession, Session, moments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.load.records import Plan
    from kvref_bench.load.work import Task


SERVER_NAME: Final = "localhost"  # of the certificate of a server with TLS
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
    # Behind TLS the kernel counts other bytes.
    whole = task.work.depth * task.work.multiget > 1 and plan.tls is None
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
    named = None if plan.tls is None else SERVER_NAME
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: session, sock=opened, ssl=plan.tls, server_hostname=named
    )
    return transport
