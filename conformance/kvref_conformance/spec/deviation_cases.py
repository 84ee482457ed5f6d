"""Which requirements the cases judge that a deviation names: a table for readers that have no cases.

`python -m kvref_conformance.spec.deviation_cases` writes it to `kvref/specification/deviation_cases.toml`.
"""

from __future__ import annotations

import json
from pathlib import Path

import kvref.specification
from kvref.specification import deviations
from kvref_conformance.cases import all_cases

PATH = Path(kvref.specification.__file__).with_name("deviation_cases.toml")


def text() -> str:
    """Return the table as TOML, cases in the order of the suite."""
    named = deviations.subjects()
    rows = [
        f"{json.dumps(case.id)} = {json.dumps(list(case.requirements))}\n" for case in all_cases() if case.id in named
    ]
    return "".join(["# Written by python -m kvref_conformance.spec.deviation_cases\n\n", *rows])


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
