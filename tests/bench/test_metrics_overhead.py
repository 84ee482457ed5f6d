"""bench/metrics_overhead.py measures both servers, and scrapes the one that has metrics."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "bench" / "metrics_overhead.py"


@pytest.mark.nightly
@pytest.mark.live
@pytest.mark.parametrize("workers", [1, 2])
def test_a_short_measurement(tmp_path: Path, workers: int) -> None:
    words = ["--pairs", "2", "--gets", "3200", "--every", "0.05", "--workers", str(workers), "--json", "o.json"]
    ended = subprocess.run(
        [sys.executable, SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads((tmp_path / "o.json").read_text())
    assert all(each > 0 for side in ("on", "off") for each in found[side])
    assert [len(found[side]) for side in ("on", "off")] == [2, 2]
    assert found["scrapes"] > 0
    assert "on/off" in ended.stdout.splitlines()[-1]
