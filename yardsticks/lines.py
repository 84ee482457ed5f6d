"""Files and lines of Python by package."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
# Folders whose packages are counted one by one.
DIVIDED: Final = (
    "kvref",
    "conformance/kvref_testbed",
    "conformance/kvref_conformance",
    "conformance/kvref_conformance_cli",
    "bench/kvref_bench",
)


def measure() -> dict[str, Any]:
    """Return the number of files, of lines and of files below 100 lines for each package, and in all."""
    found: dict[str, Counter[str]] = {}
    for name in _tracked():
        lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
        counted = Counter(files=1, lines=lines, below_100_lines=int(lines < 100))
        for package in {*_packages(name), "all"}:
            found.setdefault(package, Counter()).update(counted)
    return {package: dict(found[package]) for package in sorted(found)}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each package whose number of lines differs."""
    found = []
    for package in sorted({*old, *new}):
        before, after = (side.get(package, {}).get("lines", 0) for side in (old, new))
        if before != after:
            found.append(f"{package}: {before} -> {after} lines ({after - before:+})")
    return found


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def _packages(name: str) -> set[str]:
    """Return the packages that a file counts for: its top folder, and one level below the divided ones."""
    path = Path(name)
    top = path.parts[0] if len(path.parts) > 1 else "."
    for folder in DIVIDED:
        if path.is_relative_to(folder):
            below = path.relative_to(folder)
            return {top, folder, f"{folder}/{below.parts[0]}" if len(below.parts) > 1 else folder}
    return {top}
