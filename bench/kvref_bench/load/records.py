"""What a worker sends and counts, and what it gives back.

Requests are made before the clock, so that nothing is encoded while it runs; counts are merged exactly, wherever a
worker ran.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from kvref_bench.load.histogram import BINS, add, index

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator, Sequence


class Kind(NamedTuple):
    """What happened to one operation.

    verb: as the protocol has it; for several keys in one get `get`.
    outcome: hit, miss, stored, not_stored, exists, not_found, deleted, touched, counted, ok, error.
    """

    verb: str
    outcome: str


class Exchange(NamedTuple):
    """One write and the replies to it.

    request: its commands, joined.
    reply: the replies that are expected, joined.
    kinds: what each operation of it is when the reply is the expected one, by number in `Plan.kinds`; each key of a
        get is one operation.
    """

    request: bytes
    reply: bytes
    kinds: tuple[int, ...]


# An exchange without its names: made as it is needed, where a pool of them would have to come from memory.
Parts = tuple[bytes, bytes, tuple[int, ...]]


class Answer(NamedTuple):
    """What other bytes than the expected ones mean.

    kinds: one for each operation of the exchange.
    unexpected: the bytes of replies that are not an allowed answer; none where all are (a miss, NOT_STORED).
    """

    kinds: tuple[int, ...]
    unexpected: tuple[bytes, ...] = ()


class Reader(Protocol):
    """Reads replies that differ from the expected ones; one for each protocol."""

    def read(self, exchange: Exchange, data: bytes) -> Answer | None:
        """Return the outcomes of the replies to an exchange, or None while they are not complete."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of a point that one worker does.

    kinds: all that can happen.
    connect: opens one session, logged in and bound to its mapping; raises BenchError.
    exchanges: of a session of this worker, by its number from 0 on: endless, or as many as it has to do.
    reader: for other replies than the expected ones.
    tls: with which sessions continue what `connect` opened; None: without TLS.
    """

    kinds: tuple[Kind, ...]
    connect: Callable[[], socket.socket]
    exchanges: Callable[[int], Iterator[Parts]]
    reader: Reader
    tls: ssl.SSLContext | None = None


Timing = Literal["service", "intended", "lag"]
TIMINGS: Final[tuple[Timing, ...]] = ("service", "intended", "lag")
UNEXPECTED: Final = 100  # exchanges kept verbatim


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
    """What a process used in the measured time: CPU seconds, resident bytes."""

    user: float = 0.0
    system: float = 0.0
    rss: int = 0

    @property
    def cpu(self) -> float:
        """Return the CPU seconds."""
        return self.user + self.system


@dataclass(slots=True)
class WorkerResult:
    """What one worker measured.

    histograms: counts of operations by bin (`load.histogram`).
    began: wall clock, ns; seconds: the measured time.
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
    open: int = 0
    skipped: int = 0
    errors: int = 0
    unexpected: list[tuple[bytes, bytes]] = field(default_factory=list)
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """One second of one worker: operations, and answers that are not allowed."""

    worker: int
    second: int
    operations: int
    errors: int


class Recorder:
    """Counts of operations by kind, second and duration.

    kinds: all that can happen. timings: those that are counted, `TIMINGS` in the open loop.
    bins: by timing a list of counts for each kind, in the order of kinds; sessions count in them directly, since a call
        for each operation would cost as much as all else they do.
    cells: what was put away.
    errors, unexpected: of answers that are not allowed, how many and the first hundred.
    """

    def __init__(self, kinds: Sequence[Kind], timings: Sequence[Timing] = ("service",)) -> None:
        self.kinds = tuple(kinds)
        self.bins: dict[Timing, list[list[int]]] = {each: [[0] * BINS for _ in kinds] for each in timings}
        self.cells: dict[Cell, dict[int, int]] = {}
        self.errors = 0
        self.unexpected: list[tuple[bytes, bytes]] = []

    def add(self, kind: int, nanoseconds: int) -> None:
        """Count one operation by its service time.

        Args:
            kind: its number in kinds. nanoseconds: how long it took.
        """
        self.bins["service"][kind][index(nanoseconds)] += 1

    def refuse(self, request: bytes, reply: bytes) -> None:
        """Keep an answer that is not allowed; its operations are counted with `add`."""
        self.errors += 1
        if len(self.unexpected) < UNEXPECTED:
            self.unexpected.append((request, reply))

    def clear(self) -> None:
        """Forget all that was counted: the warm-up is over."""
        for lists in self.bins.values():
            for bins in lists:
                bins[:] = [0] * BINS
        self.cells.clear()
        self.errors = 0
        self.unexpected.clear()

    def put_away(self, second: int) -> dict[int, int]:
        """Move what was counted since the last call to a second of the measured time.

        Returns:
            The service histogram of that time, all kinds together.
        """
        together: dict[int, int] = {}
        for timing, lists in self.bins.items():
            for kind, bins in zip(self.kinds, lists, strict=True):
                # `sum` is quicker than a look at each of 5,120 bins, most kinds being rare.
                if not sum(bins):
                    continue
                counts = {place: count for place, count in enumerate(bins) if count}
                bins[:] = [0] * BINS
                add(self.cells.setdefault(Cell(second, kind, timing), {}), counts)
                if timing == "service":
                    add(together, counts)
        return together
