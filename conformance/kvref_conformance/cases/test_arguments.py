"""Generated commands of the text protocol with any arguments, judged by `kvref_conformance.stateful.arguments`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.run import Run

CASES = (case("any-arguments", "KV-SEQ-005"),)


def test_arguments(case: Case, run: Run) -> None:
    from kvref_conformance.stateful.arguments import judge_arguments  # noqa: PLC0415 - the catalogue of cases is read without it

    run.end_test(*judge_arguments(run.judge, case, "arguments", run.examples, run.seed))
