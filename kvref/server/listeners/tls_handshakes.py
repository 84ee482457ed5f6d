"""Connections with TLS from their first byte on: while the handshake lasts they count as connections too.

The event loop's own server tells of them only when the handshake is over: any number could wait in it, beside maxconns.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kvref.server.connection_limit import turn_away
from kvref.server.listeners.sockets import BACKLOG, PAUSE, arrivals

if TYPE_CHECKING:
    import ssl

    from kvref.engine.session import Shared
    from kvref.server.connection_limit import Descriptors
    from kvref.server.listeners.listener import Listener

_log = logging.getLogger("kvref.server")

SECONDS: Final = 10.0  # for a handshake


class Handshakes:
    """Those of one process."""

    def __init__(self) -> None:
        self.waiting = 0  # connections
        self._running: set[asyncio.Task[None]] = set()

    def take(
        self, make: Callable[[], asyncio.Protocol], connection: socket.socket, tls: ssl.SSLContext | None
    ) -> asyncio.Task[None]:
        """Serve a connection that was accepted; what is returned is done when its handshake is, well or not.

        Args:
            make: returns what speaks with the client.
            connection: not blocking; it is closed where the handshake fails.
            tls: None: there is no handshake.
        """
        self.waiting += tls is not None
        task = asyncio.get_running_loop().create_task(self._take(make, connection, tls))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _take(
        self, make: Callable[[], asyncio.Protocol], connection: socket.socket, tls: ssl.SSLContext | None
    ) -> None:
        seconds = None if tls is None else SECONDS
        try:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(make, connection, ssl=tls, ssl_handshake_timeout=seconds)
        except OSError as error:
            connection.close()
            _log.debug("connection lost before it was accepted: %s", error)
        finally:
            self.waiting -= tls is not None


class Host(Protocol):
    """What an entrance needs of a server."""

    handshakes: Handshakes
    descriptors: Descriptors
    shared: Shared

    @property
    def full(self) -> bool:
        """Tell whether there are as many connections as may be."""


async def accept(
    place: socket.socket, listener: Listener, host: Host, make: Callable[[], asyncio.Protocol]
) -> asyncio.Server | TLSAcceptor:
    """Take connections from a socket until what is returned is closed.

    Args:
        place: listened on, not blocking.
        listener: says whether TLS is spoken there.
        host: the server.
        make: returns what speaks with a client.
    """
    if listener.tls is None:
        return await asyncio.get_running_loop().create_server(make, sock=place, backlog=BACKLOG)
    return TLSAcceptor(place, listener, host, make)


class TLSAcceptor:
    """Take connections with TLS from a socket that is listened on.

    Args:
        place: the socket, not blocking.
        listener: has the context, another one after a reload.
        host: the server.
        make: returns what speaks with a client.
    """

    def __init__(
        self, place: socket.socket, listener: Listener, host: Host, make: Callable[[], asyncio.Protocol]
    ) -> None:
        self._place = place
        self._listener = listener
        self._host = host
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._later: asyncio.TimerHandle | None = None
        self._open()

    def close(self) -> None:
        """Take no more, and listen no more."""
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._place)
        self._place.close()

    def _open(self) -> None:
        self._later = None
        self._loop.add_reader(self._place, self._accept)

    def _accept(self) -> None:
        try:
            for connection in arrivals(self._place):
                self._welcome(connection)
        except OSError:
            self._host.descriptors.none_left()
            self._loop.remove_reader(self._place)
            self._later = self._loop.call_later(PAUSE, self._open)

    def _welcome(self, connection: socket.socket) -> None:
        if self._host.full:
            with connection:
                turn_away(connection)
            self._host.shared.counters.rejected_conns += 1
            return
        connection.settimeout(0)
        self._host.handshakes.take(self._make, connection, self._listener.tls)
