"""One connection to the endpoint: send bytes, read up to a sentinel, always with a deadline.

The sentinel is a request with a known reply: replies are in order, so everything before its reply is the reply to the
bytes sent before. In text it is `version`, in binary a noop with a unique opaque.
"""

from __future__ import annotations

import re
import select
import socket
import struct
import time
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final, Self

from kvref.addresses import SocketAddress, connect, format_address
from kvref_conformance.errors import CannotJudge
from kvref_conformance.wire.frames import REPLY, encode

if TYPE_CHECKING:
    from collections.abc import Callable

# Long enough for a local endpoint to answer what it should not answer at all.
QUIET_SECONDS: Final = 0.1
# Within which an endpoint answers that gets one request at a time.
PACE_SECONDS: Final = 0.15
CONNECT_SECONDS: Final = 5.0
# Between two writes: the only way to make two packets of them.
PACKET_SECONDS: Final = 0.01
# Within which the sentinel's VERSION line follows one of the answer itself; in two packets it did, now and then.
SENTINEL_SECONDS: Final = 1.0
_VERSION: Final = re.compile(rb"^ *version\b", re.MULTILINE)
# Bytes that one answer may have beyond those that the case allows; an item has 1 MiB.
MAX_ANSWER_BYTES: Final = 4 << 20
# Bytes kept of an answer beyond its limit.
MAX_SHOWN_BYTES: Final = 1024
_CHUNK: Final = 1 << 16
_MAX_LINE: Final = 512

