"""How long work (download, unpacking, first initialisation) is shown, or not shown.

Everything that takes long receives a `Progress`; tests and libraries pass QUIET, the command line passes a Terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

if TYPE_CHECKING:
    from types import TracebackType


class Progress(Protocol):
    """Progress reports of a long operation."""

    def step(self, text: str) -> None:
        """Say what begins now."""

    def advance(self, what: str, done: int, total: int) -> None:
        """Say how many of `total` bytes of `what` are done."""


class Quiet:
    """Show nothing."""

    def step(self, text: str) -> None:
        """Ignore the text."""

    def advance(self, what: str, done: int, total: int) -> None:
        """Ignore the count."""


QUIET = Quiet()


class Terminal:
    """Show steps as lines and byte counts as bars, on standard error so that standard output stays the answer."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        # Without a bar there is nothing to stop, and stopping would print an empty line.
        if self._tasks:
            self._bars.stop()

    def step(self, text: str) -> None:
        """Print the text as a line above the bars."""
        self._console.print(text, markup=False)

    def advance(self, what: str, done: int, total: int) -> None:
        """Move the bar of `what`, which appears at its first call."""
        if what not in self._tasks:
            self._bars.start()
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done)
