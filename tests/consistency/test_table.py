"""The table of consistency in the documentation is that of the record, and the record has every system."""

from __future__ import annotations

import json
from pathlib import Path

from consistency.report import MARKS, RECORD, table
from consistency.systems import SETUPS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "consistency.md"
AGAIN = "run `bash .ci/part consistency`"


def test_the_table_is_that_of_the_record() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    shown = PAGE.read_text(encoding="utf-8").partition(MARKS[0])[2].partition(MARKS[1])[0]
    assert shown.strip() == table(record).strip(), AGAIN
    assert [*record["rows"]] == [each.name for each in SETUPS], AGAIN
    assert all(row["wrong"] == [] for row in record["rows"].values())
