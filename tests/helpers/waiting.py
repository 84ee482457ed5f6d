"""Waiting for an event instead of for a time."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

PATIENCE = 60.0  # seconds: more than anything takes on a busy machine, and less than a test's timeout

T = TypeVar("T")


def until(holds: Callable[[], T], *, seconds: float = PATIENCE, pause: float = 0.02) -> T:
    """Wait until a condition is true, and return its value.

    Args:
        holds: the condition.
        seconds: how long at most.
        pause: seconds between two looks.

    Raises:
        AssertionError: it is still false by then.
    """
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{holds} is still false after {seconds:g} s"
        time.sleep(pause)
    return found


def until_equal(find: Callable[[], object], wanted: object, *, seconds: float = PATIENCE, pause: float = 0.02) -> None:
    """Wait until a function returns a value.

    Args:
        find: the function.
        wanted: the value.
        seconds: how long at most.
        pause: seconds between two calls.

    Raises:
        AssertionError: it still returns another one by then.
    """
    deadline = time.monotonic() + seconds
    while (found := find()) != wanted:
        assert time.monotonic() < deadline, f"{found!r} is still not {wanted!r} after {seconds:g} s"
        time.sleep(pause)


def until_risen(counts: Callable[[], Iterable[int]], by: int = 1, *, seconds: float = PATIENCE) -> None:
    """Wait until each of some counts has risen.

    Args:
        counts: returns them.
        by: how far at least.
        seconds: how long at most.

    Raises:
        AssertionError: one has not by then.
    """
    before = list(counts())
    until(
        lambda: all(now >= then + by for now, then in zip(counts(), before, strict=True)), seconds=seconds, pause=0.005
    )


def until_listening(address: tuple[str, int], running: Callable[[], bool] = lambda: True) -> socket.socket:
    """Return a connection to a server that is about to listen.

    Args:
        address: its host and port.
        running: whether its process still runs.

    Raises:
        AssertionError: its process has ended, or it does not listen within 60 seconds.
    """

    def connected() -> socket.socket | None:
        assert running()
        try:
            return socket.create_connection(address, timeout=PATIENCE)
        except ConnectionRefusedError:
            return None

    connection = until(connected)
    assert connection is not None
    return connection
