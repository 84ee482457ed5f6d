"""Any table, any row of `containers`, any delimiter and separator: generated, judged by `kvref_conformance.shapes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case
from kvref_conformance.shape_names import ANY_CONFIGURATION, ANY_ROW, ANY_TABLE

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.run import Run

CASES = (
    case(ANY_TABLE, "KV-SEQ-002"),
    case(ANY_ROW, "KV-SEQ-003"),
    case(ANY_CONFIGURATION, "KV-SEQ-004"),
)


def test_shapes(case: Case, run: Run) -> None:
    from kvref_conformance.ending import end_test  # noqa: PLC0415 - the catalogue of cases is read without it
    from kvref_conformance.shapes import judge_shapes  # noqa: PLC0415 - the catalogue of cases is read without it

    end_test(run, *judge_shapes(run.judge, case, "shapes", run.examples, run.seed))
