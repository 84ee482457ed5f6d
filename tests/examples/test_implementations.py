"""The independent implementations keep what the suite demands of their levels of conformance."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.example_packages import EXAMPLES
from helpers.waiting import until_listening

from kvref_testbed.targets.ports import free_port

pytestmark = [pytest.mark.live, pytest.mark.nightly]

FOLDER = EXAMPLES / "implementations"
MOST_FAILURES = 0


def python(_: Path) -> list[str]:
    return [sys.executable, str(FOLDER / "python" / "server.py")]


def go(folder: Path) -> list[str]:
    subprocess.run(["go", "build", "-o", str(folder / "server"), "."], cwd=FOLDER / "go", check=True, timeout=250)
    return [str(folder / "server")]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("built", [python, go])
def test_an_independent_implementation_conforms(tmp_path: Path, built: object) -> None:
    assert callable(built)
    store, port = tmp_path / "store.sqlite", free_port()
    with subprocess.Popen([*built(tmp_path), "--store", str(store), "--port", str(port)]) as server:
        try:
            until_listening(("127.0.0.1", port)).close()
            words = ["--sql", f"sqlite:///{store}", "--profile", "kvref", "--allow-destructive"]
            level = ["--conformance-level", "columns", "--report", str(tmp_path / "report")]
            subprocess.run(
                [sys.executable, "-m", "kvref", "conform", f"127.0.0.1:{port}", *words, *level],
                check=False,
                timeout=800,
            )
        finally:
            server.terminate()
    lines = (tmp_path / "report" / "report.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = [line for line in map(json.loads, lines) if "verdict" in line]
    assert sum(line["verdict"] == "holds" for line in verdicts) > 780
    # A generated case has a line for each thing that it found.
    assert len({line["case"].split("~")[0] for line in verdicts if line["verdict"] == "fails"}) <= MOST_FAILURES
