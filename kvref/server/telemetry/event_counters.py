"""Counters of rare events, for metrics and health: numbers that all processes of a server share.

What `stats` counts is elsewhere (`engine/stats.py`). A cell is written by one process; a number is written whole.
"""

from __future__ import annotations

import os
import threading
import time
from enum import IntEnum
from typing import Final

from kvref.server.telemetry.command_times import MICROSECOND, CommandDurations, Histogram, cells_of
from kvref.server.workers.shared_memory import CELL, anonymous

# Upper bounds of the classes of commits, in seconds; one more class has the rest.
BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MAX_REASON: Final = 400  # bytes of a reason


class State(IntEnum):
    """Where a server is in its life."""

    STARTING = 0
    SERVING = 1
    STOPPING = 2


class _Common(IntEnum):
    """Cells of the process that listens."""

    STATE = 0
    RELOADED = 1
    REFUSED = 2
    RESTARTED = 3  # workers


class _Cell(IntEnum):
    """Cells of one process that serves; times are microseconds of the monotonic clock, 0: never or not now."""

    PID = 0
    HEARTBEAT = 1  # when its event loop was last seen to run
    LAG = 2  # by how many microseconds that was late
    BATCHES = 3  # open
    ERRORS = 4  # replies SERVER_ERROR
    QUERIED = 5  # since when a query of the store has no answer
    SUCCEEDED = 6  # when the store last answered as it should
    REASON = 7  # bytes of the text why it did not


# Names of `Store.numbers`, of the row cache over a database server and of gets from secondaries: those that only grow,
# which are the sums of a worker and of those that it has replaced, and the others.
ROW_CACHE: Final = ("row_cache_hits", "row_cache_misses", "row_cache_stale", "row_cache_evictions")
REPLICA: Final = ("replica_gets", "replica_behind", "replica_unavailable")
_COUNTED: Final = ROW_CACHE + REPLICA
_MEASURED: Final = ("row_cache_lag_us", "row_cache_age_us", "row_cache_following")
# Their cells follow those of _Cell; then comes the histogram of commits.
_STORE_CELLS: Final = {name: cell for cell, name in enumerate(_COUNTED + _MEASURED, len(_Cell))}
_COMMITS: Final = len(_Cell) + len(_STORE_CELLS)


def _now() -> int:
    return int(time.monotonic() / MICROSECOND)


class ProcessEventCounters:
    """The numbers of one process that serves."""

    def __init__(self) -> None:
        self._cells = anonymous((_COMMITS + cells_of(BOUNDS)) * CELL).cast("Q")
        self._reason = anonymous(_MAX_REASON)
        self.commits = Histogram(self._cells[_COMMITS:], BOUNDS)
        self._lock = threading.Lock()  # commits of several threads
        self._added = dict.fromkeys(_COUNTED, 0)  # what this process has added to the cells
        self.commands = CommandDurations()

    @property
    def pid(self) -> int:
        return self._cells[_Cell.PID]

    @property
    def batches(self) -> int:
        return self._cells[_Cell.BATCHES]

    @property
    def lag(self) -> float:
        """Return by how many seconds the last beat was late."""
        return self._cells[_Cell.LAG] * MICROSECOND

    @property
    def errors(self) -> int:
        return self._cells[_Cell.ERRORS]

    @property
    def silence(self) -> float:
        """Return the seconds since the last beat."""
        return (_now() - self._cells[_Cell.HEARTBEAT]) * MICROSECOND

    @property
    def unanswered(self) -> float:
        """Return since how many seconds a query of the store has no answer, 0 if there is none."""
        queried = self._cells[_Cell.QUERIED]
        return (_now() - queried) * MICROSECOND if queried else 0.0

    @property
    def store_error(self) -> str | None:
        """Return the error of the last store check, empty if it succeeded, None before the first check."""
        length = self._cells[_Cell.REASON]
        if length:
            return bytes(self._reason[:length]).decode(errors="replace")
        return "" if self._cells[_Cell.SUCCEEDED] else None

    @property
    def of_store(self) -> dict[str, int]:
        """Return what `record` has recorded, by its names."""
        return {name: self._cells[cell] for name, cell in _STORE_CELLS.items()}

    def begin(self) -> None:
        """Record that this process serves."""
        self._cells[_Cell.HEARTBEAT] = _now()
        self._cells[_Cell.PID] = os.getpid()

    def end(self) -> None:
        """Record that the process has ended; its counters stay."""
        current = _Cell.PID, _Cell.BATCHES, _Cell.LAG, _Cell.QUERIED, _Cell.SUCCEEDED, _Cell.REASON
        for cell in (*current, *map(_STORE_CELLS.__getitem__, _MEASURED)):
            self._cells[cell] = 0

    def heartbeat(self, late: float, batches: int) -> None:
        """Record that the event loop runs, by how many seconds too late, and how many batches are open."""
        self._cells[_Cell.HEARTBEAT] = _now()
        self._cells[_Cell.LAG] = max(0, int(late / MICROSECOND))
        self._cells[_Cell.BATCHES] = batches

    def record(self, numbers: dict[str, int]) -> None:
        """Record the numbers of the store, see `Store.numbers`: of this process since its start."""
        for name, number in numbers.items():
            if name in _COUNTED:
                self._cells[_STORE_CELLS[name]] += number - self._added[name]
                self._added[name] = number
            else:
                self._cells[_STORE_CELLS[name]] = number

    def queried(self) -> None:
        """Record that a store check has begun."""
        self._cells[_Cell.QUERIED] = _now()

    def answered(self, reason: str = "") -> None:
        """Record that the store check succeeded, or why it failed."""
        text = reason.encode(errors="replace")[:_MAX_REASON]
        self._cells[_Cell.REASON] = 0
        self._reason[: len(text)] = text
        self._cells[_Cell.REASON] = len(text)
        self._cells[_Cell.SUCCEEDED] = 0 if text else _now()
        self._cells[_Cell.QUERIED] = 0

    def refused(self) -> None:
        self._cells[_Cell.ERRORS] += 1

    def committed(self, seconds: float) -> None:
        """Count a commit; any thread may."""
        with self._lock:
            self.commits.observe(seconds)


class EventCounters:
    """The numbers of a server."""

    def __init__(self, processes: int) -> None:
        self._cells = anonymous(len(_Common) * CELL).cast("Q")
        self.processes = [ProcessEventCounters() for _ in range(processes)]
        self.watched = False  # metrics or health are served: set before processes are forked

    @property
    def state(self) -> State:
        return State(self._cells[_Common.STATE])

    @state.setter
    def state(self, state: State) -> None:
        self._cells[_Common.STATE] = state

    @property
    def reloads(self) -> tuple[int, int]:
        """Return how many reloads put a configuration in force, and how many were refused."""
        return self._cells[_Common.RELOADED], self._cells[_Common.REFUSED]

    @property
    def restarts(self) -> int:
        """Return how many workers had to be replaced."""
        return self._cells[_Common.RESTARTED]

    def reloaded(self, *, taken: bool) -> None:
        self._cells[_Common.RELOADED if taken else _Common.REFUSED] += 1

    def restarted(self) -> None:
        """Count a worker that ended and is replaced."""
        self._cells[_Common.RESTARTED] += 1
