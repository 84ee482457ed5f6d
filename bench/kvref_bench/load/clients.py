"""Gets through client libraries: `Work.driver` names one, and `run` measures it for a load worker.

Each session gets existing keys, compares every reply with the expected value, and records the latency of each call. A
blocking library has a thread for each session, an asyncio library a coroutine. With one session all are alike; with
more, the CPU time per get is comparable, and the operations a second are those of an application of that kind. The loop
around a get is in its CPU time: half a microsecond.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

import uvloop

from kvref.addresses import parse_address
from kvref.client import AsyncMappedClient
from kvref_bench.errors import BenchError
from kvref_bench.load.clock import run_clock
from kvref_bench.load.records import Kind, Recorder
from kvref_bench.load.session import Crowd
from kvref_bench.workload.keys import draws, key
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.clock import Channel
    from kvref_bench.load.records import WorkerResult
    from kvref_bench.load.work import Task

Pair = tuple[str, bytes]  # a key, and the value that must come
Measured = tuple[int, int, str, bytes | None]  # kind, nanoseconds; of a wrong answer the key and what came
# Connects one session and returns its get, which returns a value, None, or a coroutine of these. Takes the task, the
# mapping to switch to (None: no such) and a stack that closes the connection.
Open = Callable[["Task", str | None, AsyncExitStack], Coroutine[Any, Any, Callable[[str], Any]]]

KINDS: Final = (Kind("get", "hit"), Kind("get", "miss"), Kind("get", "error"))
HIT, MISS, ERROR = range(len(KINDS))
TIMEOUTS: Final = {"connect_timeout": 10.0, "timeout": 60.0, "no_delay": True}
END: Final = b"\r\nEND\r\n"


@dataclass(frozen=True, slots=True)
class Driver:
    """One client library in one style of use.

    asynchronous: its get is a coroutine. stock: on asyncio's own event loop instead of uvloop's.
    """

    open: Open
    asynchronous: bool = False
    stock: bool = False


async def pymemcache(task: Task, mapping: str | None, stack: AsyncExitStack) -> Callable[[str], Any]:
    """Open a `Client` of pymemcache; see `Open`."""
    from pymemcache.client.base import Client  # type: ignore[import-untyped]  # noqa: PLC0415 - not of every worker

    client = Client(parse_address(task.address).socket_address, **TIMEOUTS)
    stack.callback(client.close)
    if mapping is not None and client.get(f"@@{mapping}") is None:
        raise _no_mapping(mapping)
    get: Callable[[str], Any] = client.get
    return get


async def mapped(task: Task, mapping: str | None, stack: AsyncExitStack) -> Callable[[str], Any]:
    """Open a `MappedClient`, bound to the mapping; see `Open`."""
    from kvref.client import MappedClient  # noqa: PLC0415 - as above

    client = MappedClient(task.address, mapping=mapping)
    stack.callback(client.close)
    return client.get


async def async_mapped(task: Task, mapping: str | None, stack: AsyncExitStack) -> Callable[[str], Any]:
    """Open an `AsyncMappedClient`, bound to the mapping; see `Open`."""
    return (await stack.enter_async_context(AsyncMappedClient(task.address, mapping=mapping))).get


async def streams(task: Task, mapping: str | None, stack: AsyncExitStack) -> Callable[[str], Any]:
    """Open a connection of asyncio's streams, one get at a time; see `Open`."""
    where = parse_address(task.address)
    unix = asyncio.open_unix_connection
    reader, writer = await (unix(where.path) if where.path else asyncio.open_connection(where.host, where.port))
    stack.callback(writer.close)

    async def get(key: str) -> bytes | None:
        writer.write(b"get %s\r\n" % key.encode())
        head = await reader.readuntil(b"\r\n")
        if head == b"END\r\n":
            return None
        if not head.startswith(b"VALUE "):
            raise BenchError(f"get {key} was answered {head!r}")
        # By its length: a value may end as the answer does.
        answer = await reader.readexactly(int(head.rsplit(None, 1)[1]) + len(END))
        return answer[: -len(END)]

    if mapping is not None and await get(f"@@{mapping}") is None:
        raise _no_mapping(mapping)
    return get


DRIVERS: Final = {
    "pymemcache": Driver(pymemcache),
    "kvref": Driver(mapped),
    "kvref-async": Driver(async_mapped, asynchronous=True),
    "kvref-async-stock": Driver(async_mapped, asynchronous=True, stock=True),
    "streams": Driver(streams, asynchronous=True),
    "streams-stock": Driver(streams, asynchronous=True, stock=True),
}


class Deferred(Recorder):
    """A recorder to which threads hand over what they measured, and which counts it when a second ends.

    A deque loses nothing between threads.
    """

    def __init__(self) -> None:
        super().__init__(KINDS)
        self.measured: deque[Measured] = deque()

    def clear(self) -> None:
        """See `Recorder`."""
        self.measured.clear()
        super().clear()

    def put_away(self, second: int) -> dict[int, int]:
        """See `Recorder`."""
        for _ in range(len(self.measured)):
            kind, took, name, answer = self.measured.popleft()
            self.add(kind, took)
            if kind == ERROR:
                self.refuse(name.encode(), answer or b"")
        return super().put_away(second)


