"""Results of `kvref conform` and `kvref replay` over each database: a record, and a table of the documentation.

    python -m kvref_conformance.results DIR docs/reference/conformance-results.md

reads DIR/TARGET/PROFILE/report.jsonl and DIR/TARGET/replay.json as `.ci/part results` makes them, writes
`over_sql.json` in this folder and fills that page between MARKS. Numbers are copied unchanged: nothing is judged here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import SuiteError
from kvref.specification import report
from kvref.specification.report import ReportError
from kvref_conformance.corpus import listing
from kvref_conformance.corpus.replay import LISTED, SAME
from kvref_conformance.marks import between
from kvref_conformance.typed import mismatch
from kvref_conformance.verdict import DEVIATES, DISABLED, HOLDS, QUIRK, UNSUPPORTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATH: Final = Path(__file__).with_name("over_sql.json")
PROFILES: Final = ("kvref", "mysql-8.0")
MARKS: Final = ("<!-- results: written by .ci/part results -->\n", "<!-- end of results -->\n")
HEADS: Final = (
    "kvref over",
    *(f"suite, `{profile}`" for profile in PROFILES),
    *(f"transcripts of {version}" for version in listing.VERSIONS),
)
# What a run says of its cases or conversations, and the column of the record it is counted in.
NOT_TRIED: Final = "not tried"
COLUMNS: Final = ("as wanted", "documented", "otherwise", NOT_TRIED)


class _Conversation(TypedDict):
    version: str
    outcome: str


class _Replayed(TypedDict):
    conversations: tuple[_Conversation, ...]


Counts = dict[str, int]
Record = dict[str, dict[str, Any]]


def collect(folder: Path) -> Record:
    """Read the reports of a run.

    Args:
        folder: with a folder for each target.

    Returns:
        By target: `database`, and COLUMNS counted by what was run.

    Raises:
        SuiteError: a report is missing, was cut off or does not fit its schema.
    """
    return {target.name: _target(target) for target in sorted(folder.iterdir()) if target.is_dir()}


def _target(folder: Path) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for profile in PROFILES:
        try:
            found = report.read(folder / profile / report.NAME)
        except ReportError as error:
            raise SuiteError(f"{error}, with .ci/part results") from error
        row["database"] = found.header["database"]
        row[f"suite {profile}"] = _suite(found.footer["totals"])
    replayed = _replayed(folder / "replay.json")
    for version in listing.VERSIONS:
        row[f"transcripts {version}"] = _replay([each for each in replayed if each["version"] == version])
    return row


def _replayed(path: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the conversations of what `kvref replay --json` wrote."""
    try:
        found = documents.read_json(path)
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror}: run .ci/part results") from error
    except DocumentError as error:
        raise SuiteError(f"{path}: {error}: run .ci/part results") from error
    if fault := mismatch(found, _Replayed, "document"):
        raise SuiteError(f"{path}: {fault}: run .ci/part results")
    conversations: tuple[Mapping[str, Any], ...] = found["conversations"]
    return conversations


def _suite(given: Mapping[str, int]) -> Counts:
    totals = Counter(given)
    holds = totals[HOLDS] + totals[QUIRK]
    unsupported = totals[UNSUPPORTED] + totals[DISABLED]
    otherwise = sum(totals.values()) - holds - totals[DEVIATES] - unsupported
    return dict(zip(COLUMNS, (holds, totals[DEVIATES], otherwise, unsupported), strict=True))


def _replay(outcomes: Sequence[Mapping[str, Any]]) -> Counts:
    later = sum(each.get("class") == listing.LATER for each in outcomes)
    words = Counter(each["outcome"] for each in outcomes)
    listed = words[LISTED] - later
    otherwise = len(outcomes) - words[SAME] - words[LISTED]
    return dict(zip(COLUMNS, (words[SAME], listed, otherwise, later), strict=True))


def table(record: Record) -> str:
    """Return the table of the documentation: `as wanted / documented / otherwise` in each cell."""
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    for row in record.values():
        runs = [counts for name, counts in row.items() if name != "database"]
        cells = [" / ".join(str(counts[column]) for column in COLUMNS if column != NOT_TRIED) for counts in runs]
        lines.append(f"| {' | '.join([row['database'], *cells])} |")
    return "\n".join(lines) + "\n"


def filled(page: str, record: Record) -> str:
    """Return a page with the table between MARKS.

    Raises:
        SuiteError: a mark is missing.
    """
    return between(page, MARKS, table(record))
