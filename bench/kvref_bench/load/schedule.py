"""Sessions that send by a schedule (open loop).

The moments are drawn before the clock and never move: what a slow server delays is sent late, and its latency is
counted from the moment of the schedule as well (coordinated omission; the method of wrk2).
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

import numpy as np

from kvref_bench.load.histogram import index
from kvref_bench.load.session import Crowd, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.plan import Parts, Reader
    from kvref_bench.load.recorder import Recorder
    from kvref_bench.load.work import Clock


_TICK: Final = 0.001  # uvloop's timers have whole milliseconds; answers in between send what is due as well


def moments(clock: Clock, share: float, seed: int) -> list[int]:
    """Draw when exchanges are to be sent, ns from the start of the warm-up.

    Args:
        clock: with the rate of all workers, operations a second.
        share: exchanges of this worker for each of those operations.
        seed: of the draw.
    """
    assert clock.rate is not None
    rate, seconds = clock.rate * share, clock.warmup + clock.measure
    random = np.random.default_rng(seed)
    # As many as a Poisson process of that rate has in the time, with a margin of eight deviations.
    times = np.cumsum(random.exponential(1 / rate, int(rate * seconds + 8 * (rate * seconds) ** 0.5 + 8)))
    due: list[int] = (times[times < seconds] * 1e9).astype(np.int64).tolist()
    return due


class Scheduled(Crowd):
    """The sessions of one worker in the open loop.

    due: moments of the schedule, ns from the start.
    """

    def __init__(self, recorder: Recorder, reader: Reader, due: list[int], *, whole: bool = False) -> None:
        super().__init__(recorder, reader, whole=whole)
        self._due = deque(due)
        self._idle: deque[ScheduledSession] = deque()
        self._start = 0
        self._looked = 0

    async def send(self, start: int) -> None:
        """Let the schedule run from a moment of `perf_counter_ns` on, until the time is over."""
        self._start = start
        while not self.over:
            self._send(waited=bool(self._idle))
            await asyncio.sleep(_TICK)

    def wait(self, session: ScheduledSession) -> None:
        """Take a session that has sent nothing yet."""
        self._idle.append(session)

    def answered(self, session: ScheduledSession) -> None:
        """Take back a session and send what is due."""
        waited = bool(self._idle)
        self._idle.append(session)
        self._send(waited=waited)

    def left(self) -> int:
        """Return the number of moments that were not sent at."""
        return len(self._due)

    def _send(self, *, waited: bool) -> None:
        """Give each moment that has passed to a session that waits."""
        now = perf_counter_ns()
        passed = now - self._start
        if waited:
            # With a session that waited all that was due by now could have been sent in time, and was not.
            self._looked = passed
        due, idle = self._due, self._idle
        while due and idle and due[0] <= passed and not self.over:
            moment = due.popleft()
            # In turn, so that all connections are used at any rate.
            idle.popleft().send(self._start + moment, max(0, self._looked - moment), now)


class ScheduledSession(Session):
    """A connection of the open loop.

    crowd, exchanges: as of Session.
    """

    __slots__ = ("_due", "_intended", "_lag", "_late", "_schedule")

    def __init__(self, crowd: Scheduled, exchanges: Iterator[Parts]) -> None:
        super().__init__(crowd, exchanges)
        self._schedule = crowd
        self._due = 0
        self._late = 0
        self._intended = crowd.recorder.bins["intended"]
        self._lag = crowd.recorder.bins["lag"]

    def start(self) -> None:
        """Wait for the schedule."""
        self.crowd.running += 1
        self._schedule.wait(self)

    def send(self, due: int, late: int, now: int) -> None:
        """Send the next exchange.

        Args:
            due: when the schedule wants it, ns. late: what the generator is to blame for, ns. now: what it is, ns.
        """
        self._due = due
        self._late = late
        self._go_on(now)

    def data_received(self, data: bytes) -> None:
        """Count the operations that were answered and send what is due."""
        if data == self._reply:
            now = perf_counter_ns()
            self._count(self._kinds, now)
            self._answered(now)
        else:
            self._otherwise(data)

    def _count(self, kinds: tuple[int, ...], now: int) -> None:
        service, intended, lag = index(now - self.sent), index(now - self._due), index(self._late)
        for kind in kinds:
            self._bins[kind][service] += 1
            self._intended[kind][intended] += 1
            self._lag[kind][lag] += 1

    def _answered(self, now: int) -> None:  # noqa: ARG002 -- the schedule looks at the clock for itself
        self._forget()
        self._schedule.answered(self)
