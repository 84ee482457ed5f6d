"""The script that compares mappings in two databases with one in one database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from live import missing_skips

from kvref_testbed.targets.needs import tool

SCRIPT = Path(__file__).parents[2] / "bench" / "two_groups.py"

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(300)]


@pytest.mark.parametrize("limit", [(), ("--server-cpu", "0.2")], ids=["shared", "limited"])
def test_each_database_does_a_part_of_the_work(tmp_path: Path, limit: tuple[str, ...]) -> None:
    with missing_skips():
        tool("mariadbd")
    file = tmp_path / "points.json"
    words = [
        "--server",
        "mariadb",
        "--keys",
        "1000",
        "--shares",
        "0.1",
        "--seconds",
        "3",
        "--turns",
        "1",
        "--json",
        str(file),
        *limit,
    ]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, timeout=240, check=False
    )
    if limit and "needs root" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert "gain" in done.stdout
    one, *two = json.loads(file.read_text())["points"]
    assert [one["layout"], *(each["layout"] for each in two)] == ["one", "sharded", "apart"]
    assert one["primary"] == one["servers"]
    assert all(0 < each["primary"] < each["servers"] for each in two), "the other server has rows too"
