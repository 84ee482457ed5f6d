"""Compare a page of the matrix with the suite: `python -m kvref_conformance.matrix.standing PAGE [PENDING]`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import SuiteError
from kvref.specification import requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.typed import mismatch
from kvref_conformance.verdict import base

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA: Final = re.compile(r'<script[^>]* id="data">(.*?)</script>', re.DOTALL)
MAX_NAMES: Final = 8
FIX: Final = "bash .ci/part standing"


class _Data(TypedDict):
    requirements: Mapping[str, tuple[str, ...]]


def cases_of(page: str) -> Mapping[str, Sequence[str]]:
    """Return the cases that a page of the matrix shows, by requirement.

    Args:
        page: HTML, as `page.html` returns it.

    Raises:
        SuiteError: it is no such page.
    """
    found = DATA.search(page)
    if found is None:
        raise SuiteError("not a page of the matrix: it has no data")
    try:
        data = documents.json_of(found[1])
    except DocumentError as error:
        raise SuiteError(f"not a page of the matrix: its data is not JSON: {error}") from error
    if fault := mismatch(data, _Data, "data"):
        raise SuiteError(f"not a page of the matrix: {fault}")
    shown: Mapping[str, Sequence[str]] = data["requirements"]
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
    """Return how the names of a page of the matrix differ from those of the suite.

    Requirements are before cases. A name that only the suite has is written as it is, one that only the page has, as
    that of a case that has another name now, behind `- `.

    Args:
        page: HTML, as `page.html` returns it.

    Raises:
        SuiteError: as `cases_of`.
    """
    shown, there = _shown(page), _suite()
    found = []
    for part in (0, 1):
        theirs, ours = ({pair[part] for pair in pairs} for pairs in (shown, there))
        found += [*sorted(ours - theirs), *(f"- {name}" for name in sorted(theirs - ours))]
    return found


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
        The exit code: 0 it does not, 1 it does, 2 it is not a page of the matrix.
    """
    try:
        text = documents.read_text(Path(words[0]))
        for file in words[1:]:
            Path(file).write_text("".join(f"{name}\n" for name in pending(text)), encoding="utf-8")
        found = differences(text)
    except (OSError, DocumentError, SuiteError) as error:
        sys.stdout.write(f"{words[0]}: {error}: {FIX}\n")
        return 2
    for line in found:
        sys.stdout.write(f"{words[0]}: {line}\n")
    if found:
        sys.stdout.write(f"the page is older than the suite, or of other reports: {FIX}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
