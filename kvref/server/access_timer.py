"""Reads the logs of accesses once a second, for clients that request when items were last accessed."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from kvref.engine.shared_state import Marks

EVERY: Final = 1.0  # seconds


class AccessTimer:
    """Call `Marks.tick` for as long as the server runs."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(EVERY, self._tick)

    def stop(self) -> None:
        """Stop calling."""
        self._timer.cancel()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(EVERY, self._tick)
        self._marks.tick(time.time())
