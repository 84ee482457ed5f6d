"""Serve metrics and health, for one process in threads, for several in a process of their own.

With several processes the parent forks, and must therefore have no threads.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NoReturn

from kvref.addresses import Address
from kvref.errors import ConfigError, install
from kvref.server.listeners.sockets import listen, on_loopback, where
from kvref.server.telemetry.event_counters import EventCounters, State
from kvref.server.telemetry.sources import Source
from kvref.server.workers.channel import Channel, fork

_log = logging.getLogger("kvref.server")


class Exporter:
    """Sockets for HTTP, which are logged, and what is shown there.

    Args:
        address: port 0 is any free one; None: only on the sockets.
        sockets: are listened on already.
        hosts: further names that a Host header may have.

    Raises:
        ConfigError: the address cannot be listened on, or the extra `metrics` is not installed.
    """

    def __init__(
        self, address: Address | None, sockets: Sequence[socket.socket] = (), hosts: Sequence[str] = ()
    ) -> None:
        try:
            import prometheus_client  # noqa: F401, PLC0415 - an extra
        except ModuleNotFoundError as lack:
            raise ConfigError(f"--metrics: {lack}: {install('metrics')}") from lack
        try:
            self._sockets = [*sockets, *(listen(address) if address is not None else ())]
        except ConfigError as error:
            raise ConfigError(str(error).replace("--listen", "--metrics")) from error
        self._hosts = [*hosts, *([address.host] if address is not None else [])]
        self._pid = 0
        self.channel: Channel | None = None  # to the metrics process; readable when that process has ended
        for each in self._sockets:
            place = where(each)
            _log.info("metrics on http://%s/metrics, health on /healthz", place, extra={"address": place})
            if not on_loopback(each):
                _log.warning("metrics on %s are reachable from other hosts without authentication", place)

    def serve(self, source: Source) -> None:
        """Answer from now on, in threads of this process."""
        from kvref.server.telemetry import http, metrics  # noqa: PLC0415 - need an extra

        http.serve(self._sockets, metrics.registry(source), partial(health_problem, source.tally), self._hosts)

    def start(self, source: Source, close_inherited: Callable[[], None]) -> Channel:
        """Serve in a forked process, which calls `close_inherited` first; return what becomes readable when it ends."""

        def work(channel: Channel) -> NoReturn:
            try:
                close_inherited()
                self.serve(source)
                select.select([channel], [], [])  # readable when the parent is gone, which sends nothing
            finally:
                os._exit(0)

        self._pid, self.channel = fork(work)
        return self.channel

    def close_inherited(self) -> None:
        """Close this process's ends of everything, where another one serves it."""
        for each in self._sockets:
            each.close()
        if self.channel is not None:
            self.channel.close()

    def reap(self) -> None:
        """Record that the process has ended."""
        assert self.channel is not None
        self.channel.close()
        self.channel = None
        os.waitpid(self._pid, 0)

    def stop(self) -> None:
        """End the process, where there is one."""
        if self.channel is not None:
            os.kill(self._pid, signal.SIGKILL)
            self.reap()


MAX_SILENCE: Final = 5.0  # seconds without a beat
MAX_UNANSWERED: Final = 2.0  # seconds that the store may take for an answer


def health_problem(tally: EventCounters) -> str:
    """Return why the server cannot serve, empty if it can: each process that runs must be well."""
    if tally.state is not State.SERVING:
        return "the server is starting" if tally.state is State.STARTING else "the server is stopping"
    running = [process for process in tally.processes if process.pid]
    if not running:
        return "no worker runs"
    for process in running:
        if process.silence > MAX_SILENCE:
            return f"process {process.pid} has been unresponsive for {process.silence:.0f} s"
        if process.unanswered > MAX_UNANSWERED:
            return f"the store has not answered for {process.unanswered:.0f} s"
        reason = process.store_error
        if reason is None:
            return "the store has not answered yet"
        if reason:
            return f"the store cannot be used: {reason}"
    return ""
