"""The specification as one HTML page, or as Markdown: introduction, contents, every requirement with its example."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from kvref.specification.requirements import LEVELS
from kvref_conformance import __version__
from kvref_conformance.reports import pages
from kvref_conformance.spec.entry import VERSIONS, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.spec.entry import Entry

# A conversation of up to this number of steps is expanded, a longer one is folded.
SHORT: Final = 8


def html(sections: Sequence[Section]) -> str:
    """Return the page, which needs nothing else."""
    return pages.render("spec/page.html.j2", **_context(sections), paragraphs=_introduction(), short=SHORT)


def markdown(sections: Sequence[Section]) -> str:
    """Return the same text in Markdown, with the ids as anchors."""
    # Markdown is not HTML: backquotes escape what is between them.
    environment = Environment(  # noqa: S701
        loader=PackageLoader("kvref_conformance", "spec"), undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template("page.md.j2").render(**_context(sections), introduction=introduction())


def _context(sections: Sequence[Section]) -> dict[str, Any]:
    entries = [entry for section in sections for entry in section.entries]
    levels = Counter(entry.requirement.level for entry in entries)
    return {
        "suite": __version__,
        "sections": sections,
        "count": len(entries),
        "levels": {level: levels[level] for level in LEVELS if levels[level]},
        "profiles": list(VERSIONS),
        "versions": VERSIONS,
        "register": [entry for entry in entries if entry.requirement.contradicts],
        "tested_by": tested_by,
    }


def tested_by(entry: Entry) -> str:
    """Return what tests a requirement: cases, tests, or why nothing can."""
    parts = []
    if entry.cases:
        parts.append(f"{len(entry.cases)} case{'s' if len(entry.cases) > 1 else ''}: {', '.join(entry.cases)}")
    parts += entry.requirement.tests
    if entry.requirement.untestable:
        parts.append(f"no case: {entry.requirement.untestable}")
    return "; ".join(parts) or "replayed recordings only"


def introduction() -> str:
    """Return the introduction of the specification as plain paragraphs; indented ones are examples."""
    return files(__package__).joinpath("introduction.txt").read_text(encoding="utf-8")


def _introduction() -> list[dict[str, Any]]:
    blocks = introduction().strip("\n").split("\n\n")
    return [{"text": dedent(block), "example": block.startswith("    ")} for block in blocks]
