"""`python -m yardsticks compare` names each difference, and fails for verdicts and exported cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from yardsticks import __main__ as yardsticks
from yardsticks import cases, coverage, lines, tiers, verdicts


def test_a_changed_verdict_is_named_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"kvref-sqlite": {"set-get": "fails", "added": "holds"}}
    monkeypatch.setattr(verdicts, "measure", lambda targets: {name: now[name] for name in targets})
    (tmp_path / "verdicts.json").write_text(json.dumps({"kvref-sqlite": {"set-get": "holds"}, "memcached": {}}))
    words = ["--only", "verdicts", "--target", "kvref-sqlite", "--records", str(tmp_path)]

    ended = CliRunner().invoke(yardsticks.main, ["compare", *words])
    assert ended.exit_code == 1
    assert "kvref-sqlite: added: not judged -> holds" in ended.output
    assert "kvref-sqlite: set-get: holds -> fails" in ended.output

    assert CliRunner().invoke(yardsticks.main, ["record", *words]).exit_code == 0
    assert json.loads((tmp_path / "verdicts.json").read_text()) == {**now, "memcached": {}}
    ended = CliRunner().invoke(yardsticks.main, ["compare", *words])
    assert (ended.exit_code, ended.output) == (0, "verdicts: 0 differences\n")


def test_an_unknown_measure_is_an_error_that_names_the_known_ones() -> None:
    ended = CliRunner().invoke(yardsticks.main, ["compare", "--only", "size"])
    assert ended.exit_code == 2
    assert "'size' is not one of lines" in ended.output


@pytest.mark.nightly
@pytest.mark.programs
def test_exported_cases_are_compared_one_by_one() -> None:
    measured = cases.measure()
    assert any(part.startswith("chapters/mapping/cases/") for part in measured["mysql-8.0"])
    part = "chapters/mapping/requirements/KV-MAP-001"
    changed = {**measured, "kvref": {**measured["kvref"], part: "other"}}
    assert cases.differences(measured, changed) == [f"kvref: {part}: changed"]
    del changed["kvref"][part]
    assert cases.differences(measured, changed) == [f"kvref: {part}: removed"]


@pytest.mark.programs
def test_lines_are_counted_by_package() -> None:
    measured = lines.measure()
    assert measured["all"]["lines"] > measured["kvref"]["lines"] > measured["kvref/engine"]["lines"] > 0
    less = {**measured, "kvref/engine": {"lines": measured["kvref/engine"]["lines"] - 7}}
    (line,) = lines.differences(measured, less)
    assert line.startswith("kvref/engine: ")
    assert line.endswith("(-7)")


def test_coverage_that_falls_and_cpu_time_that_changes_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    summary = {"num_statements": 10, "covered_lines": 9, "num_branches": 2, "covered_branches": 1}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"files": {"/x/kvref/kvref/engine/steps/store.py": {"summary": summary}}}))
    monkeypatch.setattr(coverage, "REPORT", report)
    measured = coverage.measure()
    assert measured["kvref/engine"]["percent"] == measured["all"]["percent"] == 83.3
    assert "| kvref/engine | 10 | 9 | 2 | 1 | 83.3 % |" in coverage.markdown(measured)
    assert coverage.differences({"all": {"percent": 90.0}}, measured) == ["all: 90.0 % -> 83.3 %"]

    tier = {"cpu_seconds": 100, "exit_code": 0}
    assert tiers.differences({"unit": tier}, {"unit": {**tier, "cpu_seconds": 105}}) == []
    assert tiers.differences({"unit": tier}, {"unit": {"cpu_seconds": 50, "exit_code": 1}}) == [
        "unit: 100 -> 50 s of CPU", "unit: exit code 1",
    ]  # fmt: skip
