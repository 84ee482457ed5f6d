"""Gets through client libraries: `Work.driver` names one, and `run` measures it for a load worker.

Each session gets existing keys, compares every reply with the expected value, and records the latency of each call. A
blocking library has a thread for each session, an asyncio library `Work.depth` coroutines. With one session all are
alike; with more, the CPU time per get is comparable, and the operations a second are those of an application of that
kind. The loop around a get is in its CPU time: half a microsecond.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle, islice
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

import uvloop

from kvref.addresses import parse_address
from kvref.client import AsyncMappedClient
from kvref.errors import install
from kvref_bench.errors import BenchError
from kvref_bench.load import clock
from kvref_bench.load.plan import Kind
from kvref_bench.load.recorder import Recorder
from kvref_bench.load.session import Crowd
from kvref_bench.workload.exchanges import prefix
from kvref_bench.workload.keys import draws, key
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.channel import Channel
    from kvref_bench.load.recorder import WorkerResult
    from kvref_bench.load.work import Task

Pair = tuple[str, bytes]  # a key, and the value that must come
Measured = tuple[int, int, str, bytes | None]  # kind, nanoseconds; of a wrong answer the key and what came
Get = Callable[[str], bytes | None]
AsyncGet = Callable[[str], Awaitable[bytes | None]]

KINDS: Final = (Kind("get", "hit"), Kind("get", "miss"), Kind("get", "error"))
HIT, MISS, ERROR = range(len(KINDS))
TIMEOUTS: Final = {"connect_timeout": 10.0, "timeout": 60.0, "no_delay": True}
END: Final = b"\r\nEND\r\n"


@dataclass(frozen=True, slots=True)
class Driver:
    """One client library in one style of use.

    open: connects one session and returns its get. Takes the task, the key of a first get that switches the mapping
        (None: no such get) and a stack that closes the connection.
    asynchronous: its get is a coroutine. stock: on asyncio's own event loop instead of uvloop's.
    binds: it binds its connections to the mapping; others get `@@mapping` first.
    """

    open: Callable[[Task, str | None, AsyncExitStack], Coroutine[Any, Any, Any]]
    asynchronous: bool = False
    stock: bool = False
    binds: bool = False


async def pymemcache(task: Task, word: str | None, stack: AsyncExitStack) -> Get:
    """Open a `Client` of pymemcache; see `Driver.open`."""
    _require_pymemcache()
    from pymemcache.client.base import Client  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra

    client = Client(parse_address(task.address).socket_address, **TIMEOUTS)
    stack.callback(client.close)
    get: Get = client.get
    if word is not None and get(word) is None:
        raise _no_mapping(word)
    return get


async def mapped(task: Task, word: str | None, stack: AsyncExitStack) -> Get:
    """Open a `MappedClient`, bound to the mapping unless each key names it; see `Driver.open`."""
    _require_pymemcache()
    from kvref.client import MappedClient  # noqa: PLC0415 - an extra

    mapping = None if word is None else task.work.mapping
    client = MappedClient(task.address, mapping=mapping, delimiter=task.work.delimiter)
    stack.callback(client.close)
    return client.get


async def async_mapped(task: Task, word: str | None, stack: AsyncExitStack) -> AsyncGet:
    """Open an `AsyncMappedClient`, which pipelines what runs at once; see `Driver.open`."""
    mapping = None if word is None else task.work.mapping
    client = AsyncMappedClient(task.address, mapping=mapping, delimiter=task.work.delimiter)
    get: AsyncGet = (await stack.enter_async_context(client)).get
    return get


async def streams(task: Task, word: str | None, stack: AsyncExitStack) -> AsyncGet:
    """Open a connection of asyncio's streams, one get at a time; see `Driver.open`."""
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

    if word is not None and await get(word) is None:
        raise _no_mapping(word)
    return get


DRIVERS: Final = {
    "pymemcache": Driver(pymemcache),
    "kvref": Driver(mapped, binds=True),
    "kvref-async": Driver(async_mapped, asynchronous=True, binds=True),
    "kvref-async-stock": Driver(async_mapped, asynchronous=True, stock=True, binds=True),
    "streams": Driver(streams, asynchronous=True),
    "streams-stock": Driver(streams, asynchronous=True, stock=True),
}
PIPELINES: Final = (async_mapped,)  # what can have several gets in flight on one connection


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


class Clients(Crowd):
    """The sessions of one worker; `lock`: for counts that threads change."""

    def __init__(self) -> None:
        self.deferred = Deferred()
        super().__init__(self.deferred)
        self.lock = threading.Lock()


