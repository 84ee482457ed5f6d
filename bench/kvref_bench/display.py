"""What a user sees of a run while it goes on: a line for each step and each point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from kvref_bench.load import histogram

if TYPE_CHECKING:
    from kvref_bench.order import Turn
    from kvref_bench.runs.records import Point


class Screen:
    """Shows the progress of a run on standard error."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._points = self._number = 0
        self._turn = ""

    def begin(self, points: int, seconds: float) -> None:
        """Show the number of points and the minimum of their total time in seconds."""
        self._points = points
        self.note(f"{points} points, at least {duration(seconds)}")

    def note(self, text: str) -> None:
        """Show a line for the user."""
        self._console.print(text, markup=False)

    def step(self, text: str) -> None:
        """Say what begins now."""
        self.note(text)

    def advance(self, what: str, done: int, total: int) -> None:
        """Ignore a count, see `kvref_testbed.targets.Progress`: each step is a line."""

    def point(self, turn: Turn) -> None:
        """Take which point begins."""
        self._number += 1
        words = [f"{turn.series.name} on {turn.server}", f"{turn.sessions} sessions"]
        words += [f"{name}={value}" for name, value in turn.settings.items()]
        words += [] if turn.share is None else [f"open loop at {turn.share:.0%}"]
        self._turn = f"[{self._number}/{self._points}] {', '.join(words)}, repetition {turn.repetition + 1}"

    def measured(self, point: Point, reasons: list[str]) -> None:
        """Take a point that is over, and why it is not valid."""
        merged = point.merged
        counts = merged.bins("service" if point.rate is None else "intended")
        took = _latencies(histogram.quantile(counts, 0.5), histogram.quantile(counts, 0.99))
        errors = sum(each.errors for each in point.results)
        text = f"{self._turn}: {merged.per_second:,.0f} op/s, {took}"
        text += f", {errors} errors" if errors else ""
        self.note(text + (f"; not valid: {'; '.join(reasons)}" if reasons else ""))


def duration(seconds: float) -> str:
    """Say a duration in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _latencies(p50: int, p99: int) -> str:
    return f"p50 {p50 / 1e6:.3f} ms, p99 {p99 / 1e6:.3f} ms"
