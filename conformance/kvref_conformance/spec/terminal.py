"""Requirements on a terminal: one with everything, a list of many, the register of contradictions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvref.specification import requirements
from kvref.specification.requirements import LEVELS, STYLES
from kvref_conformance.spec.entry import DEVIATES, OTHERWISE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from kvref.specification.requirements import Requirement
    from kvref_conformance.spec.entry import Entry, View
    from kvref_conformance.spec.example import Example


def entry_view(entry: Entry) -> RenderableType:
    """Return one requirement with everything that is known of it."""
    requirement = entry.requirement
    head = Text.assemble(
        (requirement.id, "bold"), "  ", (requirement.level, STYLES[requirement.level]), "  ", requirement.title
    )
    parts: list[RenderableType] = [head, Padding(Text(requirement.statement), (0, 0, 1, 2)), _facts(entry)]
    if entry.example is not None:
        parts.append(Padding(_example(entry.example), (1, 0, 0, 2)))
    return Group(*parts, Text())


def _facts(entry: Entry) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in _rows(entry):
        grid.add_row(f"  {name}", Text(value))
    for view in entry.views:
        grid.add_row(f"  {view.profile}", _view(view))
    return grid


def _rows(entry: Entry) -> Iterator[tuple[str, str]]:
    requirement = entry.requirement
    yield "sources", "\n".join(requirement.sources)
    if requirement.contradicts:
        yield "contradicts", "\n".join(requirement.contradicts)
    recorded = [f"{cited} ({', '.join(versions)})" for cited, versions in entry.recordings.items()]
    live = [cited for cited in requirement.evidence if cited.startswith("live:")]
    yield "evidence", "\n".join(recorded + live)
    if entry.cases:
        yield "cases", ", ".join(entry.cases)
    if requirement.tests:
        yield "tests", "\n".join(requirement.tests)
    if requirement.untestable:
        yield "untestable", requirement.untestable
    for defect in entry.defects:
        yield defect.kind, f"{', '.join(defect.profiles)}: {defect.reason}"


def _view(view: View) -> Text:
    style = {DEVIATES: "yellow", OTHERWISE: "dim"}.get(view.state, "green")
    text = Text(view.state, style)
    if view.reason:
        text.append(f": {view.reason}", "default")
    if view.state == DEVIATES:
        for sent, got in view.answers:
            text.append(f"\n> {sent}\n< {got}", "default")
    return text


def _example(example: Example) -> Table:
    table = Table(title=f"{example.citation}: {example.title}", title_justify="left", box=None, show_header=False)
    table.add_column(style="dim", justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for line in example.given:
        table.add_row("given", Text(line, "dim"))
    for exchange in example.exchanges:
        table.add_row(f"{exchange.on} >", Text(exchange.sent))
        for answer in exchange.answers:
            table.add_row(f"{' '.join(answer.versions)} <", Text(answer.text, "green"))
    return table


def listing(wanted: Iterable[Requirement]) -> Iterator[str]:
    """Yield `KV-… LEVEL title`, one line a requirement."""
    return (f"{each.id} {each.level} {each.title}" for each in wanted)


def register(wanted: Iterable[Requirement]) -> Table:
    """Return the register of contradictions: each QUIRK with the texts that say otherwise."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for column in ("requirement", "observed", "contradicts"):
        table.add_column(column, no_wrap=column == "requirement")
    for each in wanted:
        if each.contradicts:
            texts = Text("\n".join(each.contradicts))
            table.add_row(f"{each.id}\n{', '.join(each.profiles)}", Text(each.statement), texts)
    return table


def overview() -> Table:
    """Return the chapters with the number of requirements by level."""
    table = Table(title="requirements by chapter", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column("chapter", no_wrap=True)
    for level in LEVELS:
        table.add_column(level, justify="right")
    table.add_column("about")
    totals: Counter[str] = Counter()
    for chapter in requirements.chapters():
        levels = Counter(each.level for each in chapter.requirements)
        totals += levels
        table.add_row(chapter.name, *(str(levels[level] or "·") for level in LEVELS), Text(chapter.title))
    table.add_section()
    table.add_row("all", *(str(totals[level]) for level in LEVELS), "", style="bold")
    return table
