"""Turns of connections whose input takes longer than one: bounded work in each turn of the event loop.

Input of other clients and new connections come first: the loop checks for them after at most `ITERATION_SECONDS`.
"""

from __future__ import annotations

import asyncio
import ctypes
import time
from collections import deque
from collections.abc import Callable
from typing import Final

ITERATION_SECONDS: Final = 0.003  # seconds of work for all waiting connections in one turn of the loop
RETURN_AFTER: Final = 1.0  # seconds after a connection with much input has ended


class Turns:
    """The connections of one process that wait for their turn."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False
        self._returning = False

    @property
    def busy(self) -> bool:
        """Return whether connections wait: input that takes long has to wait too."""
        return bool(self._waiting)

    def add(self, resume: Callable[[], None]) -> None:
        """Call a function, of a few milliseconds at most, when those that were added before have had their turn."""
        self._waiting.append(resume)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def ended(self) -> None:
        """Give memory back to the system soon: a connection that had to wait for turns, with its input, is gone."""
        if not self._returning:
            self._returning = True
            asyncio.get_running_loop().call_later(RETURN_AFTER, self._return_memory)

    def _run(self) -> None:
        until = time.monotonic() + ITERATION_SECONDS
        try:
            for _ in range(len(self._waiting)):  # those added meanwhile come after new input
                self._waiting.popleft()()
                if time.monotonic() >= until:
                    break
        finally:
            self._scheduled = bool(self._waiting)
            if self._scheduled:
                asyncio.get_running_loop().call_soon(self._run)

    def _return_memory(self) -> None:
        self._returning = False
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)
