"""One world: a server with its clients, disk and network, from the first connection to the rows after its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pkgutil
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, MutableSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import ModuleType
from typing import Any, Final

from kvref import collations, profiles, server
from kvref.addresses import Address
from kvref.errors import StoreError
from kvref.profiles import Profile
from kvref.server import telemetry
from kvref.server.connection import Connection
from kvref.server.listeners.listener import Listener
from kvref.server.server import Server
from kvref.server.settings import parse
from kvref.storage.memory import MemoryStore
from kvref.storage.mysql import connection
from kvref.storage.mysql.store import MySQLStore
from kvref.storage.sqlite import file as sqlite_file
from kvref.storage.sqlite import store as sqlite_store
from kvref.storage.sqlite import wal
from kvref.storage.sqlite.store import SQLiteStore
from kvref_testbed.simulation import plan as plans
from kvref_testbed.simulation.clients import Client, Operation
from kvref_testbed.simulation.database import Database, OtherClient, Rows, SimulatedStore
from kvref_testbed.simulation.disk import Disk, FaultyConnection, OtherProgram, Program, SyncThread
from kvref_testbed.simulation.loop import Clock, SimulatedLoop, StuckError
from kvref_testbed.simulation.network import Line
from kvref_testbed.simulation.order import UndecidedError
from kvref_testbed.simulation.plan import Command, Conversation, Plan, Writer
from kvref_testbed.simulation.specification import judge

PATIENCE: Final = 120.0  # simulated seconds in which a world comes to its end
_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of a random name is made there
_READERS: Final = (Conversation(0.0, plans.Path(), tuple(Command("gets", key) for key in plans.KEYS)),)


@dataclass(slots=True)
class Outcome:
    """What happened in a world.

    Args:
        plan: of the world.
        events: one line each, with its time.
        wrong: what must not have happened; empty: all is well.
        answered: commands with a reply.
        crashed: the machine has crashed before the server had stopped.
        undecided: whether the replies have an order is not known.
    """

    plan: Plan
    events: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    answered: int = 0
    crashed: bool = False
    undecided: bool = False


class _Faults(logging.Handler):
    """Takes tracebacks that the server logs."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(f"logged: {record.getMessage()}: {self.format(record).splitlines()[-1]}")


