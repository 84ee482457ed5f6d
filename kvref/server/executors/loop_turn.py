"""One turn of the event loop: it finds the sockets at which something has arrived, and then calls their readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

# With more sockets at which something has arrived than libuv takes at once (1,024) it looks for more in the same turn.
MAX_CONNECTIONS: Final = 512


class LoopTurn:
    """The turn that runs: what its readers find began to arrive before the first of them was called.

    Args:
        connections: returns how many connections the loop has.
    """

    def __init__(self, connections: Callable[[], int]) -> None:
        self._connections = connections
        self._ends: list[Callable[[], None]] = []

    def share(self, end: Callable[[], None]) -> bool:
        """Return whether what a reader sees now holds for all readers of the turn.

        Args:
            end: called where it does no longer.
        """
        if self._connections() > MAX_CONNECTIONS:
            return False
        asyncio.get_running_loop().call_soon(self.end)
        self._ends.append(end)
        return True

    def end(self) -> None:
        """Let nothing hold any more that readers have seen: what is read next may have arrived later."""
        ends, self._ends = self._ends, []
        for end in ends:
            end()
