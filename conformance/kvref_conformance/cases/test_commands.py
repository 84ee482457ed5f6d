"""Any order of commands on two connections, judged by the model in `kvref_conformance.stateful.commands`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.running.run import Run

CASES = (case("any-order-of-commands", "KV-SEQ-001"),)


def test_commands(case: Case, run: Run) -> None:
    run.end_generated_test(case, "commands")
