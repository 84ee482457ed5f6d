"""Logs of a parent process, and its notifications to systemd, metrics and health."""

from __future__ import annotations

import logging
import selectors
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref.server.telemetry.exporter import Exporter
from kvref.server.telemetry.lifecycle import Lifecycle
from kvref.server.telemetry.sources import Workers
from kvref.server.telemetry.start_report import Served, tell_reload
from kvref.storage.dsn import without_password

if TYPE_CHECKING:
    from kvref.server.workers.plan import Plan

_log = logging.getLogger("kvref.server")

PAUSE: Final = 1.0  # seconds before a process that has ended is replaced


@dataclass(frozen=True, slots=True)
class Forking:
    """What starting a process takes of the parent.

    Args:
        selector: that it waits with; its data are what to call.
        later: calls something after some seconds.
        let_go: closes in another process what only the parent may hold.
        held_back: returns a context in which no signal is taken.
    """

    selector: selectors.BaseSelector
    later: Callable[[float, Callable[[], None]], None]
    let_go: Callable[[], None]
    held_back: Callable[[], AbstractContextManager[None]]


class Outside:
    """Report the state of a server of several processes.

    Args:
        plan: addresses and settings.
        exporter: sockets for HTTP, None: no HTTP.
    """

    def __init__(self, plan: Plan, exporter: Exporter | None) -> None:
        self._plan = plan
        self._exporter = exporter
        self.lifecycle = Lifecycle(plan.tally)
        self.served = Served(plan.profile, without_password(plan.dsn), plan.workers)

    def ready(self, places: Mapping[socket.socket, int]) -> None:
        """Report that connections are accepted, on the sockets of each listener."""
        self._tell()
        for place, number in places.items():
            self._plan.listeners[number].tell(place, self._plan.workers)
        self.lifecycle.ready()

    def ended(self, number: int, pid: int, code: int) -> None:
        """Say that a worker is gone; it is to be replaced.

        Args:
            number: its slot.
            pid: its process.
            code: its exit code, or less than 0: the signal.
        """
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        self._plan.tally.processes[number].end()
        self._plan.tally.restarted()
        fields = {"worker": number + 1, "reason": how}
        _log.error("worker %d (pid %d) %s: its connections are closed", number + 1, pid, how, extra=fields)

    def reloaded(self, error: Exception | None) -> None:
        """Say that a configuration is in force, or why it is not."""
        self.lifecycle.reloaded(taken=error is None)
        if error is not None:
            tell_reload(error)
            return
        self._tell()
        tell_reload(None)

    def export(self, forking: Forking) -> None:
        """Let a process serve metrics and health, and another one where it ends."""
        if self._exporter is None:
            return
        exporter = self._exporter

        def lost() -> None:
            forking.selector.unregister(ended)
            exporter.bury()
            _log.error("the metrics process ended unexpectedly")
            forking.later(PAUSE, lambda: self.export(forking))

        ended = exporter.start(Workers(self._plan), forking.let_go, forking.held_back)
        forking.selector.register(ended, selectors.EVENT_READ, lost)

    def let_go(self) -> None:
        """Close what a worker must not hold."""
        if self._exporter is not None:
            self._exporter.let_go()

    def stop(self) -> None:
        """Serve metrics no more."""
        if self._exporter is not None:
            self._exporter.stop()

    def _tell(self) -> None:
        self.served.tell(self._plan.directory, self._plan.problems, self._plan.settings)
