"""bench/newcomer.py measures what a newcomer waits behind greedy clients."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "newcomer.py"

pytestmark = pytest.mark.live


def test_newcomers_are_measured(tmp_path: Path) -> None:
    file = tmp_path / "newcomer.json"
    command = [sys.executable, str(SCRIPT), "--clients", "3", "--seconds", "0.2", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(file.read_text())
    assert (row["target"], row["clients"]) == ("kvref-sqlite", 3)
    assert row["samples"] > 0
    assert 0 < row["median"] <= row["p99"] <= row["largest"]
