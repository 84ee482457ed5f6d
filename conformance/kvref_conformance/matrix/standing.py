"""Compare a page of the matrix with the suite: `python -m kvref_conformance.matrix.standing PAGE [PENDING]`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref.specification import requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.verdict import base

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DATA: Final = re.compile(r'<script[^>]* id="data">(.*?)</script>', re.DOTALL)
MAX_NAMES: Final = 8
FIX: Final = "bash .ci/standing"


def cases_of(page: str) -> Mapping[str, Sequence[str]]:
    """Return the cases that a page of the matrix shows, by requirement.

    Args:
        page: HTML, as `page.html` returns it.

    Raises:
        SuiteError: it is no such page.
    """
    found = DATA.search(page)
    if found is None:
        raise SuiteError("no page of the matrix: it has no data")
    shown: Mapping[str, Sequence[str]] = json.loads(found[1])["requirements"]
    return shown


def differences(page: str) -> list[str]:
    """Return how a page of the matrix differs from the suite, a line each; empty where it is as new.

    Args:
        page: HTML, as `page.html` returns it.

    Raises:
        SuiteError: as `cases_of`.
    """
    shown, there = _shown(page), _suite()
    ours, theirs = ({name for name, _ in pairs} for pairs in (there, shown))
    compared = (
        ("requirements that the page is without", ours - theirs),
        ("requirements that the suite is without", theirs - ours),
        ("cases that the page is without", {case for _, case in there} - {case for _, case in shown}),
        ("cases that the suite is without", {case for _, case in shown} - {case for _, case in there}),
    )
    return [f"{len(names)} {what}: {_some(names)}" for what, names in compared if names]


def pending(page: str) -> list[str]:
    """Return the requirements, and behind them the cases, that the suite has and a page of the matrix lacks.

    Args:
        page: HTML, as `page.html` returns it.

    Raises:
        SuiteError: as `cases_of`.
    """
    shown, there = _shown(page), _suite()
    return [name for part in (0, 1) for name in sorted({pair[part] for pair in there} - {pair[part] for pair in shown})]


def _shown(page: str) -> set[tuple[str, str]]:
    # Several things that one generated case found stand under names of their own.
    return {(name, base(case)) for name, cases in cases_of(page).items() for case in cases}


def _suite() -> set[tuple[str, str]]:
    return {(name, case.id) for case in all_cases() for name in case.requirements if name in requirements.load()}


def _some(names: set[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - MAX_NAMES} more" if len(listed) > MAX_NAMES else ""
    return ", ".join(listed[:MAX_NAMES]) + more


def main(words: Sequence[str]) -> int:
    """Print how a page differs from the suite.

    Args:
        words: path of the page, and optionally of the file to write with what `pending` returns, a name a line.

    Returns:
        The exit code: 0 it does not, 1 it does.
    """
    text = Path(words[0]).read_text(encoding="utf-8")
    for file in words[1:]:
        Path(file).write_text("".join(f"{name}\n" for name in pending(text)), encoding="utf-8")
    found = differences(text)
    for line in found:
        sys.stdout.write(f"{words[0]}: {line}\n")
    if found:
        sys.stdout.write(f"the page is older than the suite, or of other reports: {FIX}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
