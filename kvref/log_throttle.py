"""Throttle repeated log messages and count the suppressed ones."""

from __future__ import annotations

import time


class LogThrottle:
    """Decide when a message is logged.

    Args:
        seconds: minimum time between two messages.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._logged: float | None = None
        self._suppressed = 0

    def suppressed(self) -> int | None:
        """Return how many were suppressed since the last logged message; None if this one is suppressed."""
        now = time.monotonic()
        if self._logged is not None and now - self._logged < self._seconds:
            self._suppressed += 1
            return None
        suppressed, self._logged, self._suppressed = self._suppressed, now, 0
        return suppressed
