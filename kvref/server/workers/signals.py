"""Signals of the parent as a readable socket for its selector; workers ignore these signals."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_TAKEN: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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
        """Close both ends."""
        for each in (self._end, self._waker):
            each.close()

    def arrived(self) -> bytes:
        """Return the numbers of those that came; to be called when there are some."""
        return self._end.recv(4096)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take them for the block, and leave them as they were before."""
        signal.set_wakeup_fd(self._waker.fileno())
        before = {number: signal.signal(number, lambda *_: None) for number in _TAKEN}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(-1)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Hold them back for the block: a fork that one came into would take it twice."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Ignore them in a process that was just forked off."""
    signal.set_wakeup_fd(-1)
    for number in _TAKEN:
        signal.signal(number, signal.SIG_IGN)
