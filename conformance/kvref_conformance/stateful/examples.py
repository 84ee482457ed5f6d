"""Judge a case by drawn examples: each thing that is not allowed becomes a verdict with its smallest conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis.errors import Flaky

from kvref_conformance.conversation import render
from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.findings import Finding, ShrinkLimitReached, collect
from kvref_conformance.verdict import NOT_RUN, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.findings import Search
    from kvref_conformance.judge import Judge


def refused(judge: Judge, case: Case, chapter: str, needs_sql: str) -> list[Verdict]:
    """Return the verdict of a case that is not run on this endpoint, else none.

    Args:
        judge: of the run.
        case: names the requirement.
        chapter: for the verdict.
        needs_sql: what the case needs --sql for; empty where it does not.
    """
    reason = judge.refuse(case)
    if reason is None and needs_sql and judge.world is None:
        reason = NOT_RUN, f"needs --sql DSN: {needs_sql}"
    return [Verdict(case.id, chapter, case.requirements, *reason)] if reason is not None else []


def judge_examples(
    search: Search,
    judge: Judge,
    case: Case,
    chapter: str,
    start: int,
    run: Callable[[], None],
    script: Callable[[], Case],
) -> list[Verdict]:
    """Run drawn conversations until nothing new is found, or MOST things are.

    Args:
        search: takes what is not allowed.
        judge: of the run.
        case: names the requirement.
        chapter: for the verdicts.
        start: seed.
        run: runs hypothesis once.
        script: returns the last conversation as a case.
    """

    def look() -> Finding | None:
        search.begin()
        try:
            run()
        except CaseFailed:
            note = ""
        except (ShrinkLimitReached, Flaky) as error:
            flaky = isinstance(error, Flaky) and not search.patience.over
            note = f"; {'the same bytes, sent again, were answered otherwise' if flaky else 'perhaps not the shortest'}"
        else:
            return None
        return search.finding(f"seed {start}{note}\n{render(search.last)}", script())

    try:
        return collect(judge, case, chapter, look)
    except NotRun as reason:
        return [Verdict(case.id, chapter, case.requirements, NOT_RUN, str(reason))]
