"""What a user sees of a run while it goes on: one line for each point, and on a terminal the second that just ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kvref_bench.load import histogram
from kvref_bench.runs.merge import Merged
from kvref_testbed.targets import Progress as Steps

if TYPE_CHECKING:
    from types import TracebackType

    from kvref_bench.load.channel import Progress
    from kvref_bench.order import Turn
    from kvref_bench.runs.records import Point


class Display(Steps, Protocol):
    """Receives the progress of a run."""

    def begin(self, points: int, seconds: float) -> None:
        """Show the number of points and the minimum of their total time in seconds."""

    def note(self, text: str) -> None:
        """Show a line for the user."""

    def point(self, turn: Turn) -> None:
        """Show which point begins."""

    def progress(self, what: Progress) -> None:
        """Take what one worker did in a second."""

    def measured(self, point: Point, reasons: list[str]) -> None:
        """Take a point that is over, and why it is not valid."""


class Screen:
    """A `Display` on standard error: a line for each point, below them, on a terminal, what happens now."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._live = Live(Text(), console=self._console, refresh_per_second=4, transient=True)
        self._points = self._number = 0
        self._least = 0.0
        self._began = self._point_began = 0.0
        self._turn = ""
        self._seconds: dict[int, Progress] = {}
        self._errors = 0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, points: int, seconds: float) -> None:
        """See `Display`."""
        self._points, self._least = points, seconds
        self.note(f"{points} points, at least {duration(seconds)}")

    def step(self, text: str) -> None:
        """Say what begins now; where it is no terminal, only what takes part in the record is worth a line."""
        if self._console.is_terminal:
            self._live.update(Text(text))
        else:
            self.note(text)

    def advance(self, what: str, done: int, total: int) -> None:
        """Show a count, on a terminal."""
        if self._console.is_terminal:
            self._live.update(Text(f"{what}: {done} of {total}"))

    def note(self, text: str) -> None:
        """See `Display`."""
        self._console.print(text, markup=False)

    def point(self, turn: Turn) -> None:
        """See `Display`."""
        self._number += 1
        self._point_began = time.monotonic()
        self._began = self._began or self._point_began
        self._turn = named(turn)
        self._seconds, self._errors = {}, 0
        if self._console.is_terminal:
            self._live.update(Text(f"[{self._number}/{self._points}] {self._turn} …"))

    def progress(self, what: Progress) -> None:
        """See `Display`."""
        self._seconds[what.worker] = what
        self._errors = max(self._errors, sum(each.errors for each in self._seconds.values()))
        if not self._console.is_terminal:
            return
        now = self._seconds.values()
        rate = sum(each.operations for each in now)
        latencies = _latencies(sorted(each.p50 for each in now)[len(now) // 2], max(each.p99 for each in now))
        text = f"[{self._number}/{self._points}] {self._turn}: {rate:,} op/s, {latencies}, {self._errors} errors"
        self._live.update(Text(f"{text}; {duration(self._left())} left"))

    def measured(self, point: Point, reasons: list[str]) -> None:
        """See `Display`."""
        merged = Merged.of(point.results)
        counts = merged.bins("service" if point.rate is None else "intended")
        latencies = _latencies(histogram.quantile(counts, 0.5), histogram.quantile(counts, 0.99))
        errors = sum(each.errors for each in point.results)
        text = (
            f"[{self._number}/{self._points}] {self._turn}: {merged.ops / (merged.seconds or 1):,.0f} op/s, {latencies}"
        )
        text += f", {errors} errors" if errors else ""
        self.note(text + (f"; not valid: {'; '.join(reasons)}" if reasons else ""))

    def _left(self) -> float:
        done = self._number - 1
        whole = (self._point_began - self._began) / done * (self._points - done) if done else self._least
        return max(0.0, whole - (time.monotonic() - self._point_began))


def named(turn: Turn) -> str:
    """Name a point."""
    words = [f"{turn.series.name} on {turn.server}", f"{turn.sessions} sessions"]
    words += [f"{name}={value}" for name, value in turn.settings.items()]
    if turn.share is not None:
        words.append(f"open loop at {turn.share:.0%}")
    return ", ".join([*words, f"repetition {turn.repetition + 1}"])


def duration(seconds: float) -> str:
    """Say a duration in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _latencies(p50: int, p99: int) -> str:
    return f"p50 {p50 / 1e6:.3f} ms, p99 {p99 / 1e6:.3f} ms"
