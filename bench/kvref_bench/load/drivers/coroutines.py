"""Clients for asyncio: all sessions of a worker in one loop, with `depth` coroutines on each session's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import islice
from time import perf_counter_ns
from typing import TYPE_CHECKING

import uvloop

from kvref.addresses import parse_address
from kvref.client import AsyncMappedClient
from kvref_bench.errors import BenchError
from kvref_bench.load.drivers.meter import Measured, Meter, Window, endless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.drivers.meter import Pair, Pools
    from kvref_bench.load.work import Task

Get = Callable[[str], Awaitable[bytes | None]]
Open = Callable[["Task", str | None, AsyncExitStack], Awaitable[Get]]


async def mapped(task: Task, word: str | None, stack: AsyncExitStack) -> Get:
    """Open an `AsyncMappedClient`, bound to the mapping unless each key names it; it pipelines what runs at once."""
    mapping = None if word is None else task.work.mapping
    client = AsyncMappedClient(task.address, mapping=mapping, delimiter=task.work.delimiter)
    get: Get = (await stack.enter_async_context(client)).get
    return get


async def streams(task: Task, word: str | None, stack: AsyncExitStack) -> Get:
    """Open a connection of asyncio's streams; one get at a time.

    word: key of a first get, which switches the mapping; None: no first get.
    """
    where = parse_address(task.address)
    if where.path:
        reader, writer = await asyncio.open_unix_connection(where.path)
    else:
        reader, writer = await asyncio.open_connection(where.host, where.port)
    stack.callback(writer.close)

    async def get(key: str) -> bytes | None:
        writer.write(b"get %s\r\n" % key.encode())
        head = await reader.readuntil(b"\r\n")
        if head == b"END\r\n":
            return None
        if not head.startswith(b"VALUE "):
            raise BenchError(f"get {key} was answered {head!r}")
        # By its length: a value may end as the answer does.
        answer = await reader.readexactly(int(head.rsplit(None, 1)[1]) + len(b"\r\nEND\r\n"))
        return answer[: -len(b"\r\nEND\r\n")]

    if word is not None and await get(word) is None:
        raise BenchError(f"{word} was answered like a missing key: the server has no such mapping")
    return get


def run(task: Task, word: str | None, pools: Pools, window: Window, opening: Open, *, stock: bool = False) -> Measured:
    """Measure one worker's sessions.

    word: as of `streams`. pools: of each session. window: of the point. opening: of one session.
    stock: with asyncio's own loop instead of uvloop's.
    """
    measuring = _run(task, word, pools, window, opening)
    return asyncio.run(measuring) if stock else uvloop.run(measuring)


async def _run(task: Task, word: str | None, pools: Pools, window: Window, opening: Open) -> Measured:
    async with AsyncExitStack() as stack:
        gets = [await opening(task, word, stack) for _ in pools]
        for get, pool in zip(gets, pools, strict=True):
            await get(pool[0][0])
        meter = Meter(task, window)
        pairs = [islice(endless(pool), task.work.operations) for pool in pools]
        await asyncio.sleep(window.ready())
        meter.start(window.start())
        asking = [
            asyncio.create_task(_ask(get, each, meter))
            for get, each in zip(gets, pairs, strict=True)
            for _ in range(task.work.depth)
        ]
        try:
            while not all(each.done() for each in asking) and not window.over():
                await asyncio.sleep(window.pause)
        finally:
            meter.over = True
            ended = await asyncio.gather(*asking, return_exceptions=True)
        failed = next((each for each in ended if isinstance(each, BaseException)), None)
        meter.finish(None if failed is None else f"a session ended: {failed!r}")
        return window.measured([meter])


async def _ask(get: Get, pairs: Iterator[Pair], meter: Meter) -> None:
    key, sent = "", perf_counter_ns()
    try:
        for key, wanted in pairs:
            sent = perf_counter_ns()
            found = await get(key)
            now = perf_counter_ns()
            if found == wanted:
                meter.hit(sent, now)
            else:
                meter.otherwise(key, found, sent, now)
            if meter.over:
                return
    except Exception as error:
        meter.otherwise(key, repr(error).encode(), sent, perf_counter_ns())
        raise
