"""The server that a client under test connects to: honest, except for the fault that is armed."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kvref_conformance.clients.exchange import Exchange
from kvref_conformance.clients.login import Gate
from kvref_conformance.clients.text import Raw
from kvref_conformance.clients.tls import OF_LIBRARY, LibraryTls, MemoryTls, Unencrypted, openssl
from kvref_conformance.clients.unread import unread_at_client, unread_at_server, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvref_conformance.clients.faults import Fault, Unit
    from kvref_conformance.clients.store import Store
    from kvref_conformance.clients.text import Command
    from kvref_conformance.clients.tls import Transport

_CHUNK: Final = 1 << 16
_BETWEEN_SEGMENTS: Final = 0.0003  # seconds
_AFTER_APART: Final = 0.03  # seconds before each reply behind a segment of `Fault.apart`, which is read without it
_RESET: Final = struct.pack("ii", 1, 0)
RECEIVED: Final = "received"
SENT: Final = "sent"
CLOSED: Final = "closed"
HANDSHAKE: Final = "handshake"


class Event(NamedTuple):
    """What happened on a connection: its number from 1 on, what, and the bytes.

    RECEIVED and SENT have bytes, with TLS those within it. HANDSHAKE says how it ended. CLOSED has none.
    """

    connection: int
    kind: str
    data: bytes = b""


class Entry(NamedTuple):
    """What a client needs before its first command.

    Args:
        certificate: of TLS, one of `tls.CERTIFICATES`; "": without TLS.
        requires_certificate: the client must have one.
        credentials: user and password; None: the server requires none.
    """

    certificate: str = ""
    requires_certificate: bool = False
    credentials: tuple[str, str] | None = None


OPEN: Final = Entry()


class ScriptedServer:
    """A memcached on its own port on the loopback interface.

    Attributes:
        events: everything received and sent, in order.
        commands: every command received, in order.

    Args:
        store: the items.
        timeout: of the client, in seconds; the unit of `Fault.wait`.
        entry: what precedes the first command.
    """

    def __init__(self, store: Store, timeout: float, entry: Entry = OPEN) -> None:
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self._store, self._timeout, self._entry = store, timeout, entry
        self._fault: Fault | None = None
        self._left = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._returned = threading.Event()  # the client has the result of the call before a segment of `Fault.apart`
        self._apart = threading.Event()  # this segment is sent, or the connection has ended
        self._connections: list[socket.socket] = []
        self._replying: set[socket.socket] = set()  # connections with a request that is read and not yet replied to
        self._defect: Exception | None = None  # of this class; a verdict is none of the client's then
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._returned.set()
        with self._lock:
            # A thread that is in accept or recv returns from it.
            for each in (self._listener, *self._connections):
                _shut_down(each)
        for thread in self._threads:
            thread.join()
        self._listener.close()
        if self._defect is not None:
            raise self._defect

    @property
    def port(self) -> int:
        """Return the port."""
        port: int = self._listener.getsockname()[1]
        return port

    def arm(self, fault: Fault) -> None:
        """Apply a fault to the next replies it is made for. Raises KvrefError if it needs a library that is missing."""
        if fault.records in OF_LIBRARY:
            openssl()
        with self._lock:
            self._fault, self._left = fault, fault.times

    def send_apart(self) -> None:
        """Send the segment that `Fault.apart` holds back, and wait until it is sent; call it between two calls."""
        self._returned.set()
        self._apart.wait(self._timeout)

    def settle(self) -> bool:
        """Wait until all requests that have arrived are replied to, except those whose reply a fault delays.

        The client's next call then finds the same bytes, however busy the machine is.

        Returns:
            False if a request remains without a reply after the client's timeout.
        """
        return wait_until(self._is_settled, self._timeout)

    def _is_settled(self) -> bool:
        with self._lock:
            if select.select([self._listener], [], [], 0)[0]:
                return False
            # In this order: a request is marked as one without a reply before it is read.
            return not any(unread_at_server(each) or each in self._replying for each in self._connections)

    def _due(self, verbs: set[str]) -> Fault | None:
        return self._fault if self._fault is not None and self._left and self._fault.on in verbs else None

    def _taken(self, verbs: set[str], units: Sequence[Unit] = ()) -> Fault | None:
        with self._lock:
            fault = self._due(verbs)
            if fault is None or not fault.fits(units):
                return None
            self._left -= 1
            return fault

    def _accept(self) -> None:
        number = 0
        while not self._stopped.is_set():
            select.select([self._listener], [], [])
            with self._lock:
                try:
                    connection, _ = self._listener.accept()
                except OSError:
                    return
                self._connections.append(connection)
                if self._stopped.is_set():
                    _shut_down(connection)
            number += 1
            thread = threading.Thread(target=self._serve, args=(connection, number))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            fault = self._taken({"connect"})
            if fault is None:
                transport = self._transport(connection)
                if self._handshake(connection, transport, number):
                    self._converse(connection, transport, number)
            elif fault.reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            elif fault.silent:
                _wait_for_end(connection)
        except OSError:
            pass  # the client has closed the connection
        except Exception as error:  # noqa: BLE001 - `__exit__` raises it
            self._defect = error
        finally:
            self.events.append(Event(number, CLOSED))
            with self._lock:
                self._connections.remove(connection)
                self._replying.discard(connection)
                connection.close()

    def _transport(self, connection: socket.socket) -> Transport:
        certificate, requires_certificate, _ = self._entry
        if not certificate:
            return Unencrypted(connection)
        records = "" if self._fault is None else self._fault.records
        if records in OF_LIBRARY:
            return LibraryTls(connection, certificate, records, self._timeout)
        return MemoryTls(connection, certificate, requires_certificate=requires_certificate)

    def _handshake(self, connection: socket.socket, transport: Transport, number: int) -> bool:
        def send(flight: bytes) -> bool:
            fault = self._taken({"handshake"}, [Raw(flight)])
            if fault is None:
                connection.sendall(flight)
                return True
            remains = self._apply(connection, fault, [Raw(flight)], connection.sendall)
            if remains and (fault.silent or fault.text is not None):
                _wait_for_end(connection)
                return False
            return remains

        if not self._entry.certificate:
            return True
        try:
            done = transport.handshake(send)
        except OSError as error:
            self.events.append(Event(number, HANDSHAKE, str(error).encode()))
            return False
        self.events.append(Event(number, HANDSHAKE, b"complete" if done else b"ended by the server"))
        return done

    def _converse(self, connection: socket.socket, transport: Transport, number: int) -> None:
        exchange = Exchange(self._store, Gate(self._entry.credentials), self._due, self.commands)
        while not exchange.ended and (data := self._request(connection, transport)):
            self.events.append(Event(number, RECEIVED, data))
            while exchange.receive(data):
                if not self._reply(connection, transport, number, *exchange.reply()):
                    return
                data = b""
            self._replying.discard(connection)

    def _request(self, connection: socket.socket, transport: Transport) -> bytes:
        if isinstance(transport, Unencrypted):
            connection.recv(1, socket.MSG_PEEK)
            self._replying.add(connection)
        data = transport.recv()
        self._replying.add(connection)
        return data

    def _reply(
        self, connection: socket.socket, transport: Transport, number: int, units: list[Unit], verbs: set[str]
    ) -> bool:
        """Send a reply; return whether the connection remains."""
        fault = self._taken(verbs, units)
        records = "" if fault is None else fault.records

        def send(data: bytes) -> bool:
            # Recorded first: the client may act on it before this thread continues.
            self.events.append(Event(number, SENT, data))
            return transport.sendall(data, records)

        if fault is not None:
            return self._apply(connection, fault, units, send)
        data = b"".join(unit.render() for unit in units)
        if self._apart.is_set():
            time.sleep(_AFTER_APART)
        return send(data) if data else True

    def _apply(
        self, connection: socket.socket, fault: Fault, units: list[Unit], send: Callable[[bytes], bool | None]
    ) -> bool:
        """Send a changed reply; return whether the connection remains."""
        segments = fault.segments(units)
        slow = time.monotonic() + self._timeout / 4  # later segments are sent whether the client has read or not
        if fault.wait or fault.apart:
            self._replying.discard(connection)
        if fault.wait and not fault.wait_at:
            self._stopped.wait(fault.wait * self._timeout)
        try:
            for place, segment in enumerate(segments):
                if place and fault.apart:
                    # A client that waits for more than its reply times out.
                    self._returned.wait(2 * self._timeout)
                elif place and fault.wait:
                    self._stopped.wait(fault.wait * self._timeout)
                elif place and time.monotonic() < slow:
                    time.sleep(_BETWEEN_SEGMENTS)
                    wait_until(lambda: not unread_at_client(connection), slow - time.monotonic())
                if segment and send(segment) is False:
                    return False
        finally:
            if fault.apart:
                self._apart.set()
        if fault.reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        return not fault.ends


def _wait_for_end(connection: socket.socket) -> None:
    while connection.recv(_CHUNK):
        pass


def _shut_down(connection: socket.socket) -> None:
    # It may have ended.
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
