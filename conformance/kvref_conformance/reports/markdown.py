"""Reports as Markdown: of a run, and of several for a pull request, for an upgrade and of what was generated."""

from __future__ import annotations

import re
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kvref.errors import printable
from kvref_conformance.cases import all_cases
from kvref_conformance.judging.conversation import shown
from kvref_conformance.judging.verdict import BROKEN, DISABLED, NOT_RUN, SUITE_ERROR, UNSUPPORTED, base, counted
from kvref_conformance.reports.grid import VERDICTS_DIFFER, changes
from kvref_conformance.reports.groups import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kvref_conformance.judging.verdict import Tally
    from kvref_conformance.reports.column import Column, Outcome, Step
    from kvref_conformance.reports.grid import Grid, Row
    from kvref_conformance.reports.groups import Group
    from kvref_conformance.reports.header import Header

# Code hosts accept comments of 65,536 characters.
MAX_CHARACTERS: Final = 60_000
# Steps before the one at which two endpoints part.
BEFORE: Final = 4
MAX_CASES: Final = 20  # in the list of a group
# Before a conversation stand the requirement, the endpoint and the seed.
CONVERSATION: Final = re.compile(r"^(?:seed|history) [^\n]*\n", re.MULTILINE)


def failures(header: Header, tally: Tally, limit: int = MAX_CHARACTERS) -> str:
    """Return the failures of a run as Markdown.

    Args:
        header: of the run.
        tally: its verdicts.
        limit: maximum length in characters; the groups that do not fit are left out and counted.
    """
    lines = ["## kvref conformance", ""]
    lines.append(f"{inline(header.endpoint)} as {inline(header.profile)}: {counted(tally.totals())}")
    lines += [f"- {inline(complaint)}" for complaint in tally.complaints]
    head = "\n".join(lines) + "\n"
    return within([head, *("\n".join(_block(group)) + "\n" for group in grouped(tally.verdicts))], limit)


def _block(group: Group) -> Iterator[str]:
    count = len(group.verdicts)
    yield f"\n### {count} {'case' if count == 1 else 'cases'}: {inline(group.cause)}\n"
    yield "Requirements: " + ", ".join(f"{name} ({count})" for name, count in group.requirements()) + "\n"
    cases = [inline(each.case) for each in group.verdicts[:MAX_CASES]]
    more = f" and {count - MAX_CASES} more" if count > MAX_CASES else ""
    yield f"<details><summary>Cases: {', '.join(cases)}{more}</summary>\n"
    yield from fenced(group.verdicts[0].text.splitlines())
    yield "\n</details>"


def found(grid: Grid) -> str:
    """Return what is broken in cases that are drawn and not written."""
    drawn = {case.id for case in all_cases() if not case.steps}
    by_column = [
        (column, [each for each in column.outcomes.values() if each.verdict in BROKEN and base(each.case) in drawn])
        for column in grid.columns
    ]
    count = sum(len(outcomes) for _, outcomes in by_column)
    lines = ["# What generated conversations found", ""]
    lines.append(
        f"{count} things on {sum(bool(outcomes) for _, outcomes in by_column)} of {len(grid.columns)} endpoints."
    )
    for column, outcomes in by_column:
        if outcomes:
            lines += ["", f"## {column.name}", "", f"{column.about()}."]
        for outcome in outcomes:
            lines += ["", f"### {outcome.case}: {outcome.verdict}", "", *fenced(_conversation(outcome))]
    return "\n".join(lines) + "\n"


def _conversation(outcome: Outcome) -> list[str]:
    text = CONVERSATION.split(outcome.text, maxsplit=1)[-1]
    # The file is one of the run, and the endpoint is gone.
    return [line for line in text.splitlines() if not line.startswith(("again: ", "by hand: "))]


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
    found = [(row, changed) for row in grid.rows if (changed := changes(row.cases, before, after))]
    gone = [row for row in grid.rows if _applies(row, before) and not _applies(row, after)]
    new = [row for row in grid.rows if _applies(row, after) and not _applies(row, before)]
    lines.append(
        f"{len(found)} requirements are answered otherwise, {len(gone)} apply to {before.name} only, "
        f"{len(new)} to {after.name} only."
    )
    for row, changed in found:
        lines += ["", f"### {row.requirement.id} {row.requirement.title}", "", row.requirement.statement, ""]
        lines.append(f"{before.name}: {row.verdicts[before.name]}; {after.name}: {row.verdicts[after.name]}.")
        # One conversation shows it; the others are in the reports.
        one, other, number = changed[0]
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        lines += [
            "",
            f"Case `{one.case}`{more}:",
            "",
            *fenced(_in_columns(one, other, number, (before.name, after.name))),
        ]
    for title, rows in ((f"Only {before.name}", gone), (f"Only {after.name}", new)):
        if rows:
            lines += ["", f"### {title}", ""]
            lines += [f"* {row.requirement.id} {row.requirement.statement}" for row in rows]
    return lines


def _applies(row: Row, column: Column) -> bool:
    return row.verdicts[column.name] not in {UNSUPPORTED, DISABLED, NOT_RUN}


def _in_columns(one: Outcome, other: Outcome, number: int, names: tuple[str, str]) -> Iterator[str]:
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
    result = [printable(line) for line in lines]
    runs = [len(found[1]) for line in result if (found := re.match(r" {0,3}(~+)", line))]
    fence = "~" * max([4, *(run + 1 for run in runs)])
    return [f"{fence}text", *result, fence]


def within(blocks: Iterable[str], limit: int) -> str:
    """Return blocks of Markdown joined, without those at the end that exceed a limit.

    Args:
        blocks: each ends with a line end.
        limit: maximum length in characters.
    """
    result, left = "", 0
    for block in blocks:
        if left or len(result) + len(block) > limit - len(_rest(1_000_000)):
            left += 1
        else:
            result += block
    return result + (_rest(left) if left else "")


def _rest(left: int) -> str:
    return f"\n{left} more parts are left out here: the HTML page has them.\n"
