"""One worker: a process that serves the connections that its parent passes to it, and ends with it.

It listens on nothing and takes no signals: what a terminal sends to all processes is for the parent to decide.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import uvloop

from kvref.engine.mapping import Directory
from kvref.engine.shared_state import Crawler, VBuckets, Verbosity
from kvref.errors import ConfigError, KvrefError, StoreError
from kvref.server import garbage
from kvref.server.connection import protocol_factory
from kvref.server.connection_limit import connection_limit
from kvref.server.connection_state import Passed, from_message, to_message
from kvref.server.server import Scope, Server
from kvref.server.workers.channel import ACCEPTED, UNDELIVERED, Channel, Transfer
from kvref.server.workers.counters import WorkerCounters, WorkerPrefixes
from kvref.server.workers.marks import WorkerMarks
from kvref.server.workers.plan import WRITER, Plan, fingerprint
from kvref.server.workers.shared_memory import WorkerSlot
from kvref.storage.base import MappedTables

if TYPE_CHECKING:
    from kvref.server.listeners.listener import Listener, Loaded

_log = logging.getLogger("kvref.server")

FAILED: Final = 2
_AT_ONCE: Final = 64  # connections taken before the others have their turn
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class WorkerScope(Scope):
    """What a worker has together with the others."""

    alone = False

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan = plan
        self.first = number == WRITER
        self._memory = memory = plan.memory
        self._slot = memory.slot(number)
        self._slot[WorkerSlot.PID] = os.getpid()
        prefixes = WorkerPrefixes(memory, plan.prefixes, number)
        self.counters: WorkerCounters = WorkerCounters(memory, prefixes, number)
        self.vbuckets = VBuckets(memory.vbuckets)
        self.marks = WorkerMarks(memory, plan.marks)
        self.crawler = Crawler(memory.crawler)
        self.verbosity = Verbosity(memory.verbosity)
        self.tally = plan.tally
        self.own = plan.tally.processes[number]

    def cas_numbers(self, store: MappedTables) -> Iterator[int]:
        return store.cas_numbers() if self._plan.numbers_in_store else self._memory.cas_numbers()

    def publish_get(self) -> None:
        self.counters.publish_get()

    def publish(self, closed: int, peak: int) -> None:
        # The parent counts those that it passes on: one that is being accepted belongs to its worker already.
        self._slot[WorkerSlot.CLOSED] = closed
        self._slot[WorkerSlot.PEAK] = peak
        self.counters.publish()

    def is_writer_full(self) -> bool:
        """Return whether the worker that writes has as many connections as one process may have."""
        slot = self._memory.slot(WRITER)
        return slot[WorkerSlot.ASSIGNED] - slot[WorkerSlot.CLOSED] >= connection_limit(self._plan.settings["maxconns"])

    def rows(self) -> dict[str, str]:
        """Return the rows of `stats` that are about all workers; the process is the parent."""
        slots = [self._memory.slot(number) for number in range(self._plan.workers)]
        times = [_times(pid) for pid in (self._plan.pid, *(slot[WorkerSlot.PID] for slot in slots))]
        user, system = (sum(each) for each in zip(*times, strict=True))
        threads = ("threads", "num_threads") if self._plan.profile.flag("verbs.beyond_plugin") else ()
        return {
            **dict.fromkeys(threads, str(self._plan.workers)),
            "pid": str(self._plan.pid),
            "uptime": str(int(time.monotonic() - self._plan.since)),
            "rusage_user": f"{user:.6f}",
            "rusage_system": f"{system:.6f}",
            "curr_connections": str(self._memory.connections() + 1),
            "connection_structures": str(sum(slot[WorkerSlot.PEAK] for slot in slots) + 1),
        }


class Worker:
    """Serve until the parent stops it, or is gone.

    Args:
        is_full: connections that write go to another worker, unless this returns that it has no room; None: they stay.
    """

    def __init__(
        self, server: Server, store: MappedTables, channel: Channel, is_full: Callable[[], bool] | None
    ) -> None:
        self._server = server
        self._is_full = is_full
        self._store = store
        self._channel = channel
        self._stop = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._loaded: tuple[dict[str, int], Directory, list[Loaded]] | None = None

    async def run(self) -> None:
        """Serve; raises ConfigError where the store cannot be served with these settings."""
        loop = asyncio.get_running_loop()
        self._server.open()
        if self._is_full is not None:
            self._server.pass_on = self._pass_on
        loop.add_reader(self._channel.fileno(), self._receive)
        self._channel.send("ready")
        await self._server.until(self._stop)
        await self._server.drain()
        loop.remove_reader(self._channel.fileno())

    def _receive(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                received = self._channel.receive()
            except EOFError:
                # As when a single process is killed: no further replies are sent, and all descriptors are closed.
                os._exit(FAILED)
            if received is None:
                return
            if isinstance(received, Transfer):
                self._start(self._serve(received))
                continue
            what, text, settings = received
            if what == UNDELIVERED:
                self._refuse(int(text))
            elif what == "read":
                self._start(self._load(settings))
            elif what == "take":
                assert self._loaded is not None
                self._server.take(*self._loaded)
                self._loaded = None
                self._channel.send("taken")
            elif what == "drop":
                self._store.adopt(self._server.shared.directory)
            elif what == "stop":
                self._stop.set()
            elif what == "stop_now":
                self._server.immediate_stop = True

    def _start(self, steps: asyncio._CoroutineLike[None]) -> None:
        task = asyncio.get_running_loop().create_task(steps)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _refuse(self, number: int) -> None:
        self._server.descriptors.log_exhaustion()
        if number:  # the parent still has it
            self._channel.send(UNDELIVERED, str(number))
            return
        self._server.closed_connections += 1
        self._server.publish()

    async def _serve(self, transfer: Transfer) -> None:
        if transfer.number:
            self._channel.send(ACCEPTED, str(transfer.number))
        connection, listener = transfer.connection, self._server.listeners[transfer.listener]
        connection.settimeout(0)
        passed = from_message(transfer.state) if transfer.state else None
        make = protocol_factory(self._server, listener, passed)
        if not await self._server.handshakes.take(make, connection, listener.tls):
            self._server.closed_connections += 1
        if self._stop.is_set():  # the others were ended before this one came
            for each in list(self._server.connections):
                each.end()
        self._server.publish()

    def _pass_on(self, descriptor: int, listener: Listener, passed: Passed) -> bool:
        """Let the worker that writes serve a connection, see `PassOn`."""
        if self._stop.is_set() or self._is_full is None or self._is_full():
            return False
        try:
            self._channel.send_connection(descriptor, self._server.listeners.index(listener), to_message(passed))
        except OSError:
            return False  # the parent is busy: the next write tries again
        return True

    async def _load(self, settings: dict[str, int]) -> None:
        try:
            self._loaded = settings, await self._server.executor.read_directory(), self._server.load_listeners()
        except (ConfigError, StoreError) as error:
            self._channel.send("refused", str(error))
        else:
            self._channel.send("read", fingerprint(self._loaded[1]))


def work(plan: Plan, number: int, channel: Channel, close_inherited: Callable[[], None]) -> NoReturn:
    """Be a worker in a process that was just forked, to its end; `close_inherited` closes what is the parent's."""
    status = FAILED
    try:
        close_inherited()
        store = plan.open()
        store.adopt(plan.directory)
        scope = WorkerScope(plan, number)
        server = Server(store, plan.profile, lambda: plan.settings, plan.listeners, scope, plan.directory)
        garbage.prepare()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            passes_on = plan.one_writes and not scope.first
            worker = Worker(server, store, channel, scope.is_writer_full if passes_on else None)
            runner.run(worker.run())
        store.close()
        status = 0
    except KvrefError as error:
        channel.send("unreached" if isinstance(error, StoreError) else "failed", str(error))
    except Exception:  # noqa: BLE001 - logged whole
        _log.exception("worker %d failed", number)
    finally:
        os._exit(status)


def _times(pid: int) -> tuple[float, float]:
    """Return the seconds that a process has used, as user and in the system; (0, 0) where it is gone."""
    if pid == os.getpid():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime, usage.ru_stime
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0, 0.0
    fields = text.rpartition(")")[2].split()  # a program's name may hold blanks: proc(5)
    return int(fields[11]) / _TICKS, int(fields[12]) / _TICKS
