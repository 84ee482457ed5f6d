"""The verdict of every case of the suite, by target."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

# The two plugins, memcached, and kvref over each of its stores; `name:profile` judges by another profile.
TARGETS: Final = (
    "kvref-sqlite", "kvref-sqlite:mysql-8.0", "kvref-sqlite:mysql-5.6", "kvref-sqlite-workers", "kvref-mysql-8.0",
    "kvref-mysql-8.0:mysql-8.0", "kvref-mysql-9.7", "kvref-mariadb", "kvref-galera", "kvref-mysql-group",
    "mysql-8.0-plugin", "mysql-5.6-plugin", "memcached",
)  # fmt: skip
NOT_JUDGED: Final = "not judged"


def measure(targets: Sequence[str] = TARGETS) -> dict[str, Any]:
    """Return the verdict by case for each target.

    Raises:
        RuntimeError: the suite wrote no report for a target, with what it printed.
    """
    return {target: _judge(target) for target in targets}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each case with another verdict, of the targets that both have."""
    found = []
    for target in sorted(old.keys() & new.keys()):
        before, after = old[target], new[target]
        for case in sorted({*before, *after}):
            was, now = (side.get(case, NOT_JUDGED) for side in (before, after))
            if was != now:
                found.append(f"{target}: {case}: {was} -> {now}")
    return found


def _judge(target: str) -> dict[str, str]:
    """Run the suite on one target; its exit code 1 (does not conform) is a result."""
    name, _, profile = target.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        words = ["conform", "--level", "quirk", "--target", name, "--report", folder]
        words += ["--profile", profile] if profile else []
        print(f"kvref {' '.join(words)}", file=sys.stderr)
        ended = subprocess.run([sys.executable, "-m", "kvref", *words], capture_output=True, text=True, check=False)
        report = Path(folder) / "report.jsonl"
        if not report.exists():
            raise RuntimeError(f"no report for {target}, exit code {ended.returncode}: {ended.stdout}{ended.stderr}")
        lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    verdicts = {}
    for line in lines:
        if line["kind"] == "verdict":
            verdicts[line["case"]] = line["verdict"]
    return verdicts
