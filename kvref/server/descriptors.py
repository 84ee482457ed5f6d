"""A process without a free descriptor: the log says so once in a while, and not for each client that is turned away."""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Final

from kvref.log_throttle import LogThrottle

_log = logging.getLogger("kvref.server")

TELL_EVERY: Final = 10.0  # seconds between two lines of the log


class Descriptors:
    """Where the descriptors of new connections stand beside the limit of the process."""

    def __init__(self) -> None:
        self._throttle = LogThrottle(TELL_EVERY)

    def taken(self, transport: asyncio.BaseTransport, connections: int) -> None:
        """Take note of a new connection.

        Args:
            transport: its own.
            connections: how many there are.
        """
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 2 * connections < limit:
            return  # uvloop keeps what it is asked for here as long as the connection lasts
        connection = transport.get_extra_info("socket")
        # The system gives the lowest one that is free, so that the last one comes when all are used.
        if connection is not None and connection.fileno() + 1 >= limit:
            self.none_left()

    def none_left(self) -> None:
        """Tell that further connections are turned away."""
        if self._throttle.suppressed() is not None:
            _log.error(
                "new connections are closed immediately: the process has no free file descriptor: raise `ulimit -n`"
            )
