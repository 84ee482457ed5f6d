"""What would be told too often: at most once in some seconds, with the number of times that it was not."""

from __future__ import annotations

import time


class Seldom:
    """Decide when something is told.

    Args:
        seconds: that pass between two times.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._told: float | None = None
        self._left_out = 0

    def left_out(self) -> int | None:
        """Return how often it was not told since the last time; None: this time it is not."""
        now = time.monotonic()
        if self._told is not None and now - self._told < self._seconds:
            self._left_out += 1
            return None
        left_out, self._told, self._left_out = self._left_out, now, 0
        return left_out
