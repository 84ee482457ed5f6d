"""bench/tail.py measures the slowest replies of three servers in an open loop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.nightly]


def test_three_servers_are_measured(tmp_path: Path) -> None:
    file = tmp_path / "tail.json"
    command = [sys.executable, "bench/tail.py", "--turns", "1", "--seconds", "1", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    tails = json.loads(file.read_text())["tails"]
    assert [each["server"] for each in tails] == ["kvref-sqlite", "mysql-8.0-plugin", "memcached"]
    for each in tails:
        assert 0 < each["p50"] <= each["p99"] <= each["p999"] <= each["largest"], each
    assert done.stdout.count("\n") == 5
