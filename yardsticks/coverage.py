"""Branch coverage by package, of the report that `.ci/part coverage` wrote last."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

REPORT: Final = Path(__file__).resolve().parents[1] / "build" / "coverage" / "report.json"
FIELDS: Final = ("num_statements", "covered_lines", "num_branches", "covered_branches")
PACKAGES: Final = {"kvref", "kvref_testbed", "kvref_conformance", "kvref_conformance_cli", "kvref_bench", "support"}
TOLERANCE: Final = 0.5  # percentage points by which tests that wait for events differ from run to run


def measure() -> dict[str, Any]:
    """Return statements, branches and the share of them that ran, in percent, for each package.

    Raises:
        FileNotFoundError: `.ci/part coverage` was not run.
    """
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    for file, found in json.loads(REPORT.read_text(encoding="utf-8"))["files"].items():
        counted = Counter({field: found["summary"][field] for field in FIELDS})
        for name in (package_of(file), "all"):
            packages[name] += counted
    return {name: {**counted, "percent": _percent(counted)} for name, counted in sorted(packages.items())}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each package of both whose coverage has become less by more than the tolerance."""
    found = []
    for name in sorted(old.keys() & new.keys()):
        before, after = old[name]["percent"], new[name]["percent"]
        if after < before - TOLERANCE:
            found.append(f"{name}: {before} % -> {after} %")
    return found


def markdown(measured: dict[str, Any]) -> str:
    """Return the table of `tests/COVERAGE.md`."""
    lines = ["| package | statements | run | branches | taken | coverage |", "|---|---|---|---|---|---|"]
    for name in sorted(measured, key=lambda each: (each == "all", each)):
        numbers = " | ".join(str(measured[name].get(field, 0)) for field in FIELDS)
        lines.append(f"| {name} | {numbers} | {measured[name]['percent']:.1f} % |")
    return "\n".join(lines)


def package_of(file: str) -> str:
    """Return the package of a file, two levels deep: kvref/storage, kvref_bench/load."""
    parts = Path(file).with_suffix("").parts
    start = next(number for number, part in enumerate(parts) if part in PACKAGES)
    # A checkout that is itself called kvref comes before the package.
    start = max(number for number in range(start, len(parts)) if parts[number] == parts[start])
    return "/".join(parts[start : start + 2]) if len(parts) > start + 2 else parts[start]


def _percent(counted: Counter[str]) -> float:
    share = (counted["covered_lines"] + counted["covered_branches"]) / max(
        1, counted["num_statements"] + counted["num_branches"]
    )
    return round(100 * share, 1)
