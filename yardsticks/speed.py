"""Ratios to peers and CPU time inside the server: `kvref bench pairs` and `bench/micro.py`, with their machine.

Nothing else may run meanwhile. `instructions.py` counts instructions of the same cases, which nothing disturbs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyperf

from yardsticks import machine

ROOT: Final = Path(__file__).resolve().parents[1]
SHARE: Final = 0.1  # a change below this is noise


def measure(rows: Sequence[str] = (), pairs: int = 5, seconds: float = 3.0) -> dict[str, Any]:
    """Return the machine, ratios of pairs by row, microseconds of CPU by case.

    Args:
        rows: of `kvref bench pairs`; none: all.
        pairs: of each row.
        seconds: of each measurement.
    """
    return {"machine": machine.describe(), "pairs": _pairs(rows, pairs, seconds), "micro": _micro()}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each row and case that differs by more than a tenth; one for another machine."""
    if old["machine"] != new["machine"]:
        return [f"figures of another machine or interpreter cannot be compared: {old['machine']}, {new['machine']}"]
    found = []
    for kind, figure in (("pairs", "ratio"), ("micro", "microseconds")):
        for name in sorted(old[kind].keys() & new[kind].keys()):
            before, after = old[kind][name][figure], new[kind][name][figure]
            if abs(after - before) > SHARE * before:
                found.append(f"{kind}: {name}: {figure} {before} -> {after}")
    return found


def _pairs(rows: Sequence[str], pairs: int, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.json"
        words = ["--pairs", str(pairs), "--seconds", str(seconds), "--json", str(file)]
        words += ["--rows", ",".join(rows)] if rows else []
        _run("-m", "kvref", "bench", "pairs", *words)
        measured = json.loads(file.read_text(encoding="utf-8"))
    found = {}
    for row in measured["rows"]:
        ratio = {name: round(number, 3) for name, number in row["ratio"].items()}
        found[row["name"]] = {"ratio": ratio["median"], "range": [ratio["min"], ratio["max"]]}
    return found


def _micro() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "micro.json"
        _run("bench/micro.py", "--fast", "-o", str(file))
        suite = pyperf.BenchmarkSuite.load(str(file))
    return {each.get_name(): {"microseconds": round(1e6 * each.median(), 3)} for each in suite.get_benchmarks()}


def _run(*words: str) -> None:
    print(" ".join(words), file=sys.stderr)
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
