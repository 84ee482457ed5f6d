"""Compare verdict files with the suite: `python -m kvref_conformance.reports.standing FOLDER [PENDING]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref.specification import requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.judging.verdict import base
from kvref_conformance.reports.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NAMES: Final = 8


def differences(record: Record) -> list[str]:
    """Return how verdict files differ from the suite, a line each; empty where they are as new."""
    shown, there = _shown(record), _suite()
    ours, theirs = ({name for name, _ in pairs} for pairs in (there, shown))
    compared = (
        ("requirements that the files lack", ours - theirs),
        ("requirements that the suite lacks", theirs - ours),
        ("cases that the files lack", {case for _, case in there} - {case for _, case in shown}),
        ("cases that the suite lacks", {case for _, case in shown} - {case for _, case in there}),
    )
    return [f"{len(names)} {what}: {_some(names)}" for what, names in compared if names]


def pending(record: Record) -> list[str]:
    """Return how the names of verdict files differ from those of the suite.

    Requirements are before cases. A name that only the suite has is written as it is, one that only the files have, as
    that of a case that has another name now, behind `- `.
    """
    shown, there = _shown(record), _suite()
    found = []
    for part in (0, 1):
        theirs, ours = ({pair[part] for pair in pairs} for pairs in (shown, there))
        found += [*sorted(ours - theirs), *(f"- {name}" for name in sorted(theirs - ours))]
    return found


def _shown(record: Record) -> set[tuple[str, str]]:
    # Several things that one generated case found have names of their own.
    return {(name, base(case)) for name, cases in record.cases.items() for case in cases}


def _suite() -> set[tuple[str, str]]:
    return {(name, case.id) for case in all_cases() for name in case.requirements if name in requirements.load()}


def _some(names: set[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - MAX_NAMES} more" if len(listed) > MAX_NAMES else ""
    return ", ".join(listed[:MAX_NAMES]) + more


def main(words: Sequence[str]) -> int:
    """Print how verdict files differ from the suite.

    Args:
        words: folder of the verdict files, and optionally a file to write with what `pending` returns, a name a line.

    Returns:
        The exit code: 0 they do not, 1 they do, 2 they cannot be read.
    """
    try:
        record = Record.read(Path(words[0]))
        for file in words[1:]:
            Path(file).write_text("".join(f"{name}\n" for name in pending(record)), encoding="utf-8")
    except (OSError, SuiteError) as error:
        sys.stdout.write(f"{error}\n")
        return 2
    found = differences(record)
    for line in found:
        sys.stdout.write(f"{words[0]}: {line}\n")
    if found:
        sys.stdout.write("the files are older than the suite, or of other reports: bash .ci/part standing\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
