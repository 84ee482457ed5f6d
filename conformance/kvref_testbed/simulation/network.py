"""The network of a world: the server's end of a connection, with delay, partial delivery, backpressure and resets.

The order of bytes within a connection is kept, as TCP keeps it; between connections it follows the delays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kvref_testbed.simulation.loop import EARLIEST
from kvref_testbed.simulation.plan import Path


class Receiver(Protocol):
    """A client, as the network sees it."""

    def receive(self, data: bytes) -> None:
        """Take bytes."""

    def closed(self, *, reset: bool) -> None:
        """Note that no more bytes come."""


class _Socket:
    """What the server uses of a socket."""

    def fileno(self) -> int:
        raise OSError("simulated")


class Line(asyncio.Transport):
    """The server's end of a connection.

    Args:
        loop: of the world.
        name: for the log.
        path: delays and sizes.
        client: the other end.
        log: takes a line for each event.
        wrong: takes what a server must not do.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        path: Path,
        client: Receiver,
        log: Callable[[str], None],
        wrong: Callable[[str], None],
    ) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 11211), "socket": _Socket()})
        self._loop = loop
        self._name = name
        self._path = path
        self._client = client
        self._log = log
        self._wrong = wrong
        self._protocol: Any = None
        self._unsent = bytearray()
        self._unread = bytearray()  # arrived while the server did not read
        self._in_flight = 0  # to the client
        self._last_out = self._last_in = 0.0
        self._reading = True
        self._reads_soon = False
        self._paused = False
        self._closing = False
        self._half_closed = False  # by the server
        self._eof = False  # from the client, and not read yet
        self._reset = False  # by either side
        self._finished = False  # the end of the output is on its way
        self._sent = 0  # by the client, in bytes
        self.read = 0  # by the server
        self.lost = False

    def connect(self, protocol: asyncio.Protocol) -> None:
        """Begin."""
        self._protocol = protocol
        protocol.connection_made(self)

    # The server's side.

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send bytes to the client."""
        if self.lost or self._reset:
            return  # the server does not know yet
        if self._closing or self._half_closed:
            self._wrong(f"{self._name}: the server writes {bytes(data)!r} after it has closed the connection")
            return
        self._unsent += data
        self._send()
        if len(self._unsent) > self._path.high_water and not self._paused:
            self._paused = True
            self._log(f"{self._name} writing is paused")
            self._protocol.pause_writing()

    def _send(self) -> None:
        room = self._path.window - self._in_flight
        if room > 0 and self._unsent:
            data = bytes(self._unsent[:room])
            del self._unsent[:room]
            self._in_flight += len(data)
            self._loop.call_at(self._next_out(), self._deliver, data)
        if not self._unsent and (self._half_closed or self._closing):
            self._finish()

    def _next_out(self) -> float:
        self._last_out = max(self._last_out + EARLIEST, self._loop.time() + self._path.out_delay)
        return self._last_out

    def _deliver(self, data: bytes) -> None:
        self._in_flight -= len(data)
        if self._reset:
            return
        self._log(f"{self._name} <- {data!r}")
        self._client.receive(data)
        if not self.lost:
            self._send()
            if self._paused and len(self._unsent) <= self._path.high_water // 4:
                self._paused = False
                self._log(f"{self._name} writing is resumed")
                self._protocol.resume_writing()

    def _finish(self) -> None:
        if self._finished:
            return
        self._finished = True
        self._loop.call_at(self._next_out(), self._end_of_output)
        if self._closing:
            self._loop.call_soon(self._lose, None)

    def _end_of_output(self) -> None:
        if not self._reset:
            self._log(f"{self._name} is closed by the server")
            self._client.closed(reset=False)

    def close(self) -> None:
        """Close once everything is sent."""
        if self._closing:
            return
        finished = self._finished
        self._closing, self._reading = True, False
        if finished:
            self._loop.call_soon(self._lose, None)
        else:
            self._send()

    def write_eof(self) -> None:
        """Close the sending side."""
        if not self._half_closed:
            self._half_closed = True
            self._send()

    def can_write_eof(self) -> bool:
        """Return True."""
        return True

    def abort(self) -> None:
        """Close with whatever is unsent."""
        if not self.lost:
            self._unsent.clear()
            self._closing, self._reset = True, True
            self._client.closed(reset=True)
            self._loop.call_soon(self._lose, None)

    def is_closing(self) -> bool:
        """Return whether the server has closed it, or the client."""
        return self._closing or self.lost

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are not sent."""
        return len(self._unsent)

    def pause_reading(self) -> None:
        """Deliver no input."""
        self._reading = False

    def resume_reading(self) -> None:
        """Deliver input again."""
        self._reading = not self._closing
        self._loop.call_soon(self._read)

    def _lose(self, cause: Exception | None) -> None:
        if not self.lost:
            self.lost = True
            self._protocol.connection_lost(cause)

    # The client's side.

    def send(self, data: bytes, cuts: Sequence[tuple[float, float]]) -> int:
        """Send bytes to the server; return how many bytes have been sent to it.

        Args:
            data: the bytes.
            cuts: where they are cut, as a part of their length, and how much later the rest comes, in seconds.
        """
        begin, later = 0, 0.0
        for part, delay in cuts:
            end = int(len(data) * part)
            if begin < end:
                self._schedule_input(later, data[begin:end])
                begin = end
            later += delay
        self._schedule_input(later, data[begin:])
        self._sent += len(data)
        return self._sent

    def send_eof(self) -> None:
        """Close the client's sending side."""
        self._schedule_input(0.0, b"")

    def _schedule_input(self, later: float, data: bytes) -> None:
        self._last_in = max(self._last_in + EARLIEST, self._loop.time() + self._path.in_delay + later)
        self._loop.call_at(self._last_in, self._arrive, data)

    def _arrive(self, data: bytes) -> None:
        if self._closing or self.lost:
            return
        self._log(f"{self._name} -> {data!r}" if data else f"{self._name} is closed by the client")
        self._unread += data
        self._eof = self._eof or not data
        if not self._path.together:
            self._read()
        elif not self._reads_soon:
            self._reads_soon = True
            self._loop.call_later(self._path.together, self._read)

    def _read(self) -> None:
        self._reads_soon = False
        if not self._reading or self.lost:
            return
        if self._unread:
            data = bytes(self._unread)
            self._unread.clear()
            self.read += len(data)
            self._protocol.data_received(data)
        # As with a socket, the end is read after what came before it.
        if self._eof and self._reading and not self._unread and not self.lost:
            self._eof = False
            if not self._protocol.eof_received():
                self.close()

    def reset(self) -> None:
        """Reset the connection: what is under way is lost."""
        if self.lost or self._closing:
            return
        self._log(f"{self._name} is reset by the client")
        self._reset = self._closing = True
        self._reading = False
        self._unsent.clear()
        self._loop.call_soon(self._lose, ConnectionResetError("reset"))
