"""What a parent waits for: messages of its workers, with bounds and passed connections, and signals; its forks."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

_MAX_MESSAGE: Final = 1 << 17  # bytes of a message; the text of an error is cut
_MAX_TEXT: Final = 1 << 14
_CONNECTION: Final = b"c"
SEND_SECONDS: Final = 5.0
# Messages with the number of a connection: this process has no free descriptor for it, or serves it.
UNDELIVERED: Final = "undelivered"
ACCEPTED: Final = "accepted"
_HEAD: Final = struct.Struct("!cBI")  # of a connection: _CONNECTION, number of the listener, number of `Transfer`


@dataclass(frozen=True, slots=True)
class Transfer:
    """A connection in transfer to another process.

    Args:
        listener: number of its listener, below 256.
        number: sent back with ACCEPTED before the receiver serves the connection; 0: not sent back.
        state: of a connection that has served commands, see `Passed`; empty: it was just accepted.
    """

    connection: socket.socket
    listener: int
    number: int
    state: bytes


class Channel:
    """One end of a pair of sockets that keep messages apart."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        end.settimeout(0)

    def fileno(self) -> int:
        return self._end.fileno()

    def close(self) -> None:
        """Close this end: the other one reads its end."""
        self._end.close()

    def send(self, what: str, text: str = "", settings: dict[str, int] | None = None) -> None:
        """Send a message; raises OSError if the other end is gone, or has not read for SEND_SECONDS."""
        self._end.settimeout(SEND_SECONDS)
        try:
            self._end.send(json.dumps([what, text[:_MAX_TEXT], settings or {}]).encode())
        finally:
            self._end.settimeout(0)

    def send_connection(self, descriptor: int, listener: int, state: bytes = b"", number: int = 0) -> None:
        """Send a connection, which the caller still has to close; raises OSError if the other end is gone, or busy."""
        socket.send_fds(self._end, [_HEAD.pack(_CONNECTION, listener, number) + state], [descriptor])

    def receive(self) -> tuple[str, str, dict[str, int]] | Transfer | None:
        """Return a message, its text and settings; or a connection; or None. EOFError: the other end is gone."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._end, _MAX_MESSAGE, 1)
        except BlockingIOError:
            return None
        except ConnectionResetError:  # raised once if it ended with unread data; what it has sent can still be read
            return self.receive()
        if data[:1] == _CONNECTION:
            _, listener, number = _HEAD.unpack_from(data)
            if not descriptors:
                return UNDELIVERED, str(number), {}  # recvmsg(2) omits sockets for which the process has no descriptor
            return Transfer(socket.socket(fileno=descriptors[0]), listener, number, data[_HEAD.size :])
        if not data:
            raise EOFError
        message: Any = json.loads(data)
        what, text, settings = message
        return what, text, settings


def pair() -> tuple[Channel, Channel]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(one), Channel(other)


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """SIGTERM, SIGINT and SIGHUP, readable as numbers where `fileno` says."""

    def __init__(self) -> None:
        self._end, self._waker = socket.socketpair()
        for each in (self._end, self._waker):
            each.settimeout(0)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._end.fileno()

    def close(self) -> None:
        for each in (self._end, self._waker):
            each.close()

    def arrived(self) -> bytes:
        """Return the numbers of those that came; to be called when there are some."""
        return self._end.recv(4096)

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Take them for the block, and leave them as they were before."""
        signal.set_wakeup_fd(self._waker.fileno())
        before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(-1)


def fork(run: Callable[[Channel], NoReturn]) -> tuple[int, Channel]:
    """Call a function in a new process, which ignores the signals of `Signals`; return its pid and a channel to it."""
    ours, theirs = pair()
    # Blocked meanwhile: a signal that arrived during the fork would be handled in both processes.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if pid == 0:
        ours.close()
        run(theirs)
    theirs.close()
    return pid, ours
