"""A seeded world's event loop: asyncio's own scheduling, with a clock that moves from timer to timer.

The ready queue, the heap of timers and the handles are those of `asyncio.BaseEventLoop`. In the place of a selector
there is nothing that could become ready: to wait for a timer is to move the clock. Two runs with the same callbacks are
the same run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Semaphore, Thread
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


class _AbandonedError(BaseException):
    """Ends a call whose world is over."""


class _Call:
    """A call that blocks, in a thread that runs only while the loop waits for it."""

    def __init__(self, loop: SimulatedLoop, call: Callable[[], object]) -> None:
        self.result = loop.create_future()
        self.abandoned = False
        self._loop = loop
        self._call = call
        self._its_turn, self._loops_turn = Semaphore(0), Semaphore(0)
        Thread(target=self._run, daemon=True).start()

    def go_on(self) -> None:
        """Run it until it blocks or ends."""
        self._loop.running = self
        self._its_turn.release()
        self._loops_turn.acquire()

    def block(self) -> None:
        """Let the loop go on; called in the thread."""
        self._loops_turn.release()
        self._its_turn.acquire()
        if self.abandoned:
            raise _AbandonedError

    def _run(self) -> None:
        self._its_turn.acquire()
        try:
            if not self.abandoned:
                value = self._call()
                self._loop.call_soon(self._end, self.result.set_result, value)
        except _AbandonedError:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
            self._loop.call_soon(self._end, self.result.set_exception, error)
        self._loop.calls.pop(self, None)
        self._loops_turn.release()

    def _end(self, give: Callable[[Any], None], value: object) -> None:
        if not self.result.done():
            give(value)


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop without files and threads.

    Args:
        clock: of the world.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._selector = _NothingElse(clock)
        self.calls: dict[_Call, None] = {}  # that block
        self.running: _Call

    def time(self) -> float:
        """Return the clock's time; to schedule takes none."""
        return self._clock.now

    def run_in_executor(self, _executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # no generics
        """Run a call that blocks, of any executor."""
        made = _Call(self, lambda: func(*args))
        self.calls[made] = None
        self.call_soon(made.go_on)
        return made.result

    def pause(self, seconds: float) -> None:
        """Let time pass; called in a call that blocks."""
        if self.running.abandoned:
            raise _AbandonedError
        self.call_later(seconds, self.running.go_on)
        self.running.block()

    def abandon(self) -> None:
        """End calls that block, for nothing happens any more."""
        for each in list(self.calls):
            each.abandoned = True
            each.go_on()

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no events but timers."""

    def _write_to_self(self) -> None:
        """Do nothing: no other thread has to wake the loop."""
