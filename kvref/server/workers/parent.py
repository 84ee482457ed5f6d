"""The parent: listens, passes each connection to the worker with the fewest, restarts workers, reloads, reports, stops.

It accepts connections itself because SO_REUSEPORT distributes them by a hash: a few connections can all reach one
worker, and those that a dead worker has not accepted are lost. On a shared socket, the first idle worker would accept.
The parent runs no event loop, no thread and no connection to the store, so that a fork copies none of their states.
"""

from __future__ import annotations

import logging
import os
import sched
import selectors
import signal
import socket
import time
from dataclasses import dataclass
from typing import Final

from kvref.errors import ConfigError, StoreError
from kvref.server.connection_limit import connection_limit, log_connection_limit, turn_away
from kvref.server.listeners.sockets import PAUSE, arrivals
from kvref.server.server import log_stop
from kvref.server.settings import changed, warn_of_restart
from kvref.server.telemetry.exporter import Exporter
from kvref.server.telemetry.lifecycle import Lifecycle
from kvref.server.telemetry.sources import of_workers
from kvref.server.workers.channel import ACCEPTED, UNDELIVERED, Channel, Signals, Transfer, fork
from kvref.server.workers.plan import WRITER, Plan, fingerprint
from kvref.server.workers.shared_memory import WorkerSlot
from kvref.server.workers.worker import work

_log = logging.getLogger("kvref.server")

RESTART_PAUSE: Final = 1.0  # seconds before a process that has ended is replaced


@dataclass(eq=False)
class Child:
    """A process that serves connections.

    Args:
        number: its slot.
        since: monotonic time of its start.
        last_dispatch: number of connections handed to any worker when this one got its last.
        last_message: None since the last request.
    """

    number: int
    pid: int
    channel: Channel
    since: float
    last_dispatch: int = 0
    last_message: tuple[str, str] | None = None
    ready: bool = False


@dataclass(eq=False)
class Offer:
    """A connection that goes from one worker to another.

    Args:
        transfer: the connection.
        workers: those that may take it, the best one last.
        holder: the worker among whose connections it is counted: its sender, or the last one to which it was offered.
    """

    transfer: Transfer
    workers: list[Child]
    holder: Child


OFFER_PAUSE: Final = 0.001  # seconds until a connection is offered again to a busy worker
MAX_OFFERS: Final = (1 << 32) - 1  # then numbers begin again
START_SECONDS: Final = 60.0
RELOAD_SECONDS: Final = 60.0
# A worker that ended sooner than this after its start is not started again before as much time has passed.
SHORT_LIFE: Final = 1.0
_READINGS: Final = 3  # of tables that change while they are read
_FAILURES: Final = {"failed": ConfigError, "unreached": StoreError}


