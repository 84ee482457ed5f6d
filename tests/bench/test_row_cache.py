"""The script that measures the row cache over a database server while SQL writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.live import missing_skips

from kvref_testbed.targets.needs import tool

SCRIPT = Path(__file__).parents[2] / "bench" / "row_cache.py"

pytestmark = [pytest.mark.live, pytest.mark.nightly]


def test_strong_mode_is_never_stale_and_fast_mode_hits(tmp_path: Path) -> None:
    with missing_skips():
        tool("mariadbd")
    file = tmp_path / "points.json"
    words = ["--shares", "0,0.1", "--seconds", "1.5", "--turns", "1", "--sessions", "16", "--json", str(file)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "database µs" in done.stdout
    points = {(each["mode"], each["share"]): each for each in json.loads(file.read_text())["points"]}
    assert set(points) == {(mode, share) for mode in ("off", "strong", "local", "fast") for share in (0, 0.1)}
    assert all(point["hits"] == 0 for (mode, _), point in points.items() if mode == "off")
    assert all(point["hits"] > 0.2 for (mode, _), point in points.items() if mode != "off")
    assert all(point["stale"] == 0 for (mode, _), point in points.items() if mode != "fast")
    assert all(point["writes"] > 0 for (_, share), point in points.items() if share)
