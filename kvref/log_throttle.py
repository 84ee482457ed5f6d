"""Throttle repeated log messages and count the suppressed ones."""

from __future__ import annotations

import time


class LogThrottle:
    """Log at most `burst` messages in a period of some seconds, which begins with a logged message."""

    def __init__(self, seconds: float, burst: int = 1) -> None:
        self._seconds = seconds
        self._burst = burst
        self._began: float | None = None
        self._logged = 0  # in this period
        self._suppressed = 0

    def suppressed(self) -> int | None:
        """Return how many were suppressed since the last logged message; None if this one is suppressed."""
        now = time.monotonic()
        if self._began is None or now - self._began >= self._seconds:
            self._began, self._logged = now, 0
        if self._logged >= self._burst:
            self._suppressed += 1
            return None
        self._logged += 1
        suppressed, self._suppressed = self._suppressed, 0
        return suppressed
