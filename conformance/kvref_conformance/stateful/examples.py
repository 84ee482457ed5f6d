"""Judge a case by drawn examples: each thing that is not allowed becomes a verdict with its smallest conversation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from hypothesis.errors import Flaky

from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.judging.budget import OverTime
from kvref_conformance.judging.conversation import render
from kvref_conformance.judging.findings import ShrinkLimitReached
from kvref_conformance.judging.step_rules import rules_of
from kvref_conformance.judging.verdict import CRASH, FAILS, HOLDS, NOT_RUN, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.judging.conversation import Exchange
    from kvref_conformance.judging.findings import Search
    from kvref_conformance.judging.judge import Judge


# After so many no more things are looked for.
SECONDS: Final = 120.0


def judge_examples(
    search: Search,
    judge: Judge,
    case: Case,
    chapter: str,
    start: int,
    run: Callable[[], None],
    script: Callable[[], Case],
) -> list[Verdict]:
    """Run drawn conversations until nothing new is found, or enough is.

    Args:
        search: takes what is not allowed.
        judge: of the run.
        case: names the requirement.
        chapter: for the verdicts.
        start: seed.
        run: runs hypothesis once.
        script: returns the last conversation as a case.
    """

    began = last = time.monotonic()
    found: list[Verdict] = []
    while len(found) < search.most and time.monotonic() - began < SECONDS and not judge.liveness.ended:
        search.begin()
        try:
            run()
        except CaseFailed:
            note = ""
        except (ShrinkLimitReached, Flaky) as error:
            flaky = isinstance(error, Flaky) and not search.patience.over
            note = f"; {'the same bytes, sent again, were answered otherwise' if flaky else 'perhaps not the shortest'}"
        except (NotRun, OverTime) as error:
            reason = str(error) if isinstance(error, NotRun) else judge.budget.spent()
            return found or [Verdict(case.id, chapter, case.requirements, NOT_RUN, reason)]
        else:
            break
        name = f"{case.id}~{len(found) + 1}" if found else case.id
        word = CRASH if search.take() else FAILS
        now = time.monotonic()
        text = judge.explain(case, f"seed {start}{note}\n{render(search.last)}{_rules(search.last, judge)}")
        about = (judge.statement_of(case), round(now - last, 4), search.last, text)
        found.append(Verdict(name, chapter, case.requirements, word, *about, script=script()))
        last = now
    holds = Verdict(case.id, chapter, case.requirements, HOLDS, "", round(time.monotonic() - began, 4))
    return found or [holds]


def _rules(exchanges: tuple[Exchange, ...], judge: Judge) -> str:
    """Return a line with the requirements that state the reply of the last step; empty if none does."""
    last = exchanges[-1] if exchanges else None
    names = rules_of(last.sent, last.allowed, judge.endpoint.profile) if last is not None else ()
    return f"\nrequirements of this step: {', '.join(names)}" if names else ""
