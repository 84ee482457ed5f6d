"""The verdict on an endpoint, from the report that `kvref conform --report DIR` left; no number goes without one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from kvref import documents
from kvref.documents import DocumentError
from kvref_bench.errors import BenchError

REPORT: Final = "report.jsonl"
FORMAT: Final = 1  # of the report, as in its first line
BROKEN: Final = frozenset({"fails", "flaky", "hang", "crash"})
NONE: Final = "no conformance report: nothing says that this endpoint answers correctly"
SQL: Final = "SQL only: the endpoint does not use the judged protocol"

Line = dict[str, Any]


def read(folder: Path | str) -> dict[str, object]:
    """Read a report.

    Args:
        folder: of the report, or its report.jsonl.

    Returns:
        profile, endpoint, version, suite, database and date; `totals` of cases by verdict; `failed`: ids of the
        requirements that a broken case tests; `conforms`; `sha256` of the file.

    Raises:
        BenchError: it is missing, cut short, no report, or of another format.
    """
    path = Path(folder)
    path = path / REPORT if path.is_dir() else path
    try:
        content = documents.read_bytes(path)
    except DocumentError as error:
        raise BenchError(f"{path}: no conformance report ({error}); judge the endpoint again") from None
    except OSError as error:
        raise BenchError(
            f"{path}: no conformance report ({error.strerror}); make one with `kvref conform ... --report DIR`"
        ) from None
    lines = _lines(path, content)
    header, footer = lines[0], lines[-1]
    if header.get("kind") != "header":
        raise BenchError(f"{path} is no conformance report: its first line is no header; give the folder of --report")
    if header.get("format") != FORMAT:
        raise BenchError(f"{path} has format {header.get('format')!r}, read is {FORMAT}: judge the endpoint again")
    if footer.get("kind") != "footer":
        raise BenchError(f"{path} is cut short: its last line is no footer; judge the endpoint again")
    _check(path, lines)
    return {
        **{name: header.get(name) for name in ("profile", "endpoint", "version", "suite", "database")},
        "date": header.get("started"),
        "totals": footer["totals"],
        "failed": sorted(
            {each for line in lines if str(line.get("verdict")) in BROKEN for each in line["requirements"]}
        ),
        "conforms": footer["exit_code"] == 0,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _lines(path: Path, content: bytes) -> list[Line]:
    lines = []
    for number, text in enumerate(content.splitlines(), 1):
        try:
            line = documents.json_of(text)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise BenchError(f"{path}, line {number}, is no JSON object: judge the endpoint again")
        lines.append(line)
    if not lines:
        raise BenchError(f"{path} is empty: judge the endpoint again")
    return lines


def _check(path: Path, lines: list[Line]) -> None:
    """Raise BenchError where what is read of the report is missing or of another type."""
    footer = lines[-1]
    totals = footer.get("totals")
    counts = isinstance(totals, dict) and all(type(count) is int for count in totals.values())
    broken = [line for line in lines if str(line.get("verdict")) in BROKEN]
    names = [line.get("requirements") for line in broken]
    named = all(isinstance(each, list) and all(isinstance(name, str) for name in each) for each in names)
    if not counts or type(footer.get("exit_code")) is not int or not named:
        raise BenchError(f"{path}: malformed totals, exit code or requirements: judge the endpoint again")


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
