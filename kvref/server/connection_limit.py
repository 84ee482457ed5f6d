"""Limit the connections of a server: `maxconns`, and a process without a free descriptor."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from contextlib import suppress
from typing import Final

from kvref.log_throttle import LogThrottle

_log = logging.getLogger("kvref.server")

# What memcached 1.6.18 sends with its default, maxconns_fast, in either protocol.
TOO_MANY: Final = b"ERROR Too many open connections\r\n"
# Descriptors for anything but clients: up to 64 connections to a database, a file with its log, what it listens on.
RESERVE: Final = 96


def connection_limit(maxconns: int, workers: int = 1) -> int:
    """Return the maximum number of connections; raise the limit of descriptors for them as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = maxconns + RESERVE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return maxconns
    # With few descriptors half of them are for clients: better some than none.
    return min(maxconns, max(soft - RESERVE, soft // 2) * workers)


def log_connection_limit(maxconns: int, workers: int = 1) -> None:
    """Log the maximum number of connections, see `connection_limit`."""
    most = connection_limit(maxconns, workers)
    if most < maxconns:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        _log.warning("at most %d connections instead of maxconns=%d: `ulimit -n` is %d: raise it", most, maxconns, soft)
    else:
        _log.info("at most %d connections (maxconns)", most)


def turn_away(connection: socket.socket) -> None:
    """Send the error for too many connections on a new connection; the caller closes it."""
    connection.settimeout(0)
    with suppress(OSError):  # it is gone again
        connection.send(TOO_MANY)


class Descriptors:
    """Compare the file descriptors of new connections with the limit of the process."""

    def __init__(self) -> None:
        self._throttle = LogThrottle(10.0)

    def taken(self, transport: asyncio.BaseTransport, connections: int) -> None:
        """Check the descriptor of a new connection."""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 2 * connections < limit:
            return  # uvloop keeps the socket object returned below as long as the connection exists
        connection = transport.get_extra_info("socket")
        # The system assigns the lowest free descriptor, so the highest one is assigned when all others are in use.
        if connection is not None and connection.fileno() + 1 >= limit:
            self.log_exhaustion()

    def log_exhaustion(self) -> None:
        """Log that further connections are rejected."""
        if self._throttle.suppressed() is not None:
            _log.error(
                "new connections are closed immediately: the process has no free file descriptor: raise `ulimit -n`"
            )
