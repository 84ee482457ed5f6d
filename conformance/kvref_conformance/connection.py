"""One connection to the endpoint: send bytes, read up to a sentinel, always with a deadline.

The sentinel is a request with a known reply: replies are in order, so everything before its reply is the reply to the
bytes sent before. In text it is `version`, in binary a noop with a unique opaque.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self

from kvref.addresses import SocketAddress, connect, shown
from kvref_conformance.errors import CannotJudge
from kvref_conformance.frames import REPLY, encode

# Long enough for a local endpoint to answer what it should not answer at all.
QUIET_SECONDS: Final = 0.1
# Within which an endpoint answers that gets one request at a time.
PACE_SECONDS: Final = 0.15
CONNECT_SECONDS: Final = 5.0
# Within which the sentinel's VERSION line follows one of the answer itself; in two packets it did, now and then.
BEHIND_SECONDS: Final = 1.0
# Bytes that one answer may have beyond those that the case allows; an item has 1 MiB.
MAX_ANSWER_BYTES: Final = 4 << 20
# Bytes kept of an answer beyond its limit.
KEPT_BYTES: Final = 1024
_CHUNK: Final = 1 << 16
_MAX_LINE: Final = 512

BINARY_ASK: Final = encode(f"noop opaque={0x6B767266}")
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
    """A connection to the endpoint.

    Args:
        address: host and port, or the path of a unix socket.
        sentinel: the answer that ends each answer: the endpoint's whole VERSION line, CR LF included, or BINARY_ANSWER.
        paced: the sentinel's request is not sent before the answer has come, for an endpoint that answers the first
            request of a packet only.
    """

    def __init__(self, address: SocketAddress, sentinel: bytes, *, paced: bool = False) -> None:
        self._socket = connect(address, CONNECT_SECONDS)
        self._sentinel = sentinel
        self._paced = paced
        self._limit = MAX_ANSWER_BYTES
        self._flood: Reply | None = None
        self.binary = sentinel == BINARY_ANSWER
        self._ask = BINARY_ASK if self.binary else b"version\r\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def hang_up(self) -> None:
        """Close the connection and wait until the endpoint has, so that it has let go of tables and locks."""
        with suppress(OSError):  # closed already
            self._socket.shutdown(socket.SHUT_WR)
            self._read(0, time.monotonic() + CONNECT_SECONDS)
        self.close()

    def drop(self, *, reset: bool) -> None:
        """Close the connection at once; with a reset the endpoint gets no end of file but an error."""
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def begin(self, piece: bytes, silent: float) -> bytes:
        """Send a packet and the sentinel, and return what comes within so many seconds: "" where it has to wait."""
        self._socket.sendall(piece + self._ask)
        ready = silent and select.select([self._socket], [], [], silent)[0]
        return self._socket.recv(_CHUNK) if ready else b""

    def end(self, patience: float) -> Reply:
        """Read the answer to what `begin` sent; `patience` in seconds."""
        return self._read(1, time.monotonic() + patience)

    def allow(self, size: int) -> None:
        """Set the limit of the answers that follow to MAX_ANSWER_BYTES more than so many bytes."""
        self._limit = MAX_ANSWER_BYTES + size

    def ask(self, pieces: tuple[bytes, ...], versions: int = 0, patience: float = 5.0) -> Reply:
        """Send packets and the sentinel, and read the answer.

        Args:
            pieces: one packet each.
            versions: VERSION lines that the answer itself should have, at most.
            patience: seconds until silence is a hang.
        """
        if self._paced:
            return self._ask_in_turn(pieces, patience)
        return self._exchange((*pieces[:-1], pieces[-1] + self._ask), versions + 1, patience)

    def tell(self, pieces: tuple[bytes, ...], patience: float = 5.0) -> Reply:
        """Send packets without a sentinel and read until the endpoint closes; `patience` in seconds."""
        return self._exchange(pieces, 0, patience)

    def overhear(self, pieces: tuple[bytes, ...]) -> Reply:
        """Send packets to which nothing should be answered, and return what comes within QUIET_SECONDS."""
        reply = self._exchange(pieces, 0, QUIET_SECONDS)
        return replace(reply, hang=False)

    def _ask_in_turn(self, pieces: tuple[bytes, ...], patience: float) -> Reply:
        answer = self._exchange(pieces, 0, PACE_SECONDS)
        if answer.closed or answer.limit:
            return answer
        rest = self._exchange((self._ask,), 1, patience)
        return replace(rest, data=answer.data + rest.data)

    def _exchange(self, pieces: tuple[bytes, ...], sentinels: int, patience: float) -> Reply:
        if self._flood is not None:
            return self._flood
        try:
            for number, piece in enumerate(pieces):
                if number:
                    time.sleep(0.01)  # the only way to make two packets of two writes
                self._socket.sendall(piece)
        except TimeoutError:
            return Reply(b"", hang=True)
        except OSError:
            return Reply(b"", closed=True)
        return self._read(sentinels, time.monotonic() + patience)

    def _read(self, sentinels: int, deadline: float) -> Reply:
        data = bytearray()
        while not (sentinels and self._ends(data, sentinels)):
            # The sentinel's line may have come, or one of the answer itself that looks like it.
            ended = sentinels > 1 and self._ends(data, 1)
            rest = deadline - time.monotonic()
            if rest <= 0 or not select.select([self._socket], [], [], min(rest, BEHIND_SECONDS) if ended else rest)[0]:
                return Reply(bytes(data[: -len(self._sentinel)])) if ended else Reply(bytes(data), hang=True)
            try:
                received = self._socket.recv(_CHUNK)
            except ConnectionError:
                received = b""
            if not received:
                return Reply(bytes(data), closed=True)
            data += received
            if len(data) > self._limit:
                self.close()
                self._flood = Reply(bytes(data[:KEPT_BYTES]), limit=self._limit)
                return self._flood
        return Reply(bytes(data[: -len(self._sentinel)]))

    def _ends(self, data: bytearray, sentinels: int) -> bool:
        return data.endswith(self._sentinel) and data.count(self._sentinel) >= sentinels


def version_line(address: SocketAddress) -> bytes:
    """Return the line with which an endpoint answers `version`.

    Raises:
        CannotJudge: no server listens there, or it does not use the memcached protocol.
    """
    where = shown(address)
    try:
        with connect(address, CONNECT_SECONDS) as connection:
            connection.sendall(b"version\r\n")
            line = _first_line(connection, time.monotonic() + CONNECT_SECONDS)
    except TimeoutError as error:
        raise CannotJudge(
            f"{where} did not answer `version` within {CONNECT_SECONDS:.0f} s: no memcached endpoint?"
        ) from error
    except OSError as error:
        raise CannotJudge(f"cannot reach {where}: {error.strerror or error}") from error
    if not line.startswith(b"VERSION ") or not line.endswith(b"\r\n"):
        raise CannotJudge(f"{where} is no memcached endpoint: it answered `version` with {line!r}")
    return line


def beyond(limit: int) -> str:
    """Return the note on an answer that exceeded a limit, in bytes."""
    return f"more than {limit} bytes without the end of a reply: the suite closed the connection"


def drain(connection: socket.socket, seconds: float) -> bool:
    """Read and drop what comes until the other side closes.

    Args:
        connection: socket to read.
        seconds: limit of the whole.

    Returns:
        Whether it closed in time.
    """
    deadline = time.monotonic() + seconds
    try:
        while _receive(connection, deadline, _CHUNK):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def _receive(connection: socket.socket, deadline: float, size: int) -> bytes:
    """Return what comes next, "" at the end of the connection. Raises TimeoutError at the deadline."""
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise TimeoutError
    connection.settimeout(rest)
    return connection.recv(size)


def _first_line(connection: socket.socket, deadline: float) -> bytes:
    """Return what comes up to the first line end, at most 512 bytes. Raises TimeoutError at the deadline."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _MAX_LINE:
        # One byte at a time: what follows the line is not read, and a line is short.
        byte = _receive(connection, deadline, 1)
        if not byte:
            break
        line += byte
    return line
