"""Progress of a run that has no pytest terminal output: a live bar on a terminal, a line for each chapter elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from kvref.errors import printable
from kvref_conformance.judging.verdict import BROKEN, SUITE_ERROR, counted
from kvref_conformance.reports.table import chapter_table

if TYPE_CHECKING:
    from collections import Counter

    from kvref_conformance.judging.verdict import Tally, Verdict

FAILURES: Final = BROKEN | {SUITE_ERROR}


class ProgressDisplay:
    """Shows the progress of a run.

    Args:
        console: console to write to.
        expected: number of cases by chapter.
    """

    def __init__(self, console: Console, expected: Counter[str]) -> None:
        self._console = console
        self._expected = expected
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = (
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[failed]}", style="red", markup=False),
                TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            )
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("", total=expected.total(), failed="")
            self._bar.start()

    def wait_for(self, what: str) -> None:
        """Show on a terminal what the run waits for.

        Args:
            what: a chapter and a case, or other instances.
        """
        if self._bar is not None:
            self._bar.update(self._task, description=what)

    def see(self, verdict: Verdict, tally: Tally) -> None:
        """Show a verdict; a failure at once and with its text."""
        if self._bar is not None:
            failed = sum(tally.totals()[word] for word in FAILURES)
            self._bar.update(self._task, advance=1, failed=f"{failed} failed" if failed else "")
        elif tally.totals(verdict.chapter).total() == self._expected[verdict.chapter]:
            self._console.print(f"{verdict.chapter}: {counted(tally.totals(verdict.chapter))}", highlight=False)
        if verdict.verdict in FAILURES:
            self._console.print(f"\n[red]{verdict.verdict}[/red]", highlight=False)
            self._console.print(printable(verdict.text, keep="\n"), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def summarise(self, tally: Tally, lines: list[str]) -> None:
        """Print the table by chapter and closing lines."""
        self._console.print(chapter_table(tally))
        for line in lines:
            self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
