"""Generated commands with any arguments, judged by `kvref_conformance.stateful.commands`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.running.run import Run

CASES = (case("any-arguments", "KV-SEQ-005"),)


def test_arguments(case: Case, run: Run) -> None:
    run.end_generated_test(case, "arguments")
