"""The table of the cases that deviations name is current."""

from __future__ import annotations

from kvref_conformance.spec import deviation_cases


def test_the_table_is_current() -> None:
    assert deviation_cases.PATH.read_text(encoding="utf-8") == deviation_cases.text(), (
        "run python -m kvref_conformance.spec.deviation_cases"
    )
