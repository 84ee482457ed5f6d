"""The table of results in the documentation is that of the record in the package."""

from __future__ import annotations

import json
from pathlib import Path

from kvref_conformance.corpus import listing
from kvref_conformance.reports import results

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance-results.md"


def test_readme_says_what_is_recorded() -> None:
    """Run `.ci/part results` when this fails; the table and its record are written by nothing else."""
    record = json.loads(results.PATH.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert results.filled(page, record) == page
    assert set(record) == set(listing.INNODB_TARGETS)
    assert all(
        counts["otherwise"] == 0 for row in record.values() for counts in row.values() if isinstance(counts, dict)
    )
