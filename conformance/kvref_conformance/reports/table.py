"""The table by chapter, and the progress of a run that has no other terminal output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from kvref_conformance.judging.verdict import BROKEN, FAILS, HOLDS, SUITE_ERROR, VERDICTS

if TYPE_CHECKING:
    from kvref_conformance.judging.verdict import Tally


def chapter_table(tally: Tally) -> Table:
    """Return verdicts by chapter."""
    table = Table(title="verdicts by chapter", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column("chapter", no_wrap=True)
    totals = tally.totals()
    words = [word for word in VERDICTS if totals[word] or word in {HOLDS, FAILS}]
    for word in words:
        table.add_column(word, justify="right", no_wrap=True)
    for chapter in tally.chapters():
        table.add_row(chapter, *(_cell(word, tally.totals(chapter)[word]) for word in words))
    table.add_section()
    table.add_row("all", *(_cell(word, totals[word]) for word in words), style="bold")
    return table


def rendered(table: Table) -> str:
    """Return a table as plain text."""
    console = Console(width=100, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _cell(word: str, count: int) -> str:
    if not count:
        return "·"
    return f"[red]{count}[/red]" if word in BROKEN | {SUITE_ERROR} else str(count)
