"""CPU and wall time of each tier of the tests, and how many tests it has."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
# As `.ci/test` runs them; the wall time depends on what else the machine does, the CPU time less.
TIERS: Final = {
    "unit": [["bash", ".ci/test", "unit"]],
    "default": [["bash", ".ci/test"]],
    "conform": [["bash", ".ci/conform"]],
}
SUMMARY: Final = re.compile(r"(\d+) (passed|failed|skipped)")
SHARE: Final = 0.1  # a change of CPU time below this is noise


def measure() -> dict[str, Any]:
    """Return CPU seconds, wall seconds, exit code and counts of outcomes for each tier."""
    return {name: _run(commands) for name, commands in TIERS.items()}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each tier whose CPU time differs by more than a tenth, or that fails."""
    found = []
    for name in sorted(old.keys() & new.keys()):
        before, after = old[name]["cpu_seconds"], new[name]["cpu_seconds"]
        if abs(after - before) > SHARE * before:
            found.append(f"{name}: {before} -> {after} s of CPU")
        if new[name]["exit_code"]:
            found.append(f"{name}: exit code {new[name]['exit_code']}")
    return found


def _run(commands: list[list[str]]) -> dict[str, Any]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    outcomes: dict[str, int] = {}
    code = 0
    for words in commands:
        print(" ".join(words), file=sys.stderr)
        ended = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        code = code or ended.returncode
        # pytest's last line of each run.
        for line in ended.stdout.splitlines():
            if line.startswith("=") and " in " in line:
                for number, outcome in SUMMARY.findall(line):
                    outcomes[outcome] = outcomes.get(outcome, 0) + int(number)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "cpu_seconds": round(cpu), "wall_seconds": round(time.monotonic() - began), "exit_code": code, **outcomes,
    }  # fmt: skip
