"""A limit of CPU time: it holds for the whole process, ends with the block, and says what it needs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kvref_bench.errors import BenchError
from kvref_bench.peers import cpu_quota

# Two threads that together use as much of a processor as they are given.
BUSY = """
import threading
def spin():
    while True:
        pass
threading.Thread(target=spin, daemon=True).start()
print(flush=True)
spin()
"""
SHARE = 0.2


@pytest.fixture
def busy() -> Iterator[psutil.Process]:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield psutil.Process(process.pid)
        process.kill()


def used(process: psutil.Process) -> float:
    """Return the CPU time of a process in a while, as a share of a processor."""
    before, began = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(1.0)
    return (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began)


def test_a_process_uses_no_more_than_its_share(busy: psutil.Process) -> None:
    try:
        with cpu_quota.limited(busy.pid, SHARE):
            assert 0 < used(busy) < 1.5 * SHARE
    except BenchError as error:
        pytest.skip(str(error))
    folder = cpu_quota.CONTROL_GROUPS
    assert not [*folder.glob(f"kvref-*-{busy.pid}"), *folder.glob(f"cpu/kvref-*-{busy.pid}")]
    assert "kvref-" not in Path(f"/proc/{busy.pid}/cgroup").read_text()


def test_the_limit_ends_with_the_process(busy: psutil.Process) -> None:
    try:
        with cpu_quota.limited(busy.pid, SHARE):
            busy.kill()
    except BenchError as error:
        pytest.skip(str(error))


def test_no_control_groups_are_an_error(tmp_path: Path) -> None:
    said = "a limit of CPU time needs root and Linux's control groups with the controller cpu"
    with pytest.raises(BenchError, match=re.escape(said)), cpu_quota.limited(1, SHARE, tmp_path):
        pass
    assert not [*tmp_path.iterdir()]


def test_a_share_too_small_is_an_error() -> None:
    said = "0.01 of a processor is less than the kernel can give: choose 0.04 or more"
    with pytest.raises(BenchError, match=re.escape(said)), cpu_quota.limited(1, 0.01):
        pass