class LibrarySession:
    """One connection of a library; the clock calls it like `load.session.Session`.

    recorder: of the crowd. get: of the library. asynchronous: it returns a coroutine; otherwise the session has a
        thread of its own. pairs: in the order in which they are requested.
    """

    def __init__(
        self, crowd: Crowd, recorder: Deferred, get: Callable[[str], Any], pairs: Iterator[Pair], *, asynchronous: bool
    ) -> None:
        self._crowd = crowd
        self._measured = recorder.measured
        self._get = get
        self._pairs = pairs
        self._asynchronous = asynchronous
        self._name, self._sent = "", 0

    def open(self) -> int:
        """Return 0: a get that the end interrupts is not counted."""
        return 0

    def take_pieces(self, before: int) -> None:
        """Do nothing: a library reads its replies itself."""

    def start(self) -> None:
        """Send the first get."""
        self._crowd.running += 1
        self._task = asyncio.create_task(self._run())

    async def ended(self) -> None:
        """Wait for the answer to the last get."""
        await self._task

    async def _run(self) -> None:
        try:
            await (self._await_gets() if self._asynchronous else asyncio.to_thread(self._call_gets))
        except Exception as error:  # noqa: BLE001 - whatever a library raises is what it answered
            self._measured.append((ERROR, perf_counter_ns() - self._sent, self._name, repr(error).encode()))
            self._crowd.lost = self._crowd.lost or f"a session ended: {error!r}"
        self._crowd.running -= 1
        self._crowd.done = perf_counter_ns()

    def _call_gets(self) -> None:
        get = self._get
        for name, wanted in self._pairs:
            self._name, self._sent = name, perf_counter_ns()
            self._count(get(name), wanted)
            if self._crowd.over:
                break

    async def _await_gets(self) -> None:
        get = self._get
        for name, wanted in self._pairs:
            self._name, self._sent = name, perf_counter_ns()
            self._count(await get(name), wanted)
            if self._crowd.over:
                break

    def _count(self, found: bytes | None, wanted: bytes) -> None:
        took = perf_counter_ns() - self._sent
        kind = HIT if found == wanted else MISS if found is None else ERROR
        self._measured.append((kind, took, self._name, found))


def run(task: Task, channel: Channel) -> WorkerResult:
    """Do one worker's part of a point with its driver.

    Raises:
        BenchError: the driver is unknown, or it cannot do this work.
    """
    driver = _driver(task)
    measuring = _measure(driver, task, channel)
    # The library has no part in the pools.
    gc.collect()
    gc.freeze()
    try:
        return asyncio.run(measuring) if driver.stock else uvloop.run(measuring)
    finally:
        gc.unfreeze()


async def _measure(driver: Driver, task: Task, channel: Channel) -> WorkerResult:
    work = task.work
    mine = range(task.worker, work.sessions, task.workers)
    pools = [_pool(task, session, max(1, work.pool // len(mine))) for session in mine]
    mapping = work.mapping if work.route == "switch" else None
    recorder, sessions = Deferred(), list[LibrarySession]()
    crowd = Crowd(recorder)
    # By default `to_thread` has fewer threads than there may be sessions.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(mine)))
    async with AsyncExitStack() as stack:
        for pool in pools:
            get, pairs = await driver.open(task, mapping, stack), islice(cycle(pool), work.operations)
            first = get(pool[0][0])
            if driver.asynchronous:
                await first
            sessions.append(LibrarySession(crowd, recorder, get, pairs, asynchronous=driver.asynchronous))
        try:
            return await run_clock(task, channel, crowd, sessions)
        finally:
            crowd.over = True
            for each in sessions:
                await each.ended()


def _driver(task: Task) -> Driver:
    work = task.work
    if work.driver not in DRIVERS:
        raise BenchError(f"driver {work.driver!r}: choose wire, {', '.join(DRIVERS)}")
    single = set(work.verbs) == {"get"} and work.multiget == work.depth == 1 and work.route in ("none", "switch")
    if not single or work.protocol != "text" or task.clock.rate is not None:
        raise BenchError(
            f"driver {work.driver}: only gets one by one in the text protocol, of the default mapping or by the route"
            " switch, in a closed loop; use wire"
        )
    return DRIVERS[work.driver]


def _pool(task: Task, session: int, size: int) -> list[Pair]:
    work = task.work
    names = [key(work.keys, number) for number in draws(work.keys, work, task.worker, session, size).tolist()]
    return [(name.decode(), value(work.values, name)) for name in names]


def _no_mapping(mapping: str) -> BenchError:
    return BenchError(f"get @@{mapping} was answered like a missing key: the server has no such mapping")
