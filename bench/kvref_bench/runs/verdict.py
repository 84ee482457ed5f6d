"""The verdict on an endpoint, from the report that `kvref conform --report DIR` left; no number goes without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from kvref.specification import report
from kvref.specification.report import ReportError
from kvref_bench.errors import BenchError

BROKEN: Final = frozenset({"fails", "flaky", "hang", "crash"})
NONE: Final = "no conformance report: nothing says that this endpoint answers correctly"
SQL: Final = "SQL only: the endpoint does not use the judged protocol"


def read(folder: Path | str) -> dict[str, object]:
    """Read a report.

    Args:
        folder: of the report, or its report.jsonl.

    Returns:
        profile, endpoint, version, suite, database and date; `totals` of cases by verdict; `failed`: ids of the
        requirements that a broken case tests; `conforms`; `sha256` of the file.

    Raises:
        BenchError: as `report.read`.
    """
    try:
        found = report.read(Path(folder))
    except ReportError as error:
        raise BenchError(str(error)) from error
    return {
        **{name: found.header[name] for name in ("profile", "endpoint", "version", "suite", "database")},
        "date": found.header["started"],
        "totals": found.footer["totals"],
        "failed": sorted(
            {each for line in found.verdicts if line["verdict"] in BROKEN for each in line["requirements"]}
        ),
        "conforms": found.footer["exit_code"] == 0,
        "sha256": found.sha256,
    }


def words(verdict: dict[str, Any] | None) -> str:
    """Say in one line what is known of an endpoint's answers."""
    if verdict is None:
        return NONE
    totals = ", ".join(f"{count} {word}" for word, count in verdict["totals"].items() if count)
    failed = verdict["failed"]
    judged = "conforms" if verdict["conforms"] else "does not conform" if failed else "could not be judged"
    return (
        f"{judged} (profile {verdict['profile']}, {verdict['date']}: {totals}"
        + (f"; failed requirements: {', '.join(failed)}" if failed else "")
        + ")"
    )
