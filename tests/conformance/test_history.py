"""Reports over time: each is kept once, what is wrong is named and loses nothing, and a regression shows both sides."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers.reports import HEADER

from kvref.cli import main
from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.judging.verdict import CRASH, FAILS, HOLDS, NOT_RUN, QUIRK, Tally, Verdict
from kvref_conformance.reports import jsonl
from kvref_conformance.reports.history import archive
from kvref_conformance.reports.history.changes import FIXED, LOST, REGRESSION, changes


def verdict(case: str, requirement: str, word: str, got: str = "STORED\r\n") -> Verdict:
    exchange = Exchange("a", f"set {case} 0 0 1\r\n<\r\n", ("STORED\r\n",), got, written=("set {k}\r\n", got))
    return Verdict(case, "cas", (requirement,), word, f"{word}!" if word != HOLDS else "", 0.1, (exchange,))


def report(
    folder: Path, day: int, *verdicts: Verdict, profile: str = "kvref", complaints: tuple[str, ...] = ()
) -> Path:
    """Write a report of a day as a run does."""
    folder.mkdir(parents=True)
    started = f"2026-01-{day:02}T12:00:00Z"
    header = replace(HEADER, started=started, profile=profile, version=f"1.6.{day} <b>")
    jsonl.write(folder / "report.jsonl", header, Tally(list(verdicts), list(complaints)))
    return folder


def history(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["matrix", *words, "--history", str(folder)])


def kept_reports(folder: Path) -> list[Path]:
    return sorted(each for each in (folder / "reports").rglob("*") if each.is_file())


@pytest.fixture
def three_days(tmp_path: Path) -> Path:
    """Three runs of `one`; the second is of other cases, the third has a regression against the first."""
    folder = tmp_path / "history"
    first = [verdict("a", "KV-CAS-001", HOLDS), verdict("b", "KV-CAS-002", FAILS), verdict("c", "KV-CAS-003", QUIRK)]
    second = [verdict("d", "KV-CAS-004", HOLDS)]
    third = [
        verdict("a", "KV-CAS-001", FAILS, "<script>\r\n"),
        verdict("b", "KV-CAS-002", HOLDS),
        verdict("c", "KV-CAS-003", HOLDS),
        verdict("d", "KV-CAS-004", NOT_RUN),
        verdict("e", "KV-CAS-005", CRASH),
    ]
    reports = [report(tmp_path / f"r{day}", day, *each) for day, each in enumerate((first, second, third), 1)]
    for each in reports:
        assert history(folder, f"one={each}").exit_code == 0
    return folder


def test_a_case_is_compared_with_the_last_run_that_tried_it(three_days: Path) -> None:
    (runs,) = archive.read(three_days).values()
    assert [run.started[:10] for run in runs] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    found = changes(runs)
    # From quirk to holds is none, and `e` was never tried before.
    assert [(each.kind, each.case) for each in found] == [(REGRESSION, "a"), (LOST, "d"), (FIXED, "b")]
    regression = found[0]
    assert (regression.before.verdict, regression.before.run, regression.before.got) == (HOLDS, runs[0], "STORED\r\n")
    assert (regression.after.verdict, regression.after.run, regression.after.got) == (FAILS, runs[2], "<script>\r\n")
    assert found[1].before.run == runs[1]


def test_the_page_has_regressions_first_and_needs_nothing_else(three_days: Path) -> None:
    text = (three_days / "index.html").read_text()
    assert "<script>\\r\\n" not in text
    assert "&lt;script&gt;\\r\\n" in text
    assert "1.6.3 &lt;b&gt;" in text
    assert text.index(">regression</span> one: a") < text.index(">no longer judged</span> one: d")
    assert text.count('class="change"') == 3
    assert not re.findall(r"""(?:src|href)=["'](?!#)|url\(|@import|https?://""", text)
    for word in ("prefers-color-scheme: dark", "position: sticky", "max-width: 60rem", "@media print"):
        assert word in text
    assert '<polyline points="3.0,8.3 36.0,3.0 69.0,11.0"/>' in text


def test_another_profile_is_not_compared(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    for day, profile, word in ((1, "kvref", HOLDS), (2, "mysql-8.0", FAILS)):
        given = report(tmp_path / str(day), day, verdict("a", "KV-CAS-001", word), profile=profile)
        assert history(folder, f"one={given}").exit_code == 0
    assert changes(archive.read(folder)["one"]) == []


def test_the_same_report_is_kept_once(three_days: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in kept_reports(three_days)}
    again = history(three_days, f"one={tmp_path / 'r1'}")
    assert again.exit_code == 0
    assert "is kept already" in again.output
    assert {path: path.read_bytes() for path in kept_reports(three_days)} == before


def test_every_bad_report_of_the_folder_is_named_and_the_page_stays(three_days: Path, tmp_path: Path) -> None:
    page_before = (three_days / "index.html").read_bytes()
    first, second, third = kept_reports(three_days)
    first.write_bytes(first.read_bytes()[:-9])
    (second.parent / "note.txt").write_text("mine")
    third.with_name("twice.jsonl.gz").write_bytes(gzip.compress(gzip.decompress(third.read_bytes()), 1))
    new = report(tmp_path / "new", 7, verdict("a", "KV-CAS-001", HOLDS))
    refused = history(three_days, f"one={new}")
    assert refused.exit_code == 2
    assert f"{first}: not a whole report" in refused.output
    assert "note.txt: no report" in refused.output
    assert f"the same report as {third.name}: remove one of the two" in refused.output
    assert (three_days / "index.html").read_bytes() == page_before
    # What was given is kept, and nothing else is touched.
    assert len(kept_reports(three_days)) == 6
    first.unlink()
    (second.parent / "note.txt").unlink()
    third.with_name("twice.jsonl.gz").unlink()
    assert history(three_days).exit_code == 0
    assert (three_days / "index.html").read_bytes() != page_before


def test_a_level_of_a_report_cannot_leave_the_folder_of_badges(tmp_path: Path) -> None:
    given = report(tmp_path / "r", 1, verdict("set-new", "KV-CORE-001", HOLDS)) / "report.jsonl"
    lines = given.read_text().splitlines()
    footer = json.loads(lines[-1])
    footer["conformance_levels"][0]["level"] = "../../out"
    given.write_text("\n".join([*lines[:-1], json.dumps(footer)]) + "\n")
    assert history(tmp_path / "history", f"one={given}").exit_code == 0
    assert not list(tmp_path.rglob("out.*"))
