"""The server that a client under test connects to: honest, except for the fault that is armed."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kvref_conformance.clients import binary, text
from kvref_conformance.frames import REQUEST

if TYPE_CHECKING:
    from kvref_conformance.clients.faults import Fault, Unit
    from kvref_conformance.clients.store import Store
    from kvref_conformance.clients.text import Command

_CHUNK: Final = 1 << 16
_BETWEEN_SEGMENTS: Final = 0.0003  # seconds
APART: Final = 0.02  # seconds between a reply and a surplus one of `Fault.apart`
_RESET: Final = struct.pack("ii", 1, 0)
RECEIVED: Final = "received"
SENT: Final = "sent"
CLOSED: Final = "closed"


class Event(NamedTuple):
    """What happened on a connection: its number from 1 on, RECEIVED, SENT or CLOSED, and the bytes."""

    connection: int
    kind: str
    data: bytes = b""


class ScriptedServer:
    """A memcached on a port of its own on the loopback interface.

    Attributes:
        events: everything received and sent, in order.
        commands: every command received, in order.

    Args:
        store: the items.
        timeout: of the client, in seconds; the unit of `Fault.wait`.
    """

    def __init__(self, store: Store, timeout: float) -> None:
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self._store, self._timeout = store, timeout
        self._fault: Fault | None = None
        self._left = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with self._lock:
            # A thread that is in accept or recv returns from it.
            for each in (self._listener, *self._connections):
                _shut(each)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    @property
    def port(self) -> int:
        """Return the port."""
        port: int = self._listener.getsockname()[1]
        return port

    def arm(self, fault: Fault) -> None:
        """Apply a fault to the next replies it is made for."""
        with self._lock:
            self._fault, self._left = fault, fault.times

    def _taken(self, verbs: set[str]) -> Fault | None:
        with self._lock:
            if self._fault is None or not self._left or self._fault.on not in verbs:
                return None
            self._left -= 1
            return self._fault

    def _accept(self) -> None:
        number = 0
        while not self._stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            number += 1
            with self._lock:
                self._connections.append(connection)
                if self._stopped.is_set():
                    _shut(connection)
            thread = threading.Thread(target=self._serve, args=(connection, number))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            fault = self._taken({"connect"})
            if fault is None:
                self._converse(connection, number)
            elif fault.reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            elif fault.silent:
                while connection.recv(_CHUNK):
                    pass
        except OSError:
            pass  # the client has closed the connection
        finally:
            self.events.append(Event(number, CLOSED))
            with self._lock:
                self._connections.remove(connection)
                connection.close()

    def _converse(self, connection: socket.socket, number: int) -> None:
        buffer = bytearray()
        units: list[Unit] = []
        verbs: set[str] = set()
        while data := connection.recv(_CHUNK):
            self.events.append(Event(number, RECEIVED, data))
            buffer += data
            # The replies to the commands of one segment are one reply for a fault, as are those to quiet commands.
            complete = False
            while buffer:
                part = binary if buffer[0] == REQUEST else text
                command = part.take(buffer)
                if command is None:
                    break
                self.commands.append(command)
                verbs |= {command.verb, "key"} if command.keys else {command.verb}
                units += part.answer(command, self._store)
                complete = not command.quiet
                if command.verb == "quit":
                    return
            if complete:
                if not self._reply(connection, number, units, verbs):
                    return
                units, verbs = [], set()

    def _reply(self, connection: socket.socket, number: int, units: list[Unit], verbs: set[str]) -> bool:
        """Send a reply; return whether the connection remains."""
        fault = self._taken(verbs)
        if fault is None:
            self._send(connection, number, b"".join(unit.render() for unit in units))
            return True
        segments = fault.segments(units)
        if fault.wait and not fault.wait_at:
            self._stopped.wait(fault.wait * self._timeout)
        for place, segment in enumerate(segments):
            if place:
                time.sleep(APART if fault.apart else _BETWEEN_SEGMENTS)
                if fault.wait:
                    self._stopped.wait(fault.wait * self._timeout)
            self._send(connection, number, segment)
        if fault.reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        return not fault.ends

    def _send(self, connection: socket.socket, number: int, data: bytes) -> None:
        if data:
            # Recorded first: the client may act on it before this thread continues.
            self.events.append(Event(number, SENT, data))
            connection.sendall(data)


def _shut(connection: socket.socket) -> None:
    # It may have ended.
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