class Session:
    """One connection of a library; the clock calls it like `load.session.Session`.

    get: the library's; of an asyncio library a coroutine, several of which may share a connection.
    pairs: in the order in which they are requested.
    """

    def __init__(self, crowd: Clients, get: Any, pairs: Iterator[Pair], *, asynchronous: bool) -> None:
        self._crowd = crowd
        self._get = get
        self._pairs = pairs
        self._asynchronous = asynchronous

    def open(self) -> int:
        """Return 0: a get that the end interrupts is not counted."""
        return 0

    def take_pieces(self, before: int) -> None:
        """Do nothing: a library reads its replies itself."""

    def start(self) -> None:
        """Send the first get: in a thread of its own, or in a task of the loop."""
        with self._crowd.lock:
            self._crowd.running += 1
        running = self._await_gets() if self._asynchronous else asyncio.to_thread(self._call_gets)
        self._task = asyncio.create_task(running)

    async def ended(self) -> None:
        """Wait for the answer to the last get."""
        await self._task

    def _call_gets(self) -> None:
        get, crowd, last = self._get, self._crowd, ("", 0)
        try:
            for name, wanted in self._pairs:
                last = (name, perf_counter_ns())
                found = get(name)
                self._count(last, found, wanted)
                if crowd.over:
                    break
        except Exception as error:  # noqa: BLE001 - whatever a library raises is what it answered
            self._fail(last, error)
        self._finish()

    async def _await_gets(self) -> None:
        get, crowd, last = self._get, self._crowd, ("", 0)
        try:
            for name, wanted in self._pairs:
                last = (name, perf_counter_ns())
                found = await get(name)
                self._count(last, found, wanted)
                if crowd.over:
                    break
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(last, error)
        self._finish()

    def _count(self, last: tuple[str, int], found: bytes | None, wanted: bytes) -> None:
        took = perf_counter_ns() - last[1]
        kind = HIT if found == wanted else MISS if found is None else ERROR
        self._crowd.deferred.measured.append((kind, took, last[0], found))

    def _fail(self, last: tuple[str, int], error: Exception) -> None:
        took = perf_counter_ns() - last[1]
        self._crowd.deferred.measured.append((ERROR, took, last[0], repr(error).encode()))
        self._crowd.lost = self._crowd.lost or f"a session ended: {error!r}"

    def _finish(self) -> None:
        with self._crowd.lock:
            self._crowd.running -= 1
            self._crowd.done = perf_counter_ns()


def run(task: Task, channel: Channel) -> WorkerResult:
    """Do one worker's part of a point with its driver.

    Raises:
        BenchError: the driver is unknown, its package is missing, or it cannot do this work.
    """
    driver = _driver(task)
    measuring = _measure(driver, task, channel)
    # The pools are no work of the library's.
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
    word = f"@@{work.mapping}" if work.route in ("switch", "bind") else None
    crowd = Clients()
    sessions: list[Session] = []
    # `to_thread` would have a thread for some sessions only.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(mine)))
    async with AsyncExitStack() as stack:
        for pool in pools:
            get, pairs = await driver.open(task, word, stack), islice(cycle(pool), work.operations)
            first = get(pool[0][0])
            if driver.asynchronous:
                await first
            sessions += [Session(crowd, get, pairs, asynchronous=driver.asynchronous) for _ in range(work.depth)]
        try:
            return await clock.measure(task, channel, crowd, sessions)
        finally:
            crowd.over = True
            for each in sessions:
                await each.ended()


def _driver(task: Task) -> Driver:
    work = task.work
    if work.driver not in DRIVERS:
        raise BenchError(f"driver {work.driver!r}: choose wire, {', '.join(DRIVERS)}")
    driver = DRIVERS[work.driver]
    if set(work.verbs) != {"get"} or work.multiget != 1 or work.protocol != "text":
        raise BenchError(f"driver {work.driver}: only single gets in the text protocol; use the driver wire")
    if task.clock.rate is not None:
        raise BenchError(f"driver {work.driver}: closed loop only; leave out the rate or use the driver wire")
    if work.depth != 1 and driver.open not in PIPELINES:
        raise BenchError(f"driver {work.driver}: its gets wait for one another, depth = {work.depth} has no meaning")
    if work.route == "bind" and not driver.binds:
        raise BenchError(f"driver {work.driver}: it has no bind; use the route switch or each")
    return driver


def _pool(task: Task, session: int, size: int) -> list[Pair]:
    work = task.work
    before = prefix(work).decode()
    names = [key(work.keys, number) for number in draws(work.keys, work, task.worker, session, size).tolist()]
    return [(before + name.decode(), value(work.values, name)) for name in names]


def _require_pymemcache() -> None:
    if find_spec("pymemcache") is None:
        raise BenchError(f"the package pymemcache is missing: {install('bench')}")


def _no_mapping(word: str) -> BenchError:
    return BenchError(f"{word} was answered like a missing key: the server has no such mapping")
