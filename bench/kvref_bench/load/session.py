"""Connections that send when they were answered (closed loop), or by a schedule (open loop).

What happens for each operation is written out here rather than called: a call costs a tenth of what one operation may.

The moments of a schedule are drawn before the clock and never move: what a slow server delays is sent late, and its
latency is counted from the moment of the schedule as well (coordinated omission; the method of wrk2).
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from kvref_bench.load.histogram import index
from kvref_bench.load.records import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvref_bench.load.records import Parts, Reader, Recorder
    from kvref_bench.load.work import Clock

_NOTHING: Parts = (b"", b"", ())


class Crowd:
    """What the sessions of one worker have in common.

    reader: of other replies than the expected ones; None: sessions read them themselves.
    whole: replies are of several operations, and the kernel is to wake the worker when the whole of one is there.
    over: set when the time is over: no session sends any more.
    running: sessions that have not done all they had to.
    done: moment at which the last of them was done, of `perf_counter_ns`.
    lost: why a connection ended, in words; None while all stand.
    failure: of the generator itself; None while there is none.
    """

    def __init__(self, recorder: Recorder, reader: Reader | None = None, *, whole: bool = False) -> None:
        self.recorder = recorder
        self.reader = reader
        self.whole = whole
        self.over = False
        self.running = 0
        self.done = 0
        self.lost: str | None = None
        self.failure: Exception | None = None

    async def send(self, start: int) -> None:
        """Do what sessions do not do for themselves, from a moment of `perf_counter_ns` on: here nothing."""

    def left(self) -> int:
        """Return the number of moments of a schedule that were not sent at: here there is none."""
        return 0


class Session(asyncio.Protocol):
    """A connection of the closed loop.

    crowd: it belongs to. exchanges: it makes, one after the other.
    """

    __slots__ = (
        "_bins", "_closing", "_exchange", "_kinds", "_next", "_reply", "_rest", "_send", "_wake_at", "_waking",
        "_write", "crowd", "sent",
    )  # fmt: skip

    def __init__(self, crowd: Crowd, exchanges: Iterator[Parts]) -> None:
        self.crowd = crowd
        self._exchange = _NOTHING
        self.sent = 0
        self._bins = crowd.recorder.bins["service"]
        self._kinds: tuple[int, ...] = ()
        self._next = exchanges.__next__
        self._reply = b""
        self._rest = b""
        self._waking = 1
        self._write: Callable[[bytes], None]
        self._closing: Callable[[], bool]
        self._send: Callable[[bytes], None]
        self._wake_at: Callable[[int], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what is called of the transport."""
        self._write = self._send = cast("asyncio.WriteTransport", transport).write
        self._closing = transport.is_closing
        if self.crowd.whole:
            self._wake_at = partial(
                transport.get_extra_info("socket").setsockopt, socket.SOL_SOCKET, socket.SO_RCVLOWAT
            )
            self._write = self._write_for_whole

    def connection_lost(self, exc: Exception | None) -> None:
        """Remember why, unless the time is over."""
        if not self.crowd.over and self.crowd.lost is None:
            self.crowd.lost = f"a connection was closed by the server{f': {exc}' if exc else ''}"

    def start(self) -> None:
        """Send the first exchange."""
        self.crowd.running += 1
        self._go_on(perf_counter_ns())

    def take_pieces(self, before: int) -> None:
        """Let the kernel wake the worker for what is there of a reply: it may be shorter than the expected one.

        before: moment of `perf_counter_ns`; only of exchanges that were sent before.
        """
        if self._waking > 1 and self._kinds and self.sent < before and not self._closing():
            self._waking = 1
            self._wake_at(1)

    def _write_for_whole(self, request: bytes) -> None:
        size = len(self._reply)
        if size != self._waking:
            self._waking = size
            self._wake_at(size)
        self._send(request)

    def open(self) -> int:
        """Return the number of operations without an answer."""
        return len(self._kinds)

    def data_received(self, data: bytes) -> None:
        """Count the operations that were answered and send the next."""
        if data == self._reply:
            now = perf_counter_ns()
            took = now - self.sent
            # As `histogram.index`; no point lasts as long as its limit.
            shift = (took | 128).bit_length() - 8
            place = (shift << 7) + (took >> shift)
            bins = self._bins
            for kind in self._kinds:
                bins[kind][place] += 1
            if self.crowd.over:
                self._forget()
                return
            try:
                self._exchange = request, self._reply, self._kinds = self._next()
            except StopIteration:
                self._finish()
                return
            self.sent = now
            self._write(request)
        else:
            self._otherwise(data)

    def _otherwise(self, data: bytes) -> None:
        if self._exchange is _NOTHING:
            self.crowd.recorder.refuse(b"", data)
            return
        request, reply, kinds = self._exchange
        self._rest += data
        if len(self._rest) < len(reply) and reply.startswith(self._rest):
            self._reply = b""  # no data equal it: what comes next is only the rest
            return
        unexpected: tuple[bytes, ...] = ()
        if self._rest != reply:
            assert self.crowd.reader is not None, "sessions of the wire have one"
            answer = self.crowd.reader.read(Exchange(request, reply, kinds), self._rest)
            if answer is None:
                self._reply = b""
                return
            kinds, unexpected = answer.kinds, answer.unexpected
        now = perf_counter_ns()
        self._count(kinds, now)
        for other in unexpected:
            self.crowd.recorder.refuse(request, other)
        self._rest = b""
        self._answered(now)

    def _answered(self, now: int) -> None:
        self._go_on(now)

    def _count(self, kinds: tuple[int, ...], now: int) -> None:
        for kind in kinds:
            self.crowd.recorder.add(kind, now - self.sent)

    def _go_on(self, now: int) -> None:
        # Its write would raise; only after an answer it is known to be open.
        if self.crowd.over or self._closing():
            self._forget()
            return
        try:
            self._exchange = request, self._reply, self._kinds = self._next()
        except StopIteration:
            self._finish()
            return
        self.sent = now
        self._write(request)

    def _finish(self) -> None:
        self._forget()
        self.crowd.running -= 1
        self.crowd.done = perf_counter_ns()

    def _forget(self) -> None:
        self._exchange = _, self._reply, self._kinds = _NOTHING


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
        self._checked_at = 0

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
            self._checked_at = passed
        due, idle = self._due, self._idle
        while due and idle and due[0] <= passed and not self.over:
            moment = due.popleft()
            # In turn, so that all connections are used at any rate.
            idle.popleft().send(self._start + moment, max(0, self._checked_at - moment), now)


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
