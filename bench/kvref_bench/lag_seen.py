"""Who looks for what a trial of `lag.py` has written, and where it is counted."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError
from kvref_bench.load import histogram
from kvref_bench.load.plan import Kind
from kvref_bench.load.result import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.observer import InnoDB, Name, Observer

UNLOCKED: Final = Kind("set", "unlocked")
EVERY: Final = 0.005


class Found:
    """What was seen, counted by any thread.

    limit: seconds after which something counts as not seen.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.start = time.perf_counter()
        self.histograms: dict[Cell, dict[int, int]] = {}
        self.unseen: list[str] = []
        self._lock = threading.Lock()

    def count(self, kind: Kind, since: int) -> None:
        """Count what happened now, ns after the reply to the last write of its trial."""
        now = time.perf_counter_ns()
        cell = Cell(int(now / 1e9 - self.start), kind, "service")
        place = histogram.index(now - since)
        with self._lock:
            bins = self.histograms.setdefault(cell, {})
            bins[place] = bins.get(place, 0) + 1

    def miss(self, kind: Kind) -> None:
        """Count a row that was not seen within the limit."""
        with self._lock:
            self.unseen.append(f"not {kind.outcome} after {self.limit:g} s")

    def is_late(self, since: int) -> bool:
        """Return whether a trial has waited for the limit."""
        return time.perf_counter_ns() - since > self.limit * 1e9


class Eye:
    """One connection that looks for the rows of all trials, in a thread of its own."""

    def __init__(self, kind: Kind, observer: Observer, found: Found) -> None:
        self._kind = kind
        self._observer = observer
        self._found = found
        self._awaited: dict[frozenset[Name], tuple[int, threading.Event]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._error: Exception | None = None

    def __enter__(self) -> Eye:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._observer.close()

    def expect(self, cells: Sequence[Name], since: int) -> threading.Event:
        """Look for rows from now on; the event is set when they are seen or given up."""
        seen = threading.Event()
        self._awaited[frozenset(cells)] = (since, seen)
        return seen

    def check(self) -> None:
        """Raise what ended the looking."""
        if self._error is not None:
            raise BenchError(f"SQL could not look for the rows: {self._error}") from self._error

    def _look(self) -> None:
        try:
            while not self._over.wait(EVERY):
                self._look_once()
        except Exception as error:  # noqa: BLE001 - raised by `check` in the thread that waits
            self._error = error
            for _, seen in list(self._awaited.values()):
                seen.set()

    def _look_once(self) -> None:
        awaited = dict(self._awaited)
        there = self._observer.present([cell for cells in awaited for cell in cells]) if awaited else set()
        for cells, (since, seen) in awaited.items():
            if cells <= there:
                self._found.count(self._kind, since)
            elif self._found.is_late(since):
                self._found.miss(self._kind)
            else:
                continue
            del self._awaited[cells]
            seen.set()


class LockWait:
    """One connection that waits for the locks of one trial's rows, in a thread of its own."""

    def __init__(self, observer: InnoDB, found: Found) -> None:
        self._observer = observer
        self._found = found
        self._thread: threading.Thread | None = None

    def __enter__(self) -> LockWait:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.join()
        self._observer.close()

    def expect(self, cells: Sequence[Name], since: int) -> threading.Event:
        """Wait for rows from now on; the event is set when their locks were got or given up."""
        ended = threading.Event()
        self._thread = threading.Thread(target=self._wait, args=(cells, since, ended))
        self._thread.start()
        return ended

    def _wait(self, cells: Sequence[Name], since: int, ended: threading.Event) -> None:
        # A trial that was given up has ended its connection, and so the batch.
        if self._observer.lock(cells) and not self._found.is_late(since):
            self._found.count(UNLOCKED, since)
        else:
            self._found.miss(UNLOCKED)
        ended.set()
