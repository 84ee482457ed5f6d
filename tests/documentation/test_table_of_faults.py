"""The table of faults in the documentation is that of the record, and the record has every fault."""

from __future__ import annotations

import json
from pathlib import Path

from faults.description import described
from faults.survived import MARKS, RECORD, table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "faults.md"
AGAIN = "run `bash .ci/part faults`"


def test_the_table_is_that_of_the_record() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition(MARKS[0])[2].partition(MARKS[1])[0]
    assert shown.strip() == table(record).strip(), AGAIN


def test_the_record_has_every_fault_as_it_is_described() -> None:
    rows = {row["fault"]: row for row in json.loads(RECORD.read_text(encoding="utf-8"))["rows"]}
    for name, row in described().items():
        assert name in rows, AGAIN
        assert rows[name]["expected"] == " ".join(row["expectation"].split()), AGAIN