class _Threads:
    """In the place of `Threads` of the server: those of the simulated loop."""

    def __init__(self, _most: int, _name: str) -> None:
        pass

    def call(self, what: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Call what blocks."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().run_in_executor(None, what, *arguments)
        return future

    def close(self) -> None:
        """Do nothing: the loop ends them."""


class _Log(wal.WriteAheadLog):
    """A log whose errors do not name the folder of this run."""

    def sync(self) -> None:
        """See `WriteAheadLog`."""
        try:
            super().sync()
        except StoreError as error:
            raise StoreError(re.sub(r"/\S*/", "", str(error))) from error


class _Instead:
    """A module with some of its names replaced."""

    def __init__(self, module: ModuleType, **names: Any) -> None:
        self.__dict__.update(names)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class Simulation:
    """Runs worlds, in its own folder; see `simulation`.

    Args:
        folder: in memory, where one is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._template = b""
        self.profile: Profile = profiles.load("kvref")
        self.listener = Listener(Address("127.0.0.1", 0))
        self.settings = parse([], None, self.profile)
        self.faults = _Faults()
        self.clock = Clock()
        self.world: _World | None = None
        self._thread: SyncThread
        self._factory = type("Connection", (FaultyConnection,), {"disk": staticmethod(self._disk)})
        self._worlds = 0
        self._random: random.Random

    def prepare(self) -> None:
        """Write the file that each world begins with."""
        path = self._folder / "template"
        store = SQLiteStore(path, self.profile)
        store.initialise()
        store.close()
        self._template = path.read_bytes()
        path.unlink()

    def run(self, plan: Plan) -> Outcome:
        """Run the world of a plan."""
        self._worlds += 1
        if self._worlds % 50 == 0:
            gc.collect()  # a world has cycles; to look for them at each allocation takes a third of the time
        self.clock, self._random = Clock(plan.cpu), random.Random(0)  # noqa: S311 - a test's
        self.faults.found.clear()
        path = self._folder / "world"
        path.write_bytes(self._template)
        world = self.world = _World(self, plan, path)
        try:
            return world.run()
        finally:
            self.world = None
            for left in self._folder.iterdir():
                left.unlink()

    def fdatasync(self, _descriptor: int) -> None:
        """Stand in for `os.fdatasync`."""
        if self.world is not None and self.world.disk is not None:
            self.world.disk.sync()

    def queue(self) -> SyncThread:
        """Stand in for `SimpleQueue`, of which a server has one, for the disk."""
        assert self.world is not None
        self._thread = self.world.thread()
        return self._thread

    def thread(self, target: Callable[[], object], **_: object) -> SyncThread:
        """Stand in for `Thread`."""
        self._thread.target = target
        return self._thread

    def connect(self, path: Path, **named: Any) -> sqlite3.Connection:
        """Stand in for `sqlite3.connect`."""
        return sqlite3.connect(path, factory=self._factory, **named)

    def time(self) -> float:
        """Stand in for `time.time`; each world has another clock."""
        return self.clock.time()

    def monotonic(self) -> float:
        """Stand in for `time.monotonic`."""
        return self.clock.monotonic()

    def uniform(self, low: float, high: float) -> float:
        """Stand in for `random.uniform`: each world draws the same numbers."""
        return self._random.uniform(low, high)

    def register(self, _connection: sqlite3.Connection) -> None:
        """Stand in for `collations.register`: the tables of a world have SQLite's own collation."""

    def _disk(self) -> Disk | None:
        return None if self.world is None else self.world.disk

    def replacements(self) -> Iterator[tuple[object, str, Any]]:
        """Yield what takes another value while worlds run: module, name, value."""
        for each in pkgutil.walk_packages(server.__path__, f"{server.__name__}."):
            if not each.name.startswith(telemetry.__name__):  # needs an extra, and is in no world
                import_module(each.name)
        clock = _Instead(
            time,
            time=self.time,
            monotonic=self.monotonic,
            perf_counter=self.monotonic,
            time_ns=lambda: int(self.clock.time() * 1e9),
            monotonic_ns=lambda: int(self.clock.monotonic() * 1e9),
        )
        instead: dict[str, tuple[object, Any]] = {
            "time": (time, clock),
            "random": (random, _Instead(random, uniform=self.uniform)),
            "Thread": (Thread, self.thread),
            "SimpleQueue": (SimpleQueue, self.queue),
        }
        for name, module in list(sys.modules.items()):
            if name.startswith("kvref."):
                found = [(word, new) for word, (old, new) in instead.items() if vars(module).get(word) is old]
                yield from ((module, word, new) for word, new in found)
                if name.startswith("kvref.server.") and "Threads" in vars(module):
                    yield module, "Threads", _Threads
        yield connection, "Rows", Rows
        yield connection, "MySQLCatalog", lambda session, *_: session
        yield connection, "checked", lambda mapping, session, _: session.ping(reconnect=False) or mapping
        yield sqlite_file, "collations", _Instead(collations, register=self.register)
        yield wal, "os", _Instead(os, fdatasync=self.fdatasync)
        yield sqlite_file, "sqlite3", _Instead(sqlite3, connect=self.connect)
        yield sqlite_store, "WriteAheadLog", _Log


@contextmanager
def simulation() -> Iterator[Simulation]:
    """Let time, disk and threads of the server be simulated in this process, for the block."""
    folder = Path(tempfile.mkdtemp(prefix="kvref-simulation-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None))
    made = Simulation(folder)
    replaced: list[tuple[object, str, Any]] = []
    log = logging.getLogger("kvref")
    collecting, level, spreads = gc.isenabled(), log.level, log.propagate
    try:
        made.prepare()
        for module, name, value in made.replacements():
            replaced.append((module, name, getattr(module, name)))
            setattr(module, name, value)
        log.addHandler(made.faults)
        log.setLevel(logging.ERROR)
        log.propagate = False
        gc.disable()
        gc.freeze()
        yield made
    finally:
        for module, name, value in reversed(replaced):
            setattr(module, name, value)
        log.removeHandler(made.faults)
        log.setLevel(level)
        log.propagate = spreads
        gc.unfreeze()
        if collecting:
            gc.enable()
        shutil.rmtree(folder)


class _World:
    """A world while it runs."""

    def __init__(self, machine: Simulation, plan: Plan, path: Path) -> None:
        self._machine = machine
        self._plan = replace(plan, settings=machine.settings | plan.settings)
        self._path = path
        self.outcome = Outcome(plan)
        self.loop = self._new_loop()
        self.operations: list[Operation] = []
        self.disk: Disk | None = None
        self._database = Database(self._plan, self.log)
        self._store: SQLiteStore | MemoryStore | MySQLStore
        self._server: Server
        self._syncs = 0
        self._left = 0  # clients that have something to do
        self._end: asyncio.Future[None]
        self._course: asyncio.Task[None]
        self._dead = False  # the machine has crashed
        self._read: dict[int, int] | None = None  # bytes read of each client when the server began to stop
        self._lines: dict[int, Line] = {}
        self._outside: set[Program] = set()

    # What the parts of the world use.

    def log(self, text: str) -> None:
        """Note an event."""
        self.outcome.events.append(f"{(self.loop.time() - 1000) * 1000:.4f} {text}")

    def wrong(self, text: str) -> None:
        """Note what must not happen."""
        self.outcome.wrong.append(text)
        self.log(f"WRONG: {text}")

    def thread(self) -> SyncThread:
        """Return what waits for the disk."""
        assert self.disk is not None
        return SyncThread(self.loop, self.disk, self._duration)

    def connect(self, number: int, client: Client) -> Line:
        """Connect a client to the server."""
        line = Line(self.loop, f"client {number}", self._plan_of(number), _Deaf(self, client), self.log, self.wrong)
        self._lines[number] = line
        line.connect(Connection(self._server, self._machine.listener))  # type: ignore[arg-type]  # see `protocol_factory`
        return line

    def unanswered(self, operations: Iterable[Operation]) -> None:
        """Note commands of a connection that the server has closed: those that it had read have a reply."""
        plan = self._plan
        if plan.hurried or plan.batches or plan.writers or plan.failures:
            return  # a command may wait for longer than a server that stops
        for each in operations:
            if self._read is None or each.end <= self._read.get(each.client, 0):
                self.wrong(f"client {each.client}: the server closes the connection without a reply to {each.command}")

    def finished(self) -> None:
        """Note that a client does nothing more."""
        self._left -= 1
        if not self._left and not self._end.done():
            self._end.set_result(None)

    @property
    def dead(self) -> bool:
        """Return whether the machine has crashed."""
        return self._dead

    def _plan_of(self, number: int) -> plans.Path:
        return self._conversations[number].path

    def _duration(self) -> tuple[float, float]:
        number, self._syncs = self._syncs, self._syncs + 1
        return self._plan.syncs[number % len(self._plan.syncs)]

    def _raised(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self._dead:
            self.wrong(f"raised: {context.get('message')}: {context.get('exception')!r}")

    # Its course.

    def run(self) -> Outcome:
        """Run it; return what happened."""
        plan = self._plan
        self._database.loop = self.loop
        self._open(self._path)
        if self.disk is not None:
            self.disk.crash_at_sync = self._crash_at_sync
        self._conversations = plan.conversations
        self._finish(self._first())
        ended = self.loop.time()
        operations, after = self.operations, []
        faults = self._database.failed or (self.disk is not None and self.disk.failed)
        if plan.store != "memory":
            path = self._path.with_name("after")
            if self.disk is not None and not self._dead:
                self.disk.survive(path, 1.0 if any(each.key for each in plan.writers) else 0.0)
            self._close()
            self.loop.close()
            self.loop = self._new_loop()  # nothing of the first server happens any more
            self.operations, self._conversations, self._read = [], _READERS, None
            self._dead, self._plan = False, replace(plan, failed_syncs=(), failed_commits=(), crash=None)
            self._database.restart(self.loop)
            self._open(path)
            self._finish(self._again())
            after = self.operations
            self._close()
        self.loop.close()
        if not self.outcome.wrong:
            try:
                self.outcome.wrong += judge(plan, operations, after, ended, faults=faults)
            except UndecidedError:
                self.outcome.undecided = True
        self.outcome.wrong += self._machine.faults.found
        self.outcome.answered = sum(each.returned is not None for each in operations)
        return self.outcome

    def _open(self, path: Path) -> None:
        profile = self._machine.profile
        if self._plan.store == "memory":
            self._store = MemoryStore("memory://", profile)
        elif self._plan.store == "mysql":
            self._store = SimulatedStore(profile, self._database, self._plan)
        else:
            self._store = SQLiteStore(path, profile)
            self.disk = Disk(path, self._plan, self.log)

    def _close(self) -> None:
        disk, self.disk = self.disk, None
        self._store.close()
        self.disk = disk

    def _serve(self) -> None:
        machine, settings = self._machine, self._plan.settings
        self._server = Server(self._store, machine.profile, lambda: settings, [machine.listener])
        # A set of objects is in the order of their addresses, which no seed decides.
        self._server.connections = _InOrder()  # type: ignore[assignment]
        self._server.open()

    def _new_loop(self) -> SimulatedLoop:
        loop = SimulatedLoop(self._machine.clock)
        loop.set_exception_handler(self._raised)
        return loop

    def _finish(self, course: Coroutine[Any, Any, None]) -> None:
        """Run a part of the world, and stop what it has left."""
        self._course = self.loop.create_task(course)
        try:
            self.loop.run_until_complete(self._course)
        except asyncio.CancelledError:
            assert self._dead
        except StuckError as error:
            self.wrong(str(error))
        except Exception as error:  # noqa: BLE001 - whatever the server raises is a finding
            self.wrong(f"raised: {error!r}")
        left = asyncio.all_tasks(self.loop)
        self._dead = self._dead or bool(left)
        for task in left:
            task.cancel()
        if left:
            with suppress(StuckError):
                self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.abandon()
        for each in self._outside:
            each.close()

    async def _first(self) -> None:
        plan = self._plan
        self._serve()
        stop = asyncio.Event()
        sweeps = self.loop.create_task(self._server.until(stop))
        self._end = self.loop.create_future()
        self._start_clients()
        if plan.crash is not None and plan.crash.sync is None:
            self.loop.call_later(plan.crash.at, self._crash_soon, plan.crash.steps)
        for writer in plan.writers:
            self.loop.call_later(writer.at, self._lock, writer)
        if plan.stop is not None:
            self.loop.call_later(plan.stop, self._stop)
        limit = self.loop.call_later(PATIENCE, self._too_late)
        try:
            await self._end
        finally:
            limit.cancel()
        self.log("the server stops")
        self._read = {number: line.read for number, line in self._lines.items()}
        self._server.immediate_stop = plan.hurried
        stop.set()
        await sweeps
        await self._server.drain()
        self.log("the server has stopped")
        await asyncio.sleep(1)  # the last replies are on their way
        self._check_drained()

    def _start_clients(self) -> None:
        self._left = len(self._conversations)
        clients = [Client(self, number, each, self.finished) for number, each in enumerate(self._conversations)]
        for client in clients:
            client.start()

    def _stop(self) -> None:
        if not self._end.done():
            self._end.set_result(None)

    def _too_late(self) -> None:
        waiting = [each for each in self.operations if each.returned is None and not each.command.noreply]
        self.wrong(f"no reply within {PATIENCE:g} s: {[(each.client, each.command.verb) for each in waiting]}")
        self._stop()

    def _check_drained(self) -> None:
        """Note what a server that has stopped must not leave."""
        if self._plan.hurried or self._plan.slow:
            return
        executor: Any = self._server.executor
        if self._plan.store == "sqlite" and not self._server.connections and executor.transactions.locked:
            self.wrong("row locks are left after the drain")
        if self._server.connections and not self._plan.may_refuse:
            self.wrong(f"{len(self._server.connections)} connections are left after the drain")

    async def _again(self) -> None:
        self._serve()
        self._end = self.loop.create_future()
        self._start_clients()
        limit = self.loop.call_later(PATIENCE, self._too_late)
        await self._end
        limit.cancel()
        await self._server.drain()

    # Faults.

    def _crash_at_sync(self, number: int, where: str) -> None:
        crash = self._plan.crash
        if crash is not None and (crash.sync, crash.where) == (number, where):
            self.loop.call_later(crash.at, self._crash_soon, crash.steps)

    def _crash_soon(self, steps: int) -> None:
        if steps:
            self.loop.call_soon(self._crash_soon, steps - 1)
        else:
            self._crash()

    def _crash(self) -> None:
        """Crash the machine; the server does nothing more, also if it is stopping."""
        if self._dead or self._plan.crash is None:
            return
        self.log("the machine crashes")
        if self.disk is not None:
            self.disk.survive(self._path.with_name("after"), self._plan.crash.surviving)
        self._dead = self.outcome.crashed = True
        self._course.cancel()

    def _lock(self, writer: Writer, tries: int = 50) -> None:
        """Take the file's write lock, or a row's, as another program does."""
        if self._dead or self._end.done():
            return
        number = (1 << 60) + len(self.operations)
        program: Program = OtherProgram(self._path, writer, number)
        if self._plan.store == "mysql":
            program = OtherClient(self._database, writer, number)
        if program.begin():
            self.log("another program takes the write lock")
            self._outside.add(program)
            self.loop.call_later(writer.seconds, self._unlock, writer, program, self.loop.time())
        elif tries:
            self.loop.call_later(0.0005, self._lock, writer, tries - 1)

    def _unlock(self, writer: Writer, program: Program, called: float) -> None:
        if writer.key:
            written = Command("set", writer.key, writer.value)
            self.operations.append(Operation(-1, written, 0, called, 0, self.loop.time(), b"STORED"))
            self.log(f"another program writes {writer.key}")
        self._outside.discard(program)
        program.end()


class _InOrder(MutableSet[Any]):
    """A set in the order in which its elements came."""

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._elements = dict.fromkeys(elements)

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def add(self, value: Any) -> None:
        self._elements[value] = None

    def discard(self, value: Any) -> None:
        self._elements.pop(value, None)


class _Deaf:
    """A client of a machine that may crash: then nothing reaches it any more."""

    def __init__(self, world: _World, client: Client) -> None:
        self._world = world
        self._client = client

    def receive(self, data: bytes) -> None:
        if not self._world.dead:
            self._client.receive(data)

    def closed(self, *, reset: bool) -> None:
        if not self._world.dead:
            self._client.closed(reset=reset)
