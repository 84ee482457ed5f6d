"""Generated tables, rows of `containers`, delimiters and separators, judged by `kvref_conformance.stateful.schemas`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case
from kvref_conformance.stateful.case_names import ANY_CONFIGURATION, ANY_ROW, ANY_TABLE

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.running.run import Run

CASES = (
    case(ANY_TABLE, "KV-SEQ-002"),
    case(ANY_ROW, "KV-SEQ-003"),
    case(ANY_CONFIGURATION, "KV-SEQ-004"),
)


def test_schemas(case: Case, run: Run) -> None:
    run.end_generated_test(case, "schemas")
