"""What idle connections take: the script measures it, and kvref keeps little for each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.live import missing_skips

from kvref_testbed.targets.needs import tool

SCRIPT = Path(__file__).parents[2] / "bench" / "memory.py"
# A connection is of a dozen objects and uvloop's transport; a buffer of 64 KiB for each, say, would show.
MOST = 6000  # bytes

pytestmark = pytest.mark.live


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.nightly
@pytest.mark.serial
@pytest.mark.parametrize("target", ["kvref-sqlite", "kvref-sqlite-workers"])
def test_an_idle_connection_takes_little(tmp_path: Path, target: str) -> None:
    file = tmp_path / "memory.json"
    done = run("--target", target, "--connections", "0,200,1000", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "bytes for each" in done.stdout
    points = json.loads(file.read_text())
    assert [(point["protocol"], point["connections"]) for point in points] == [
        (protocol, count) for protocol in ("text", "binary") for count in (0, 200, 1000)
    ]
    assert all(500 < point["each"] < MOST for point in points if point["connections"] == 1000), points


@pytest.mark.parametrize("counts", ["0,100", "100,10", "1,x", "-1,1,2"])
def test_counts_that_tell_nothing_are_refused(counts: str) -> None:
    done = run("--connections", counts)
    assert done.returncode == 2
    assert "write" in done.stderr


def test_a_server_that_refuses_connections_is_no_small_one() -> None:
    with missing_skips():
        tool("memcached")
    done = run("--target", "memcached", "--connections", "10,1200")
    assert done.returncode == 1
    assert "memcached refuses so many connections: ERROR Too many open connections" in done.stderr
