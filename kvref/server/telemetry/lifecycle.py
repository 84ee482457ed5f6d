"""The lifecycle of a server, reported to systemd, metrics and health."""

from __future__ import annotations

import logging
import os
import socket
import time
from typing import Final

from kvref.server.telemetry.event_counters import EventCounters, State

_log = logging.getLogger("kvref.server")

VARIABLE: Final = "NOTIFY_SOCKET"


class Lifecycle:
    """Report the lifecycle of one server.

    Args:
        tally: its numbers.
    """

    def __init__(self, tally: EventCounters) -> None:
        self._tally = tally

    def ready(self) -> None:
        """Connections are accepted."""
        self._tally.state = State.SERVING
        notify("READY=1")

    def reloading(self) -> None:
        """The configuration is read again; `reloaded` must follow."""
        notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def reloaded(self, *, taken: bool) -> None:
        """The configuration that was read is in force, or refused."""
        self._tally.reloaded(taken=taken)
        notify("READY=1")

    def stopping(self) -> None:
        """No more connections are accepted."""
        self._tally.state = State.STOPPING
        notify("STOPPING=1")


def notify(state: str) -> None:
    """Notify the service manager, if one has started this process (sd_notify(3))."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            # In an abstract name, @ means NUL.
            manager.connect(f"\0{path[1:]}" if path.startswith("@") else path)
            manager.sendall(state.encode())
    except OSError as error:
        _log.warning("cannot notify the service manager at %s %r: %s", VARIABLE, path, error)
