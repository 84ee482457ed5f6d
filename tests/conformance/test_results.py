"""The table of results in the documentation: generated from reports, and equal to the record in the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import reports

from kvref.errors import SuiteError
from kvref_conformance import results
from kvref_conformance.corpus import listing

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance-results.md"


def conversation(version: str, outcome: str, cause: str = "") -> dict[str, Any]:
    return {"conversation": "core:a", "version": version, "outcome": outcome} | ({"class": cause} if cause else {})


def report(folder: Path, *, complete: bool = True) -> None:
    totals = {"holds": 7, "deviates": 2, "fails": 1, "unsupported": 5, "not-run": 1}
    verdicts = [
        {"case": f"{word}-{number}", "verdict": word, "requirements": []}
        for word, count in totals.items()
        for number in range(count)
    ]
    lines = reports.lines(*verdicts, database="MySQL 9.9.9")
    for profile in results.PROFILES:
        (folder / "kvref-mysql-9.9" / profile).mkdir(parents=True)
        text = reports.text(lines if complete else lines[:-1])
        (folder / "kvref-mysql-9.9" / profile / "report.jsonl").write_text(text)
    held = [
        conversation("8.0.33", "same"),
        conversation("8.0.33", "listed", "crash"),
        conversation("8.0.33", "listed", listing.LATER),
        conversation("8.0.33", "replays though listed", "crash"),
        conversation("5.6.14", "differs"),
    ]
    (folder / "kvref-mysql-9.9" / "replay.json").write_text(json.dumps({"conversations": held}))


def test_reports_become_a_line(tmp_path: Path) -> None:
    report(tmp_path)
    (line,) = results.table(results.collect(tmp_path)).splitlines()[2:]
    assert line == "| MySQL 9.9.9 | 7 / 2 / 2 | 7 / 2 / 2 | 1 / 1 / 1 | 0 / 0 / 1 |"


def test_a_run_that_was_cut_off_is_no_result(tmp_path: Path) -> None:
    report(tmp_path, complete=False)
    with pytest.raises(SuiteError, match="was cut off"):
        results.collect(tmp_path)


def test_a_missing_report_is_named(tmp_path: Path) -> None:
    report(tmp_path)
    (tmp_path / "kvref-mysql-9.9" / "replay.json").unlink()
    with pytest.raises(SuiteError, match=r"replay\.json: No such file .* run \.ci/part results"):
        results.collect(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"conversations": [{"outcome": "same"}]}', "\x00"])
def test_a_damaged_replay_is_named(tmp_path: Path, content: str) -> None:
    report(tmp_path)
    (tmp_path / "kvref-mysql-9.9" / "replay.json").write_text(content)
    with pytest.raises(SuiteError, match=r"replay\.json: .*: run \.ci/part results"):
        results.collect(tmp_path)


def test_a_page_is_filled_again_and_again() -> None:
    record = {"kvref-x": {"database": "X 1", "suite kvref": dict.fromkeys(results.COLUMNS, 3)}}
    page = "before\n" + "old\n".join(results.MARKS) + "after\n"
    filled = results.filled(page, record)
    assert "| X 1 | 3 / 3 / 3 |\n" in filled
    assert "old" not in filled
    assert filled.startswith("before\n")
    assert filled.endswith("after\n")
    assert results.filled(filled, record) == filled
    with pytest.raises(SuiteError, match="the page has no lines"):
        results.filled("nothing", record)


def test_readme_says_what_is_recorded() -> None:
    """Run `.ci/part results` when this fails; the table and its record are written by nothing else."""
    record = json.loads(results.PATH.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert results.filled(page, record) == page
    assert set(record) == set(listing.INNODB_TARGETS)
    assert all(
        counts["otherwise"] == 0 for row in record.values() for counts in row.values() if isinstance(counts, dict)
    )
