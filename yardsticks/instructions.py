"""Instructions of user space for each operation inside the server, for the cases of `bench/micro.py`.

Counted by `perf stat` where the machine has counters, otherwise by callgrind, which is slow and needs none; the two
count alike, and neither depends on what else the machine does. A case runs twice with different numbers of turns, so
that start and preparation cancel out.

    python -m yardsticks.instructions CASE TURNS     # what is run under the counter
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from yardsticks import machine

if TYPE_CHECKING:
    from types import ModuleType

BENCH: Final = Path(__file__).resolve().parents[1] / "bench"
KEYS: Final = 512  # rows of the table
TURNS: Final = (8, 40)
TURNS_OF_MANY: Final = (1, 4)  # of cases with a hundred keys in a request
PATIENCE: Final = 3600.0  # seconds for all replies of a case, which callgrind makes fifty times as slow
COLLECTED: Final = re.compile(r"Collected : (\d+)")


def measure(names: list[str] | None = None) -> dict[str, Any]:
    """Return the counter and the instructions for each operation, by case.

    Args:
        names: of cases; None: all.
    """
    cases = {case.name: case for case in _micro().cases(KEYS)}
    found = {}
    for name in names or cases:
        turns = TURNS if cases[name].keys == 1 else TURNS_OF_MANY
        few, many = (_count(name, each) for each in turns)
        found[name] = round((many - few) / ((turns[1] - turns[0]) * _micro().TURN * cases[name].commands))
    return {"counter": "perf" if machine.counts_instructions() else "callgrind", "instructions": found}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each case of both that differs by more than 2 %."""
    found = []
    for name in sorted(old["instructions"].keys() & new["instructions"].keys()):
        before, after = old["instructions"][name], new["instructions"][name]
        if abs(after - before) > before / 50:
            found.append(f"{name}: {before} -> {after} instructions ({after / before:.2f})")
    return found


def _count(name: str, turns: int) -> int:
    print(f"instructions of {name}, {turns} turns", file=sys.stderr)
    program = [sys.executable, "-m", "yardsticks.instructions", name, str(turns)]
    with tempfile.TemporaryDirectory() as folder:
        if machine.counts_instructions():
            log = Path(folder) / "perf"
            words = ["perf", "stat", "-x,", "-e", "instructions:u", "-o", str(log), *program]
        else:
            log = Path(folder) / "valgrind"
            words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={log}", *program]
        subprocess.run(words, cwd=BENCH.parent, check=True, env=_environment())
        text = log.read_text(encoding="utf-8")
    if machine.counts_instructions():
        return int(next(line for line in text.splitlines() if "instructions" in line).split(",")[0])
    collected = COLLECTED.search(text)
    assert collected is not None, text
    return int(collected[1])


def _environment() -> dict[str, str]:
    # The order of sets and dictionaries of bytes would differ from run to run.
    return {**os.environ, "PYTHONHASHSEED": "0"}


def _micro() -> ModuleType:
    """Return `bench/micro.py`, a script beside the packages."""
    if str(BENCH) not in sys.path:
        sys.path.insert(0, str(BENCH))
    return importlib.import_module("micro")


def _run(name: str, turns: int) -> None:
    micro: Any = _micro()
    micro.PATIENCE = PATIENCE
    case = next(each for each in micro.cases(KEYS) if each.name == name)
    micro.seconds(turns, case, KEYS)


if __name__ == "__main__":
    _run(sys.argv[1], int(sys.argv[2]))
