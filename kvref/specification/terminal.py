"""Requirements on a terminal: one with everything, a list of many, the register of contradictions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvref.specification import deviations, requirements
from kvref.specification.deviations import defects
from kvref.specification.requirements import LEVELS, STYLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rich.console import RenderableType

    from kvref.specification.requirements import Requirement

# In the order in which a requirement shows them.
PROFILES: Final = ("kvref", "mysql-8.0", "mysql-5.6", "memcached")
# Of a requirement and a profile. DEVIATES: it applies, and a documented deviation breaks it.
APPLIES: Final = "applies"
DEVIATES: Final = "deviates"
OTHERWISE: Final = "does not apply"


@dataclass(frozen=True, slots=True)
class SuiteEvidence:
    """What the suite adds to a requirement.

    Args:
        recordings: its evidence among the recordings, each with the versions it was recorded with.
        answers: pairs (sent, answered) that were recorded of a profile's deviation.
    """

    cases: tuple[str, ...] = ()
    recordings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answers: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    example: RenderableType | None = None


def requirement_view(requirement: Requirement, evidence: SuiteEvidence) -> RenderableType:
    """Return one requirement with everything that is known of it."""
    head = Text.assemble(
        (requirement.id, "bold"), "  ", (requirement.level, STYLES[requirement.level]), "  ", requirement.title
    )
    grid = labelled()
    for name, value in _rows(requirement, evidence):
        grid.add_row(f"  {name}", Text(value))
    for profile in PROFILES:
        grid.add_row(f"  {profile}", _profile_state(requirement, profile, evidence.answers.get(profile, ())))
    parts: list[RenderableType] = [head, Padding(Text(requirement.statement), (0, 0, 1, 2)), grid]
    if evidence.example is not None:
        parts.append(Padding(evidence.example, (1, 0, 0, 2)))
    return Group(*parts, Text())


def labelled() -> Table:
    """Return a table for rows of a label and a text."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    return grid


def _rows(requirement: Requirement, evidence: SuiteEvidence) -> Iterator[tuple[str, str]]:
    yield "sources", "\n".join(requirement.sources)
    if requirement.contradicts:
        yield "contradicts", "\n".join(requirement.contradicts)
    recorded = [f"{cited} ({', '.join(versions)})" for cited, versions in evidence.recordings.items()]
    other = [cited for cited in requirement.evidence if cited not in evidence.recordings]
    yield "evidence", "\n".join(recorded + other)
    if evidence.cases:
        yield "cases", ", ".join(evidence.cases)
    if requirement.tests:
        yield "tests", "\n".join(requirement.tests)
    if requirement.untestable:
        yield "untestable", requirement.untestable
    for defect in defects.load():
        if defect.requirement == requirement.id:
            yield defect.kind, f"{', '.join(defect.profiles)}: {defect.reason}"


def _profile_state(requirement: Requirement, profile: str, answers: Iterable[tuple[str, str]]) -> Text:
    if not requirement.applies_to(profile):
        return Text(OTHERWISE, "dim")
    rows = deviations.of_requirement(requirement.id, profile)
    if not rows:
        return Text(APPLIES, "green")
    text = Text(DEVIATES, "yellow")
    text.append(f": {deviations.reason(rows)}", "default")
    for sent, reply in answers:
        text.append(f"\n> {sent}\n< {reply}", "default")
    return text


def listing(selected: Iterable[Requirement]) -> Iterator[str]:
    """Yield `KV-… LEVEL title` for each requirement."""
    return (f"{each.id} {each.level} {each.title}" for each in selected)


def register(selected: Iterable[Requirement]) -> Table:
    """Return the register of contradictions: each QUIRK with the texts that say otherwise."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for column in ("requirement", "observed", "contradicts"):
        table.add_column(column, no_wrap=column == "requirement")
    for each in selected:
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
