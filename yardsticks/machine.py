"""The machine and the interpreter that a figure depends on."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sysconfig
from pathlib import Path


def describe() -> dict[str, object]:
    """Return the CPU model, number of processors, kernel, Python build and whether instructions can be counted."""
    return {
        "cpu": _cpu_model(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_pgo": "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""),
        "python_compiler": platform.python_compiler(),
        "counts_instructions": counts_instructions(),
    }


def counts_instructions() -> bool:
    """Return whether `perf stat` counts instructions here; virtual machines often have no counters."""
    perf = shutil.which("perf")
    if perf is None:
        return False
    ended = subprocess.run(
        [perf, "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True, check=False
    )
    return ended.returncode == 0 and ended.stderr.split(",")[0].isdigit()


def _cpu_model() -> str:
    """Return the model that /proc/cpuinfo names, `cannot tell` where it names none."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return "cannot tell"
