"""What a worker gives back; merged exactly, wherever it ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kvref_bench.load.plan import Kind

Timing = Literal["service", "intended", "lag"]


class Cell(NamedTuple):
    """Where a histogram belongs.

    second: of the measured time, from 0 on.
    timing: `service`: from the send to the reply; in an open loop also `intended`: from the moment of the schedule to
        the reply, and `lag`: of the time from that moment to the send, what the
        generator was late; the rest is a wait for a session, all being busy.
    """

    second: int
    kind: Kind
    timing: Timing


@dataclass(slots=True)
class Usage:
    """What a process used in the measured time: CPU seconds, peak resident bytes, switches."""

    user: float = 0.0
    system: float = 0.0
    rss: int = 0
    voluntary: int = 0
    involuntary: int = 0


@dataclass(slots=True)
class WorkerResult:
    """What one worker measured.

    histograms: counts of operations by bin (`load.histogram`).
    began: wall clock, ns; seconds: the measured time.
    sent, received: bytes in the measured time.
    distinct: different keys that it can have named.
    open: operations without an answer when the time was over.
    skipped: of the schedule, never sent because the time was over.
    unexpected: the first hundred exchanges with an answer that is not allowed, (request, reply).
    errors: how many answers that are not allowed in all.
    stopped: why it ended before its time, in words; None when it did not.
    """

    worker: int
    host: str
    pid: int
    began: int
    seconds: float
    histograms: dict[Cell, dict[int, int]]
    usage: Usage
    sent: int = 0
    received: int = 0
    distinct: int = 0
    open: int = 0
    skipped: int = 0
    errors: int = 0
    unexpected: list[tuple[bytes, bytes]] = field(default_factory=list)
    stopped: str | None = None
