"""What a long run leaves for the table of faults survived: a JSON line in the file that KVREF_FAULTS names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

FULL: Final = os.environ.get("KVREF_FAULT_LENGTH") == "full"


def record(fault: str, expected: str, cycles: int, seconds: float, **figures: float) -> None:
    """Append what a run did.

    Args:
        fault: its name in the table.
        expected: one sentence for an operator.
        cycles: how often it was tried.
        seconds: how long that took.
        figures: more numbers by name.
    """
    path = os.environ.get("KVREF_FAULTS")
    if path:
        row = {
            "fault": fault,
            "expected": expected,
            "seconds": round(seconds, 1),
            "cycles": cycles,
            "lost": 0,
            **figures,
        }
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
