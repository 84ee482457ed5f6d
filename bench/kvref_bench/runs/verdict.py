"""The verdict of `kvref conform` on an endpoint: no number goes without one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kvref.specification import report
from kvref.specification.report import ReportError
from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    broken = [line["requirements"] for line in found.verdicts if line["verdict"] in BROKEN]
    return {
        **{name: found.header[name] for name in ("profile", "endpoint", "version", "suite", "database")},
        "date": found.header["started"],
        "totals": found.footer["totals"],
        "failed": sorted({each for requirements in broken for each in requirements}),
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
    named = f"; failed requirements: {', '.join(failed)}" if failed else ""
    return f"{judged} (profile {verdict['profile']}, {verdict['date']}: {totals}{named})"


def fix(server: Mapping[str, Any]) -> str:
    """Say how to get a verdict on a server of a run that has none."""
    if server["verdict"] is not None or server["address"] is None:
        return ""
    return "; add --report DIR with what `kvref conform --report DIR` wrote"
