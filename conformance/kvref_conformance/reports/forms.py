"""The grid for machines: JSON (`matrix.schema.json`), JUnit, and badges in the form that shields.io reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from kvref_conformance.judging.verdict import (
    BROKEN,
    DEVIATES,
    FAILED,
    HOLDS,
    NON_STRICT,
    PASSING,
    QUIRK,
    SUITE_ERROR,
    outcome_counts,
)

if TYPE_CHECKING:
    from kvref_conformance.reports.column import Column, Outcome
    from kvref_conformance.reports.grid import Grid

FORMAT: Final = 1
BADGE: Final = 1  # shields.io's schemaVersion
# What XML 1.0 cannot hold, not even as a reference.
NO_XML: Final = {code: f"\\x{code:02x}" for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160))}


def as_json(grid: Grid) -> str:
    """Return the grid as JSON; `matrix.schema.json` in this folder describes it."""
    return json.dumps(document(grid), indent=1) + "\n"


def document(grid: Grid) -> dict[str, Any]:
    """Return what `as_json` writes."""
    return {
        "format": FORMAT,
        "endpoints": [
            {
                "name": column.name,
                "header": dict(column.header),
                "exit_code": column.exit_code,
                "complaints": list(column.complaints),
                "requirements": dict(grid.totals(column.name)),
                "cases": dict(column.totals()),
                "levels": [level.as_json() for level in column.level_verdicts()],
            }
            for column in grid.columns
        ],
        "requirements": [
            {
                "id": row.requirement.id,
                "level": row.requirement.level,
                "chapter": row.requirement.chapter,
                "statement": row.requirement.statement,
                "cases": list(row.cases),
                "verdicts": dict(row.verdicts),
                "endpoints": row.parts,
            }
            for row in grid.rows
        ],
    }


def as_junit(grid: Grid) -> str:
    """Return the cases of all endpoints as JUnit XML, a test suite for each endpoint."""
    root = ET.Element("testsuites", name="kvref conformance")
    for column in grid.columns:
        root.append(_suite(column))
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def badge(column: Column) -> str:
    """Return what an endpoint badge of shields.io reads: how many cases passed, failed and are not applicable."""
    totals = column.totals()
    message = outcome_counts(totals)
    if column.complaints:
        message += f", {len(column.complaints)} complaint{'s' if column.complaints[1:] else ''}"
    if column.complaints or any(totals[word] for word in FAILED):
        colour = "red"
    elif totals[DEVIATES] + totals[NON_STRICT]:
        colour = "yellow"
    else:
        colour = "brightgreen" if any(totals[word] for word in PASSING) else "lightgrey"
    label = f"kvref {column.header['profile']}"
    return json.dumps({"schemaVersion": BADGE, "label": label, "message": message, "color": colour}, indent=1) + "\n"


def _suite(column: Column) -> ET.Element:
    totals = column.totals()
    failures = sum(totals[word] for word in BROKEN)
    skipped = totals.total() - failures - totals[SUITE_ERROR] - totals[HOLDS] - totals[QUIRK]
    suite = ET.Element(
        "testsuite",
        name=column.name,
        tests=str(totals.total()),
        failures=str(failures),
        errors=str(totals[SUITE_ERROR] + len(column.complaints)),
        skipped=str(skipped),
        time=f"{sum(outcome.duration for outcome in column.outcomes.values()):.3f}",
        timestamp=str(column.header["started"]).removesuffix("Z"),
    )
    for outcome in column.outcomes.values():
        suite.append(_case(column, outcome))
    for number, complaint in enumerate(column.complaints, 1):
        case = ET.SubElement(suite, "testcase", classname=f"{column.name}.run", name=f"complaint {number}")
        ET.SubElement(case, "error", message=_printable(complaint))
    return suite


def _case(column: Column, outcome: Outcome) -> ET.Element:
    name = f"{outcome.case} [{' '.join(outcome.requirements)}]"
    case = ET.Element(
        "testcase", classname=f"{column.name}.{outcome.chapter}", name=name, time=f"{outcome.duration:.4f}"
    )
    if outcome.verdict in BROKEN | {SUITE_ERROR}:
        kind = "error" if outcome.verdict == SUITE_ERROR else "failure"
        ET.SubElement(case, kind, message=_printable(outcome.reason)).text = _printable(outcome.text)
    elif outcome.verdict not in PASSING:
        ET.SubElement(case, "skipped", message=_printable(f"{outcome.verdict}: {outcome.reason}"))
    return case


def _printable(text: str) -> str:
    return text.translate(NO_XML)
