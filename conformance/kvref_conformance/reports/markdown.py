"""The grid as Markdown: for a pull request, and what changes for clients from one endpoint to the next."""

from __future__ import annotations

import re
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kvref.errors import printable
from kvref_conformance.judging.conversation import shown
from kvref_conformance.judging.verdict import BROKEN, DISABLED, NOT_RUN, SUITE_ERROR, UNSUPPORTED
from kvref_conformance.reports.grid import VERDICTS_DIFFER, changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kvref_conformance.reports.column import Column, Outcome, Step
    from kvref_conformance.reports.grid import Grid, Row

# Code hosts accept comments of 65,536 characters.
MAX_CHARACTERS: Final = 60_000
# Steps before the one at which two endpoints part.
BEFORE: Final = 4


def summary(grid: Grid) -> str:
    """Return what a pull request shows: the endpoints counted, where verdicts differ, and what fails.

    The failures that exceed `MAX_CHARACTERS` are left out and counted.
    """
    words = grid.words()
    lines = ["## kvref conformance", "", *_table(("endpoint", "judged", *words), _counts(grid, words)), ""]
    lines += [f"- **{column.name}**: {inline(complaint)}" for column in grid.columns for complaint in column.complaints]
    if levels := grid.levels():
        heads = ("level of conformance", *(column.name for column in grid.columns))
        rows = [
            (name, *(f"{each.verdict}: {each.count()}" if each else "" for each in cells)) for name, cells in levels
        ]
        lines += ["", *_table(heads, rows)]
    differing = [row for row in grid.rows if row.parts == VERDICTS_DIFFER]
    if differing:
        title = f"Verdicts differ in {len(differing)} of {len(grid.rows)} requirements"
        heads = ("requirement", *(column.name for column in grid.columns))
        lines += ["", f"<details><summary>{title}</summary>", ""]
        lines += [*_table(heads, map(_verdicts, differing)), "", "</details>"]
    blocks = ["\n".join(lines) + "\n"]
    for column in grid.columns:
        for outcome in column.outcomes.values():
            if outcome.verdict in BROKEN | {SUITE_ERROR}:
                head = f"**{inline(outcome.case)}** {outcome.verdict} on {column.name}"
                blocks.append("\n".join(["", head, "", *fenced(outcome.text.splitlines()), ""]))
    return within(blocks, MAX_CHARACTERS)


def upgrade(grid: Grid) -> str:
    """Return what a client sees change from each endpoint to the next, by requirement, with both answers.

    A requirement is listed where a case was answered otherwise, or where it does not apply to one of the two.
    """
    lines = [f"# From {' to '.join(column.name for column in grid.columns)}", ""]
    lines += [f"* {column.name}: {inline(column.about())}" for column in grid.columns]
    for before, after in pairwise(grid.columns):
        lines += _pair(grid, before, after)
    return "\n".join(lines) + "\n"


def _pair(grid: Grid, before: Column, after: Column) -> list[str]:
    lines = ["", f"## {before.name} to {after.name}", ""]
    found = [(row, held) for row in grid.rows if (held := changes(row.cases, before, after))]
    gone = [row for row in grid.rows if _applies(row, before) and not _applies(row, after)]
    new = [row for row in grid.rows if _applies(row, after) and not _applies(row, before)]
    lines.append(
        f"{len(found)} requirements are answered otherwise, {len(gone)} apply to {before.name} only, "
        f"{len(new)} to {after.name} only."
    )
    for row, held in found:
        lines += ["", f"### {row.requirement.id} {row.requirement.title}", "", row.requirement.statement, ""]
        lines.append(f"{before.name}: {row.verdicts[before.name]}; {after.name}: {row.verdicts[after.name]}.")
        # One conversation shows it; the others are in the reports.
        one, other, number = held[0]
        more = f" (and {len(held) - 1} more)" if len(held) > 1 else ""
        lines += ["", f"Case `{one.case}`{more}:", "", *fenced(_beside(one, other, number, (before.name, after.name)))]
    for title, rows in ((f"Only {before.name}", gone), (f"Only {after.name}", new)):
        if rows:
            lines += ["", f"### {title}", ""]
            lines += [f"* {row.requirement.id} {row.requirement.statement}" for row in rows]
    return lines


def _applies(row: Row, column: Column) -> bool:
    return row.verdicts[column.name] not in {UNSUPPORTED, DISABLED, NOT_RUN}


def _beside(one: Outcome, other: Outcome, number: int, names: tuple[str, str]) -> Iterator[str]:
    place = one.place(number)
    if place > BEFORE:
        yield f"({place - BEFORE} steps before)"
    for step in one.steps[max(0, place - BEFORE) : place]:
        yield from _spoken(step)
    width = max(map(len, names))
    for name, outcome in zip(names, (one, other), strict=True):
        here = outcome.steps[outcome.place(number) :][:1]
        for line in _spoken(here[0]) if here else ["(ended before)"]:
            yield f"{name:<{width}}  {line}"


def _spoken(step: Step) -> tuple[str, str]:
    return f"{step.on} > {shown(step.sent)}", f"{step.on} < {_answer(step)}"


def _answer(step: Step) -> str:
    return shown(step.got) + (f"  ({step.note})" if step.note else "")


def _counts(grid: Grid, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for column in grid.columns:
        totals = grid.totals(column.name)
        yield (column.name, inline(column.about()), *(str(totals[word] or "") for word in words))


def _verdicts(row: Row) -> tuple[str, ...]:
    return (f"{row.requirement.id} {row.requirement.title}", *row.verdicts.values())


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    made = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in made]


def inline(text: str) -> str:
    """Return text of an endpoint or a file as text of Markdown: no tag, link or code."""
    return re.sub(r"([\\`*\[\]])", r"\\\1", escape(printable(text), quote=False))


def fenced(lines: Iterable[str]) -> list[str]:
    """Return lines as a block of text, which no line of it ends."""
    # Tildes: conversations have backquotes in SQL.
    kept = [printable(line) for line in lines]
    runs = [len(found[1]) for line in kept if (found := re.match(r" {0,3}(~+)", line))]
    fence = "~" * max([4, *(run + 1 for run in runs)])
    return [f"{fence}text", *kept, fence]


def within(blocks: Iterable[str], limit: int) -> str:
    """Return blocks of Markdown joined, without those at the end that exceed a limit.

    Args:
        blocks: each ends with a line end.
        limit: maximum length in characters.
    """
    kept, left = "", 0
    for block in blocks:
        if left or len(kept) + len(block) > limit - len(_rest(1_000_000)):
            left += 1
        else:
            kept += block
    return kept + (_rest(left) if left else "")


def _rest(left: int) -> str:
    return f"\n{left} more parts are left out here: the HTML page has them.\n"
