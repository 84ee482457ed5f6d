"""Accept TLS connections: during the handshake they count as connections too.

The event loop's own server reports them only after the handshake, so their number would not be limited by maxconns.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kvref.server.client_warnings import ClientWarnings
from kvref.server.connection_limit import turn_away
from kvref.server.listeners.sockets import BACKLOG, PAUSE, arrivals

if TYPE_CHECKING:
    from kvref.engine.session import Shared
    from kvref.server.connection_limit import Descriptors
    from kvref.server.listeners.listener import Listener

_log = logging.getLogger("kvref.server")

SECONDS: Final = 10.0  # for a handshake
# Reasons of OpenSSL for data that is not a TLS record: of its versions 1.1 to 3.0, and of later ones.
_NO_TLS: Final = {
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
}


class Handshakes:
    """Those of one process."""

    def __init__(self, client_warnings: ClientWarnings) -> None:
        self._client_warnings = client_warnings
        self.waiting = 0  # connections
        self._running: set[asyncio.Task[bool]] = set()

    def take(
        self, make: Callable[[], asyncio.Protocol], connection: socket.socket, tls: ssl.SSLContext | None
    ) -> asyncio.Task[bool]:
        """Serve an accepted connection; the returned task ends with the handshake, and returns whether it succeeded.

        The connection must not block; it is closed if the handshake fails. Without `tls`, there is no handshake.
        """
        self.waiting += tls is not None
        task = asyncio.get_running_loop().create_task(self._take(make, connection, tls))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _take(
        self, make: Callable[[], asyncio.Protocol], connection: socket.socket, tls: ssl.SSLContext | None
    ) -> bool:
        seconds = None if tls is None else SECONDS
        # The address is gone once the handshake has failed.
        peer = None if tls is None else _peer(connection)
        try:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(make, connection, ssl=tls, ssl_handshake_timeout=seconds)
        except OSError as error:
            connection.close()
            if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
                self._client_warnings.foreign_protocol("plaintext", peer, port="a TLS port")
            _log.debug("connection lost before it was accepted: %s", error)
            return False
        else:
            return True
        finally:
            self.waiting -= tls is not None


def _peer(connection: socket.socket) -> object:
    try:
        return connection.getpeername()
    except OSError:
        return None  # the client is gone already


class Host(Protocol):
    """What accepting connections needs of a server."""

    handshakes: Handshakes
    descriptors: Descriptors
    shared: Shared

    @property
    def full(self) -> bool: ...


async def accept(
    listening: socket.socket, listener: Listener, host: Host, make: Callable[[], asyncio.Protocol]
) -> asyncio.Server | TLSAcceptor:
    """Accept connections from a socket, which must not block, until the returned object is closed."""
    if listener.tls is None:
        return await asyncio.get_running_loop().create_server(make, sock=listening, backlog=BACKLOG)
    return TLSAcceptor(listening, listener, host, make)


class TLSAcceptor:
    """Accept TLS connections from a socket that does not block; a reload replaces the context."""

    def __init__(
        self, listening: socket.socket, listener: Listener, host: Host, make: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listening = listening
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
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _open(self) -> None:
        self._later = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        try:
            for connection in arrivals(self._listening):
                self._start_handshake(connection)
        except OSError:
            self._host.descriptors.log_exhaustion()
            self._loop.remove_reader(self._listening)
            self._later = self._loop.call_later(PAUSE, self._open)

    def _start_handshake(self, connection: socket.socket) -> None:
        if self._host.full:
            with connection:
                turn_away(connection)
            self._host.shared.counters.rejected_conns += 1
            return
        connection.settimeout(0)
        self._host.handshakes.take(self._make, connection, self._listener.tls)
