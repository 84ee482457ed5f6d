"""`kvref conform-client`: what it lists, refuses and returns."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kvref.cli import main
from kvref_conformance.clients import report

SMALL = Path(__file__).with_name("small_client.py")
ONLY = ("--only", "KC-CAS-00[12]", "--timeout", "0.1")


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["conform-client", *words])
    return result.exit_code, result.output


def small(defect: str) -> list[str]:
    return ["--command", f"{sys.executable} {SMALL} '{defect}'", *ONLY]


@pytest.mark.programs
def test_a_client_that_holds_is_success() -> None:
    code, output = run(*small("none"))
    assert code == 0
    assert "command: small 1, Python: 2 holds, 0 fails, 0 unsupported" in output


@pytest.mark.programs
def test_a_client_that_fails_has_its_conversation(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.json"
    code, output = run(*small("short cas"), "--conversations", "--json", str(file))
    assert code == 1
    assert 'C1 received "cas first 0 0 3 5' in output
    verdict = report.parsed(file.read_text())["clients"]["command"]["verdicts"]["KC-CAS-001"]
    assert [step["call"][0] for step in verdict["steps"]] == ["gets", "cas"]


@pytest.mark.programs
def test_an_adapter_that_does_not_start_is_skipped() -> None:
    code, output = run("--command", "/nonexistent/program", *ONLY)
    assert code == 2
    assert "command: skipped: /nonexistent/program: No such file" in output