class Parent:
    """Serve with several processes, and metrics if there is an exporter.

    Raises:
        ConfigError: the server cannot listen on an address.
    """

    def __init__(self, plan: Plan, exporter: Exporter | None) -> None:
        self._plan = plan
        self._exporter = exporter
        self._lifecycle = Lifecycle(plan.tally, plan.profile, plan.text, plan.workers)
        opened = [(each, number) for number, listener in enumerate(plan.listeners) for each in listener.listen()]
        self._listeners = dict(opened)
        self._accepting = False
        self._children: dict[int, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._signals = Signals()
        self._selector.register(self._signals, selectors.EVENT_READ, self._handle_signals)
        self._later = sched.scheduler(time.monotonic)
        self._dispatched = 0
        self._offers: dict[int, Offer] = {}  # connections that no worker serves yet, by number
        self._delayed: list[Offer] = []  # those for a busy worker
        self._offer_number = 0
        self._started = self._stopping = self._reloads = False

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; raises ConfigError if a worker cannot serve this."""
        with self._signals.handled():
            try:
                self._start_workers()
                if self._exporter is not None:
                    self._export(self._exporter)
                self._start_accepting()
                plan = self._plan
                self._lifecycle.configured(plan.directory, plan.problems, plan.settings)
                for listening, number in self._listeners.items():
                    plan.listeners[number].log(listening, plan.workers)
                self._lifecycle.ready()
                log_connection_limit(plan.settings["maxconns"], plan.workers)
                while not self._stopping:
                    self._run_once(self._later.run(blocking=False))
                    if self._reloads:
                        self._reloads = False
                        self._lifecycle.reloading()
                        self._reload()
            finally:
                self._stop()

    def _handle_signals(self) -> None:
        for number in self._signals.arrived():
            if number == signal.SIGHUP:
                self._reloads = True
                continue
            log_stop(number, again=self._stopping)
            if self._stopping:
                self._broadcast("stop_now")
            self._stopping = True

    def _run_once(self, seconds: float | None) -> None:
        if self._delayed:
            seconds = OFFER_PAUSE if seconds is None else min(seconds, OFFER_PAUSE)
        for key, _ in self._selector.select(seconds):
            key.data()
        delayed, self._delayed = self._delayed, []
        for offer in delayed:
            self._offer(offer)

    def _start_workers(self) -> None:
        for number in range(self._plan.workers):
            self._start(number)
        self._await("ready", START_SECONDS)
        if len(self._ready) < self._plan.workers:
            raise ConfigError(f"a worker ended, or was not ready within {START_SECONDS:g} s: see the log")
        self._started = True

    def _start(self, number: int) -> None:
        pid, channel = fork(lambda theirs: work(self._plan, number, theirs, self._close_inherited))
        child = self._children[number] = Child(number, pid, channel, time.monotonic(), self._dispatched)
        self._selector.register(channel, selectors.EVENT_READ, lambda: self._receive(child))

    def _export(self, exporter: Exporter) -> None:
        """Let a process serve metrics and health, and another one if it ends."""

        def ended() -> None:
            self._selector.unregister(channel)
            exporter.reap()
            _log.error("the metrics process ended unexpectedly")
            self._later.enter(RESTART_PAUSE, 0, self._export, (exporter,))

        channel = exporter.start(of_workers(self._plan), self._close_parent_ends)
        self._selector.register(channel, selectors.EVENT_READ, ended)

    def _close_inherited(self) -> None:
        self._close_parent_ends()
        if self._exporter is not None:
            self._exporter.close_inherited()

    def _close_parent_ends(self) -> None:
        """Close what only the parent may have open: a copy in a worker would hide the parent's end."""
        self._selector.close()
        for child in self._children.values():
            child.channel.close()
        self._signals.close()
        for each in self._listeners:
            each.close()
        for offer in [*self._offers.values(), *self._delayed]:
            offer.transfer.connection.close()

    def _receive(self, child: Child) -> None:
        try:
            received = child.channel.receive()
        except EOFError:
            self._reap(child)
            return
        if isinstance(received, Transfer):
            self._forward(received, child)
        elif isinstance(received, tuple) and received[0] in {UNDELIVERED, ACCEPTED}:
            self._finish_offer(int(received[1]), child, taken=received[0] == ACCEPTED)
        elif isinstance(received, tuple):
            child.last_message = received[:2]
            if received[0] == "ready":
                self._set_ready(child)
            elif failure := _FAILURES.get(received[0]):
                if not (self._started or self._stopping):
                    raise failure(received[1])
                _log.error("a worker cannot start: %s", received[1])

    def _forward(self, transfer: Transfer, sender: Child) -> None:
        """Give a connection to the worker that writes, or, if that one cannot take it, back to its sender.

        It stays open here until one of them has accepted it.
        """
        there = sorted(self._ready, key=lambda child: (child.number == WRITER, child is sender))
        self._offer(Offer(transfer, there, sender))

    def _offer(self, offer: Offer) -> None:
        """Give a connection to the best of the workers that may take it, later if that one is busy."""
        transfer, before = offer.transfer, offer.holder
        while offer.workers:
            self._offer_number = self._offer_number % MAX_OFFERS + 1
            self._assign(offer, offer.workers[-1])
            try:
                offer.holder.channel.send_connection(
                    transfer.connection.fileno(), transfer.listener, transfer.state, self._offer_number
                )
            except OSError as error:
                self._assign(offer, before)
                if isinstance(error, BlockingIOError):
                    self._delayed.append(offer)
                    return
                offer.workers.pop()  # it is gone
            else:
                offer.workers.pop()
                self._offers[self._offer_number] = offer
                return
        transfer.connection.close()
        self._count(before, -1)
        _log.warning("connection closed: no worker is available")

    def _finish_offer(self, number: int, child: Child, *, taken: bool) -> None:
        """Close a connection that a worker serves now, or offer it to the next one."""
        offer = self._offers.pop(number, None)
        if offer is None:
            self._count(child, -1)
            _log.warning("connection closed: the parent has no free descriptor for it")
        elif taken:
            offer.transfer.connection.close()
        else:
            self._offer(offer)

    def _assign(self, offer: Offer, child: Child) -> None:
        """Count a connection as one of a worker, and no longer as one of its holder."""
        self._count(offer.holder, -1)
        self._count(child, 1)
        offer.holder = child

    def _count(self, child: Child, more: int) -> None:
        """Count connections of a worker; the numbers of one that is gone are 0, or those of its successor."""
        if self._children.get(child.number) is child:
            self._plan.memory.slot(child.number)[WorkerSlot.ASSIGNED] += more

    @property
    def _ready(self) -> list[Child]:
        return [child for child in self._children.values() if child.ready]

    def _reap(self, child: Child) -> None:
        self._selector.unregister(child.channel)
        child.channel.close()
        _, status = os.waitpid(child.pid, 0)
        del self._children[child.number]
        slot = self._plan.memory.slot(child.number)
        for cell in WorkerSlot:
            slot[cell] = 0
        for number in [number for number, offer in self._offers.items() if offer.holder is child]:
            self._offer(self._offers.pop(number))
        if self._stopping:
            return
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        self._plan.tally.processes[child.number].end()
        self._plan.tally.restarted()
        fields = {"worker": child.number + 1, "reason": how}
        _log.error("worker %d (pid %d) %s: its connections are closed", child.number + 1, child.pid, how, extra=fields)
        lived = time.monotonic() - child.since
        self._later.enter(0 if lived >= SHORT_LIFE else SHORT_LIFE, 0, self._start, (child.number,))

    def _set_ready(self, child: Child) -> None:
        child.ready = True
        if self._started and not self._stopping:
            _log.info("worker %d restarted (pid %d)", child.number + 1, child.pid)
            self._start_accepting()

    def _start_accepting(self) -> None:
        if not self._accepting:
            self._accepting = True
            for each in self._listeners:
                self._selector.register(each, selectors.EVENT_READ, lambda each=each: self._accept(each))

    def _stop_accepting(self) -> None:
        if self._accepting:
            self._accepting = False
            for each in self._listeners:
                self._selector.unregister(each)

    def _accept(self, listener: socket.socket) -> None:
        if not self._ready:
            self._stop_accepting()  # new connections wait in the backlog for the next worker
            return
        try:
            for connection in arrivals(listener):
                with connection:
                    self._dispatch(connection, self._listeners[listener])
        except OSError as error:
            _log.error("accepting connections is paused for %g s: %s", PAUSE, error)
            self._stop_accepting()
            self._later.enter(PAUSE, 0, self._start_accepting)

    def _dispatch(self, connection: socket.socket, listener: int) -> None:
        memory = self._plan.memory
        if memory.connections() >= connection_limit(self._plan.settings["maxconns"], self._plan.workers):
            memory.count_refused()
            turn_away(connection)
            return
        slots = {child: memory.slot(child.number) for child in self._ready}
        loads = {child: slot[WorkerSlot.ASSIGNED] - slot[WorkerSlot.CLOSED] for child, slot in slots.items()}
        for child in sorted(loads, key=lambda child: (loads[child], child.last_dispatch)):
            self._count(child, 1)  # before the worker can answer with the number of connections
            try:
                child.channel.send_connection(connection.fileno(), listener)
            except OSError:
                self._count(child, -1)
                continue  # it is gone, as its channel reports, or too busy
            self._dispatched += 1
            child.last_dispatch = self._dispatched
            return
        _log.warning("connection rejected: no worker is available")

    def _reload(self) -> None:
        try:
            wanted = self._plan.read_settings()
            self._reload_workers(changed(self._plan.settings, wanted))
        except (ConfigError, StoreError) as error:
            self._lifecycle.not_reloaded(error)
        else:
            warn_of_restart(self._plan.settings, wanted)
            self._lifecycle.reloaded(self._plan.directory, self._plan.problems, self._plan.settings)

    def _reload_workers(self, settings: dict[str, int]) -> None:
        """Activate one configuration in all workers, or none; raises ConfigError or StoreError."""
        loaded = [each.load() for each in self._plan.listeners]
        for _ in range(_READINGS):
            directory, problems = self._plan.read()
            self._broadcast("read", settings)
            self._await("read", RELOAD_SECONDS)
            answers = [
                child.last_message or ("refused", "a worker did not answer") for child in self._children.values()
            ]
            refused = [text for what, text in answers if what != "read"]
            if not refused and all(text == fingerprint(directory) for _, text in answers):
                break
            self._broadcast("drop")
            if refused:
                raise StoreError(refused[0])
        else:
            raise StoreError("the configuration tables changed while they were read: try again")
        self._plan.settings = settings
        for listener, files in zip(self._plan.listeners, loaded, strict=True):
            listener.renew(files)  # a worker that is started again is forked with them
        self._plan.directory, self._plan.problems = directory, problems
        for each in self._plan.shared_mappings:
            each.clear()
        self._broadcast("take")
        self._await("taken", RELOAD_SECONDS)

    def _broadcast(self, what: str, settings: dict[str, int] | None = None) -> None:
        for child in self._children.values():
            child.last_message = None
            try:
                child.channel.send(what, settings=settings)
            except OSError:
                os.kill(child.pid, signal.SIGKILL)  # a worker that does not even read is replaced

    def _await(self, what: str, seconds: float) -> None:
        """Wait for a message of each living worker; one that does not activate what it has read in time is replaced."""
        deadline = time.monotonic() + seconds
        while any(child.last_message is None for child in self._children.values()):
            left = deadline - time.monotonic()
            if left < 0:
                for child in self._children.values():
                    if child.last_message is None and what == "taken":
                        os.kill(child.pid, signal.SIGKILL)
                return
            self._run_once(left)

    def _stop(self) -> None:
        self._stopping = True
        self._lifecycle.stopping()
        self._stop_accepting()
        for each in self._listeners:
            each.close()
        for listener in self._plan.listeners:
            listener.remove_files()
        self._broadcast("stop")
        while self._children:
            self._run_once(None)
        if self._exporter is not None:
            self._exporter.stop()
        self._selector.close()
        self._signals.close()
