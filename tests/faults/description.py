"""The faults as `faults.toml` describes them, and what a run of one of them found."""

from __future__ import annotations

import json
import os
import time
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers.live import nightly

FILE = Path(__file__).with_name("faults.toml")
FULL = os.environ.get("KVREF_FAULT_LENGTH", "short") == "full"


@dataclass
class Fault:
    """One fault and the figures of a run.

    Args:
        id: names it everywhere.
        title: what happens.
        store: `sqlite`, or the target that is the database.
        expectation: what an operator may expect.
        short: size of a short run.
        full: size of a full one.
        unit: what the size counts.
    """

    id: str
    title: str
    store: str
    expectation: str
    short: int
    full: int
    unit: str = "cycles"
    cycles: int = 0
    """Times that the fault came and was survived."""
    acknowledged: int = 0
    """Writes that were answered as done."""
    lost: int = 0
    """Of them, those that were not there at the end."""
    figures: dict[str, float] = field(default_factory=dict)
    """Further numbers; a name may end in its unit: `_s`, `_ms`, `_kib`, `_mib`."""
    began: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        """Return how much this run tries."""
        return self.full if FULL else self.short

    def most(self, name: str, number: float) -> None:
        """Note a figure of which the largest counts."""
        self.figures[name] = max(number, self.figures.get(name, number))

    def add(self, name: str, number: float) -> None:
        """Note a figure that is summed up."""
        self.figures[name] = self.figures.get(name, 0) + number

    def record(self, failed: str = "", not_run: str = "") -> dict[str, Any]:
        """Return what the run found.

        Args:
            failed: why the fault was not survived.
            not_run: why it was not tried.
        """
        found = {
            "fault": self.id,
            "title": self.title,
            "expected": " ".join(self.expectation.split()),
            "length": "full" if FULL else "short",
            "seconds": round(time.monotonic() - self.began, 1),
            "cycles": self.cycles,
            "acknowledged": self.acknowledged,
            "lost": self.lost,
            **{name: round(number, 3) for name, number in self.figures.items()},
        }
        return found | ({"failed": failed} if failed else {}) | ({"not_run": not_run} if not_run else {})


@cache
def described() -> dict[str, dict[str, Any]]:
    """Return all descriptions by id."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["fault"]
    return {row["id"]: row for row in rows}


def of(*names: str) -> pytest.MarkDecorator:
    """Say which faults a test tries; it takes each as `fault`. MySQL 8.0 needs Maven, so its faults are nightly."""
    needs_maven = {name for name, row in described().items() if row.get("store") == "mysql-8.0"}
    return pytest.mark.parametrize(
        "fault", [nightly(each) if each in needs_maven else each for each in names], indirect=True
    )


def append(found: dict[str, Any]) -> None:
    """Write what a run found behind the others, where KVREF_FAULTS names a file."""
    file = os.environ.get("KVREF_FAULTS")
    if file:
        with Path(file).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(found) + "\n")
