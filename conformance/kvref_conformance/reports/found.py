"""What generated conversations found on each endpoint, each with the shortest that shows it; Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kvref_conformance.cases import all_cases
from kvref_conformance.judging.verdict import BROKEN, base
from kvref_conformance.reports.markdown import fenced

if TYPE_CHECKING:
    from kvref_conformance.reports.column import Outcome
    from kvref_conformance.reports.grid import Grid

# Before the conversation stand the requirement, the endpoint and the seed.
CONVERSATION = re.compile(r"^(?:seed|history) [^\n]*\n", re.MULTILINE)


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
