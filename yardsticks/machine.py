"""The machine and the interpreter that a figure depends on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from kvref_bench.peers import instructions
from kvref_bench.runs.machine import profile_guided


def describe() -> dict[str, object]:
    """Return the CPU model, number of processors, kernel, Python build and whether instructions can be counted."""
    return {
        "cpu": _cpu_model(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_pgo": profile_guided(),
        "python_compiler": platform.python_compiler(),
        "counts_instructions": counts_instructions(),
    }


def counts_instructions() -> bool:
    """Return whether `perf stat` counts instructions of user space here; virtual machines often have no counters."""
    return instructions.available("instructions:u")


def _cpu_model() -> str:
    """Return the model that /proc/cpuinfo names, `cannot tell` where it names none."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return "cannot tell"
