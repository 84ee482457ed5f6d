"""Starts the workers of one point together, stops them, and collects their results."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError
from kvref_bench.load import worker
from kvref_bench.load.clock import PATIENCE
from kvref_bench.load.records import Progress
from kvref_bench.load.work import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from kvref_bench.load.engine import Engine
    from kvref_bench.load.records import WorkerResult
    from kvref_bench.load.work import Clock, Work
    from kvref_bench.watch import Watch

_POLL: Final = 0.05
_START: Final = 0.2  # seconds between go and the start, for the message to reach all


def measure(address: str, work: Work, clock: Clock, engine: Engine, watch: Watch) -> list[WorkerResult]:
    """Measure one point.

    Args:
        address: HOST:PORT or unix:PATH, or the DSN of a SQL server.
        work: what is sent. clock: when it counts.
        engine: where the workers run; no more of them than sessions are used.
        watch: looks on.

    Returns:
        What each worker measured, in their order; none when the user ended it before it began.

    Raises:
        BenchError: a worker could not begin.
    """
    return asyncio.run(_Coordinator(engine, watch).measure(address, work, clock))


class _Coordinator:
    def __init__(self, engine: Engine, watch: Watch) -> None:
        self._engine = engine
        self._watch = watch
        self._token = secrets.token_hex(16)
        self._lines: list[asyncio.StreamWriter] = []
        self._ready = 0
        self._stopped = False
        self._given_up = False

    async def measure(self, address: str, work: Work, clock: Clock) -> list[WorkerResult]:
        engine, workers = self._engine, min(self._engine.workers, work.sessions)
        server = await asyncio.start_server(self._listen, engine.control_host, 0)
        control = "{}:{}".format(*server.sockets[0].getsockname()[:2])
        async with server:
            futures = []
            for number in range(workers):
                cpu = engine.cpus[number % len(engine.cpus)] if engine.cpus else None
                task = Task(address, work, clock, control, self._token, number, workers, cpu)
                futures.append(engine.executors[number % len(engine.executors)].submit(worker.run, task))
            try:
                await self._until_ready(futures)
                if not self._given_up:
                    self._tell({"go": _START})
                    self._watch.going(_START)
                    await self._until_done(futures)
            finally:
                self._stop()
                running = [asyncio.wrap_future(each) for each in futures if not each.cancel()]
                await asyncio.gather(*running, return_exceptions=True)
            return [] if self._given_up else [each.result() for each in futures]

    async def _until_ready(self, futures: Sequence[Future[WorkerResult]]) -> None:
        until = asyncio.get_running_loop().time() + PATIENCE
        while self._ready < len(futures) and not self._given_up:
            for each in futures:
                if each.done():
                    each.result()
                    raise BenchError("a worker ended before the point began")
            if asyncio.get_running_loop().time() > until:
                raise BenchError(f"{self._ready} of {len(futures)} workers were ready after {PATIENCE:g} s")
            await asyncio.sleep(_POLL)
            self._given_up = self._watch.stopping()

    async def _until_done(self, futures: Sequence[Future[WorkerResult]]) -> None:
        while not all(each.done() for each in futures):
            if self._watch.stopping() and not self._stopped:
                self._stop()
            await asyncio.sleep(_POLL)

    def _stop(self) -> None:
        self._stopped = True
        self._tell({"stop": True})

    def _tell(self, message: dict[str, object]) -> None:
        for each in self._lines:
            if not each.is_closing():
                each.write(json.dumps(message).encode() + b"\n")

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = json.loads(await reader.readline())
            # Whoever else connects is not a worker of this point.
            if not secrets.compare_digest(str(hello["hello"]), self._token):
                return
            self._lines.append(writer)
            if self._stopped:
                self._tell({"stop": True})
            async for line in reader:
                message = json.loads(line)
                if "ready" in message:
                    self._ready += 1
                else:
                    self._watch.progress(Progress(**message))
        except (ConnectionError, ValueError, KeyError):
            return
        finally:
            writer.close()
