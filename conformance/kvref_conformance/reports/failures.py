"""report.md: the failures of a run as Markdown for a pull request, grouped by likely cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.judging.verdict import counted
from kvref_conformance.reports.groups import grouped
from kvref_conformance.reports.markdown import MAX_CHARACTERS, fenced, inline, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvref_conformance.judging.verdict import Tally
    from kvref_conformance.reports.groups import Group
    from kvref_conformance.reports.header import Header

MAX_CASES: Final = 20  # in the list of a group


def write(path: Path, header: Header, tally: Tally) -> None:
    """Write the failures of a run to a file; arguments as of `jsonl.write`."""
    path.write_text(text(header, tally), encoding="utf-8")


def text(header: Header, tally: Tally, limit: int = MAX_CHARACTERS) -> str:
    """Return the failures of a run as Markdown.

    Args:
        header: of the run.
        tally: its verdicts.
        limit: maximum length in characters; the groups that do not fit are left out and counted.
    """
    lines = ["## kvref conformance", ""]
    lines.append(f"{inline(header.endpoint)} as {inline(header.profile)}: {counted(tally.totals())}")
    lines += [f"- {inline(complaint)}" for complaint in tally.complaints]
    head = "\n".join(lines) + "\n"
    return within([head, *("\n".join(_block(group)) + "\n" for group in grouped(tally.verdicts))], limit)


def _block(group: Group) -> Iterator[str]:
    count = len(group.verdicts)
    yield f"\n### {count} {'case' if count == 1 else 'cases'}: {inline(group.cause)}\n"
    yield "Requirements: " + ", ".join(f"{name} ({count})" for name, count in group.requirements()) + "\n"
    cases = [inline(each.case) for each in group.verdicts[:MAX_CASES]]
    more = f" and {count - MAX_CASES} more" if count > MAX_CASES else ""
    yield f"<details><summary>Cases: {', '.join(cases)}{more}</summary>\n"
    yield from fenced(group.verdicts[0].text.splitlines())
    yield "\n</details>"
