"""The table of the cases that deviations name is current."""

from __future__ import annotations

from kvref.specification import deviations
from kvref_conformance.cases import all_cases
from kvref_conformance.spec import deviation_cases
from kvref_conformance.spec.entry import cases_of


def test_the_table_is_current() -> None:
    assert deviation_cases.PATH.read_text(encoding="utf-8") == deviation_cases.text(), (
        "run python -m kvref_conformance.spec.deviation_cases"
    )


def test_it_has_the_cases_of_a_requirement_that_a_row_names() -> None:
    named = deviations.subjects()
    requirements = {requirement for case in all_cases() for requirement in case.requirements}
    assert any(deviations.cases_of(each) for each in requirements)
    for requirement in requirements:
        assert deviations.cases_of(requirement) == tuple(case for case in cases_of(requirement) if case in named)
