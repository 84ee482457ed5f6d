"""A seeded world's event loop: asyncio's own scheduling, with a clock that moves from timer to timer.

The ready queue, the heap of timers and the handles are those of `asyncio.BaseEventLoop`. In the place of a selector
there is nothing that could become ready: to wait for a timer is to move the clock. Two runs with the same callbacks are
the same run.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

EPOCH: Final = 1_700_000_000.5  # what the wall clock shows at the start of each world, in seconds
EARLIEST: Final = 1e-7  # seconds between two events whose order has to be kept


class StuckError(Exception):
    """Nothing is left to happen, and the world has not come to its end."""


class Clock:
    """The time of a world.

    Args:
        cpu: seconds that pass whenever the server reads its monotonic clock, as if its code took that long.
    """

    def __init__(self, cpu: float = 0.0) -> None:
        self.now = 1000.0
        self.cpu = cpu
        self._ahead = EPOCH - self.now

    def time(self) -> float:
        """Return the wall clock, in seconds since the epoch."""
        return self.now + self._ahead

    def monotonic(self) -> float:
        """Return the monotonic clock in seconds, and let it go on a little."""
        self.now += self.cpu
        return self.now


class _NothingElse:
    """In the place of a selector: waits by moving the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise StuckError("no event is left")
        self._clock.now += timeout
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop without files and threads.

    Args:
        clock: of the world.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._selector = _NothingElse(clock)

    def time(self) -> float:
        """Return the clock's time; to schedule takes none."""
        return self._clock.now

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no events but timers."""

    def _write_to_self(self) -> None:
        """Do nothing: no other thread has to wake the loop."""