SENTINEL_OPAQUE: Final = 0x6B767266
BINARY_ASK: Final = encode(f"noop opaque={SENTINEL_OPAQUE}")
BINARY_ANSWER: Final = bytes([REPLY]) + BINARY_ASK[1:]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came.

    Args:
        data: the bytes before the sentinel's line.
        closed: the endpoint closed the connection.
        hang: neither the sentinel's answer nor a close came in time.
        limit: bytes that the answer exceeded, whereupon the connection was closed and `data` has its beginning; else 0.
    """

    data: bytes
    closed: bool = False
    hang: bool = False
    limit: int = 0

    def note(self, patience: float) -> str:
        """Say how it ended, where not by an answer; `patience` in seconds."""
        if self.limit:
            return beyond(self.limit)
        if self.hang:
            return f"hang: no complete reply within {patience:g} s"
        return "the endpoint closed the connection" if self.closed else ""


class Connection:
    """A connection to a server: bytes are sent, and read until a deadline, a silence, or the answer to a sentinel.

    Args:
        where: host and port, the path of a unix socket, or a connected socket.
        sentinel: the answer that ends each answer: the endpoint's whole VERSION line, CR LF included, or BINARY_ANSWER;
            empty where the end is seen in another way.
        paced: the sentinel's request is not sent before the answer has come, for an endpoint that answers the first
            request of a packet only.

    Attributes:
        closed: the other side closed the connection, or this one after an answer beyond its limit.

    Raises:
        OSError: nothing listens there.
    """

    def __init__(
        self,
        where: SocketAddress | socket.socket,
        sentinel: bytes = b"",
        *,
        paced: bool = False,
    ) -> None:
        self._socket = where if isinstance(where, socket.socket) else connect(where, CONNECT_SECONDS)
        self._sentinel = sentinel
        self._paced = paced
        self._limit = MAX_ANSWER_BYTES
        self._flood: Reply | None = None
        self._data = bytearray()
        self._versions = 0  # lines like the sentinel's in the answer to what `begin` sent, at most
        self.closed = False
        self.binary = sentinel == BINARY_ANSWER
        self.request = BINARY_ASK if self.binary else b"version\r\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the file descriptor, -1 once it is closed."""
        return self._socket.fileno()

    def expect_sentinel(self, *, binary: bool) -> None:
        """Set the protocol, and with it the sentinel: if the connection was opened without one, what it answers now."""
        if binary and not self.binary:
            self.binary, self.request = True, BINARY_ASK
            self._sentinel = BINARY_ANSWER if self._sentinel else b""
        if not self._sentinel:
            self.send(self.request)
            reply = self.read(lambda data: 0.0 if data.endswith((b"\n", BINARY_ANSWER)) else inf, CONNECT_SECONDS)
            self._sentinel = reply.data or self.request

    def allow(self, size: int) -> None:
        """Set the limit of the answers that follow to MAX_ANSWER_BYTES more than so many bytes."""
        self._limit = MAX_ANSWER_BYTES + size

    def send(self, data: bytes, *, sentinel: bool = False, half: bool = False) -> bool:
        """Send bytes.

        Args:
            data: may be empty.
            sentinel: the sentinel's request follows, so that `end` sees the end of the answer.
            half: nothing more will be sent; the other side sees the end.

        Returns:
            Whether they were sent. What was answered before the other side closed can be read in any case.
        """
        try:
            if sentinel and self._paced:
                self._socket.sendall(data)
                self._read(lambda _: inf, PACE_SECONDS)
                data = b""
            self._socket.sendall(data + self.request if sentinel else data)
            if half:
                self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return True

    def exchange(self, pieces: tuple[bytes, ...], versions: int = 0, patience: float = 5.0) -> Reply:
        """Send packets and the sentinel, and read the answer.

        Args:
            pieces: one packet each.
            versions: VERSION lines that the answer itself should have, at most.
            patience: seconds until silence is a hang.
        """
        if self._paced:
            self._send_packets(pieces)
            return self.end(patience)
        return self._exchange((*pieces[:-1], pieces[-1] + self.request), versions + 1, patience)

    def send_until_close(self, pieces: tuple[bytes, ...], patience: float = 5.0) -> Reply:
        """Send packets without a sentinel and read until the endpoint closes; `patience` in seconds."""
        return self._exchange(pieces, 0, patience)

    def send_quietly(self, pieces: tuple[bytes, ...]) -> Reply:
        """Send packets to which nothing should be answered, and return what comes within QUIET_SECONDS."""
        reply = self._exchange(pieces, 0, QUIET_SECONDS)
        return replace(reply, hang=False)

    def begin(self, pieces: tuple[bytes, ...], silent: float) -> bytes:
        """Send packets and the sentinel, and return what comes within so many seconds: "" where it has to wait."""
        self._versions = 0 if self.binary else len(_VERSION.findall(b"".join(pieces)))
        self._send_packets(pieces)
        self._read(lambda data: 0.0 if data else silent, silent)
        return self.take()

    def end(self, patience: float) -> Reply:
        """Read the answer to what `begin` sent, which may have VERSION lines itself; `patience` in seconds."""
        return self._answer(1 + self._versions, patience)

    def read(self, silence: Callable[[bytearray], float], patience: float) -> Reply:
        """Read without a sentinel.

        Args:
            silence: seconds without a further byte that end what has come so far; 0: it is whole.
            patience: seconds for everything.
        """
        self._read(silence, patience)
        return self._reply(0)

    def has_bytes(self, seconds: float) -> bool:
        """Return whether there is something to read, or an end to see, within so many seconds."""
        # Not select, which takes no file descriptor beyond 1023: some crowds are larger.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def receive(self) -> bool:
        """Take what has come, or the end of the connection; return whether it is still open."""
        try:
            received = self._socket.recv(_CHUNK)
        except ConnectionError:
            received = b""
        self.closed = not received
        self._data += received
        if len(self._data) > self._limit:
            self.close()
            self.closed = True
            self._flood = Reply(bytes(self._data[:MAX_SHOWN_BYTES]), limit=self._limit)
        return not self.closed

    def take(self) -> bytes:
        """Return what `receive` has taken, once."""
        data = bytes(self._data)
        self._data.clear()
        return data

    def close(self, *, reset: bool = False) -> None:
        """Close the connection at once; with a reset the other side gets no end of file but an error."""
        if reset and self.fileno() >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def hang_up(self, patience: float = CONNECT_SECONDS) -> bool:
        """Close this side, and wait until the other has: it has let go of tables and locks then.

        Args:
            patience: in seconds.

        Returns:
            Whether it did in time.
        """
        self.send(b"", half=True)
        return self.drain(patience)

    def drain(self, patience: float) -> bool:
        """Drop what comes until the other side closes, and close; return whether it did within so many seconds."""
        deadline = time.monotonic() + patience
        while not self.closed and (rest := deadline - time.monotonic()) > 0 and self.has_bytes(rest):
            self._data.clear()
            self.receive()
        self.close()
        return self.closed

    def _send_packets(self, pieces: tuple[bytes, ...]) -> None:
        for piece in pieces[:-1]:
            self.send(piece)
            time.sleep(PACKET_SECONDS)
        self.send(pieces[-1], sentinel=True)

    def _exchange(self, pieces: tuple[bytes, ...], sentinels: int, patience: float) -> Reply:
        if self._flood is not None:
            return self._flood
        try:
            for number, piece in enumerate(pieces):
                if number:
                    time.sleep(PACKET_SECONDS)
                self._socket.sendall(piece)
        except TimeoutError:
            return Reply(b"", hang=True)
        except OSError:
            return Reply(b"", closed=True)
        return self._answer(sentinels, patience)

    def _answer(self, sentinels: int, patience: float) -> Reply:
        def silence(data: bytearray) -> float:
            if sentinels and self._ends(data, sentinels):
                return 0.0
            # The sentinel's line may have come, or one of the answer itself that looks like it.
            return SENTINEL_SECONDS if sentinels > 1 and self._ends(data, 1) else inf

        self._read(silence, patience)
        return self._reply(sentinels)

    def _reply(self, sentinels: int) -> Reply:
        if self._flood is not None:
            return self._flood
        whole = sentinels and self._ends(self._data, 1 if not self.closed else sentinels)
        data = self.take()
        if whole:
            return Reply(data[: -len(self._sentinel)])
        return Reply(data, closed=self.closed, hang=not self.closed)

    def _read(self, silence: Callable[[bytearray], float], patience: float) -> None:
        deadline = time.monotonic() + patience
        while not self.closed:
            rest = min(silence(self._data), deadline - time.monotonic())
            if rest <= 0 or not self.has_bytes(rest):
                return
            self.receive()

    def _ends(self, data: bytearray, sentinels: int) -> bool:
        return data.endswith(self._sentinel) and data.count(self._sentinel) >= sentinels


