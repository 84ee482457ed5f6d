"""The grid as one page that needs nothing else: requirements by endpoints, open a line to see what each answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from kvref.specification.requirements import LEVELS
from kvref_conformance.conversation import shown
from kvref_conformance.reports import pages
from kvref_conformance.reports.grid import ANSWERS, SAME, VERDICTS_DIFFER, parting
from kvref_conformance.spec.page import prose
from kvref_conformance.verdict import (
    ABOUT,
    BROKEN,
    CRASH,
    DEVIATES,
    DISABLED,
    FAILS,
    FLAKY,
    HANG,
    HOLDS,
    NON_STRICT,
    NOT_RUN,
    QUIRK,
    SUITE_ERROR,
    UNSUPPORTED,
    WORST,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.reports.column import Outcome, Step
    from kvref_conformance.reports.grid import Grid

# A verdict has a sign too, not only a color.
SIGNS: Final = {
    HOLDS: "✓",
    QUIRK: "✓",
    NON_STRICT: "~",
    DEVIATES: "≠",
    FLAKY: "±",
    FAILS: "✗",
    HANG: "…",
    CRASH: "†",
    UNSUPPORTED: "·",
    DISABLED: "-",
    NOT_RUN: "?",
    SUITE_ERROR: "!",
}
# A conversation as the page shows it: connection, sent, got, note.
MemcachedStep = tuple[tuple[str, ...], ...]
PARTS: Final = (VERDICTS_DIFFER, ANSWERS, SAME)


def html(grid: Grid) -> str:
    """Return the page."""
    levels = {row.requirement.level for row in grid.rows}
    found = {row.parts for row in grid.rows}
    environment = pages.environment("matrix")
    environment.filters["prose"] = prose
    return environment.get_template("page.html.j2").render(
        grid=grid,
        words=grid.words(),
        signs=SIGNS,
        meaning=ABOUT,
        levels=[level for level in LEVELS if level in levels],
        parts=[word for word in PARTS if word in found],
        data=_data(grid),
        rows_script=pages.asset("matrix/rows.js"),
        **pages.inside("matrix"),
    )


def _data(grid: Grid) -> Markup:
    """Return what the lines show when they are opened, as JSON inside the page; equal conversations are there once."""
    conversations: dict[MemcachedStep, int] = {}
    cases = {
        case: _outcomes([column.outcomes.get(case) for column in grid.columns], conversations)
        for case in dict.fromkeys(case for row in grid.rows for case in row.cases)
    }
    data = {
        "columns": [(column.name, column.about()) for column in grid.columns],
        "verdicts": WORST,
        "requirements": {row.requirement.id: row.cases for row in grid.rows},
        "cases": cases,
        "conversations": list(conversations),
    }
    # JSON is inside a script element, which "</script" would end.
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))  # noqa: S704


def _outcomes(outcomes: Sequence[Outcome | None], conversations: dict[MemcachedStep, int]) -> list[list[Any] | None]:
    """Return for each endpoint [verdict, reason, conversation, step at which it parts from the first one, text].

    The keys and cas numbers of a run differ; where nothing else does, not even in a step that is never compared or in
    what a hole of an allowed answer matches, endpoints show one conversation: that of the first.
    """
    seen: dict[object, int] = {}
    told = [outcome for outcome in outcomes if outcome is not None and outcome.steps]
    made: list[list[Any] | None] = []
    for outcome in outcomes:
        if outcome is None:
            made.append(None)
            continue
        place, parts = -1, None
        if outcome.steps:
            whole = outcome.whole() or outcome
            if whole not in seen:
                seen[whole] = conversations.setdefault(tuple(map(_shown, outcome.steps)), len(conversations))
            number = parting(told[0], outcome)
            place, parts = seen[whole], None if number is None else outcome.place(number)
        text = outcome.text if outcome.verdict in BROKEN | {SUITE_ERROR} else ""
        made.append([WORST.index(outcome.verdict), outcome.reason, place, parts, text])
    return made


def _shown(step: Step) -> tuple[str, ...]:
    return step.on, shown(step.sent), shown(step.got), step.note
