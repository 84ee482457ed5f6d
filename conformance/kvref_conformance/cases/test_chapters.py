"""Judge every case of the suite: those that are data (`chapter.py`), and those that are generated (`generated.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.cases import all_cases, chapter_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.running.run import Run

CASES = tuple(all_cases())


def test_case(case: Case, run: Run, judge: Callable[[Case], None]) -> None:
    if case.steps:
        judge(case)
    else:
        run.end_generated_test(case, chapter_of(case))
