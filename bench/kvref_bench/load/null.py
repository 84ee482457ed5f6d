"""The null responder: a server that answers each request with the same bytes, to see what the generator itself can do.

Requests and replies have the sizes of a get of the point; one process, one core.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Final, cast

import uvloop

from kvref_bench import watch
from kvref_bench.errors import BenchError
from kvref_bench.load.records import Answer, Exchange, Kind, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from kvref_bench.load.work import Task, Work

_START_SECONDS: Final = 30.0


@contextmanager
def responder(work: Work, host: str = "127.0.0.1") -> Iterator[str]:
    """Run a null responder for a point and give its address. Raises BenchError when it does not start.

    host: of this machine, where it listens.
    """
    request, reply = _sizes(work)
    here, there = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(there, host, request, reply), daemon=True
    )
    with watch.blocked():
        process.start()
    try:
        if not here.poll(_START_SECONDS):
            raise BenchError(f"the null responder did not start within {_START_SECONDS:g} s")
        yield f"{host}:{here.recv()}"
    finally:
        process.kill()
        process.join()


def plan_of(task: Task) -> Plan:
    """Make the plan of a worker that talks to the null responder."""
    request, reply = _sizes(task.work)
    host, _, port = task.address.rpartition(":")
    operations = task.work.depth * task.work.multiget
    exchange = Exchange(b"g" * request * task.work.depth, b"v" * reply * task.work.depth, (0,) * operations)
    return Plan(
        kinds=(Kind("get", "hit"),),
        connect=lambda: socket.create_connection((host, int(port)), 10),
        exchanges=lambda _: repeat(exchange),
        reader=_Reader(),
    )


class _Reader:
    def read(self, exchange: Exchange, data: bytes) -> Answer | None:
        return Answer(exchange.kinds, (data,)) if len(data) >= len(exchange.reply) else None


def _sizes(work: Work) -> tuple[int, int]:
    key = work.keys.length if work.keys.shape == "text" else len(str(work.keys.count))
    value = sum(work.values.sizes) // 2
    # get KEY ...\r\n; for each key VALUE KEY 0 SIZE\r\n...\r\n; END\r\n
    request = len("get\r\n") + work.multiget * (key + 1)
    reply = work.multiget * (len("VALUE  0 \r\n\r\n") + key + len(str(value)) + value) + len("END\r\n")
    return request, reply


def _serve(ready: Connection, host: str, request: int, reply: int) -> None:
    # On a core of its own, so that the worker's wakings do not bring it to the worker's.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    uvloop.run(_listen(ready, host, request, b"v" * reply))


async def _listen(ready: Connection, host: str, request: int, reply: bytes) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Responder(request, reply), host, 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


class _Responder(asyncio.Protocol):
    def __init__(self, request: int, reply: bytes) -> None:
        self._request = request
        self._reply = reply
        self._rest = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast("asyncio.WriteTransport", transport).write

    def data_received(self, data: bytes) -> None:
        count, self._rest = divmod(self._rest + len(data), self._request)
        if count:
            self._write(self._reply * count)