def version_line(address: SocketAddress) -> bytes:
    """Return the line with which an endpoint answers `version`.

    Raises:
        CannotJudge: no server listens there, or it does not use the memcached protocol.
    """
    where = format_address(address)
    late = f"{where} did not answer `version` within {CONNECT_SECONDS:.0f} s: no memcached endpoint?"
    try:
        with Connection(address) as connection:
            connection.send(connection.request)
            reply = connection.read(
                lambda data: 0.0 if b"\n" in data or len(data) >= _MAX_LINE else inf, CONNECT_SECONDS
            )
    except TimeoutError as error:
        raise CannotJudge(late) from error
    except OSError as error:
        raise CannotJudge(f"cannot reach {where}: {error.strerror or error}") from error
    line = reply.data[: reply.data.find(b"\n") + 1] or reply.data[:_MAX_LINE]
    if reply.hang and len(line) < _MAX_LINE and not line.endswith(b"\n"):
        raise CannotJudge(late)
    if not line.startswith(b"VERSION ") or not line.endswith(b"\r\n"):
        raise CannotJudge(f"{where} is not a memcached endpoint: it answered `version` with {line!r}")
    return line


def beyond(limit: int) -> str:
    """Return the note on an answer that exceeded a limit, in bytes."""
    return f"more than {limit} bytes without the end of a reply: the suite closed the connection"
