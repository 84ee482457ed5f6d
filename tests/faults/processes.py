"""Resources of a running process, as the kernel reports them."""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Return the seconds of processor time that a process has used, proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int) -> int:
    """Return the KiB of memory that a process has in use."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def descriptors(pid: int) -> int:
    """Return how many descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def assert_rests(*pids: int, seconds: float = 1.0) -> None:
    """Fail where processes that have nothing to do are busy for more than a quarter of the time."""
    before = [cpu(pid) for pid in pids]
    time.sleep(seconds)  # what is measured is the processor time of a while
    used = [cpu(pid) - start for pid, start in zip(pids, before, strict=True)]
    assert max(used) < seconds / 4, f"{used} s of processor time in {seconds} s"
