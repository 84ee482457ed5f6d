"""Waiting for an event instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds: more than anything takes on a busy machine, and less than a test's timeout


def until(holds: Callable[[], object], *, seconds: float = PATIENCE, pause: float = 0.02) -> None:
    """Wait until a condition is true.

    Args:
        holds: the condition.
        seconds: how long at most.
        pause: seconds between two looks.

    Raises:
        AssertionError: it is still false by then.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{holds} is still false after {seconds:g} s"
        time.sleep(pause)
