"""Columns side by side: the verdict on each requirement for each endpoint, and where the endpoints differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kvref.specification import conformance_levels, requirements
from kvref_conformance.judging.verdict import NOT_APPLICABLE, NOT_RUN, PASSING, TRIED, WORST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kvref.specification.requirements import Requirement
    from kvref_conformance.reports.column import Column, Outcome
    from kvref_conformance.reports.levels import LevelVerdict

SAME: Final = "the same"
ANSWERS: Final = "answers differ"
VERDICTS_DIFFER: Final = "verdicts differ"


# Nothing was judged: a feature that the endpoint lacks, a case of another profile, or one that needs --sql.
NOT_JUDGED: Final = NOT_APPLICABLE | {NOT_RUN}


@dataclass(frozen=True, slots=True)
class Share:
    """How many requirements passed (`verdict.PASSING`), of those that were judged."""

    passed: int
    judged: int

    @property
    def part(self) -> float:
        """Return the kept part, 0 to 1; 0 if none was judged."""
        return self.passed / self.judged if self.judged else 0.0

    @property
    def percent(self) -> str:
        """Return the kept part in percent, rounded down: only all of them are 100 %; empty if none was judged."""
        return f"{100 * self.passed // self.judged} %" if self.judged else ""


def share(verdicts: Iterable[str]) -> Share:
    """Count the requirements that verdicts, one for each, keep."""
    judged = [word for word in verdicts if word not in NOT_JUDGED]
    return Share(sum(word in PASSING for word in judged), len(judged))


@dataclass(frozen=True, slots=True)
class Row:
    """A requirement on all endpoints.

    Args:
        requirement: of the catalogue.
        cases: ids, in the order of the suite.
        verdicts: by column name.
        parts: SAME, ANSWERS (in a case that was tried on several; the verdicts are equal) or VERDICTS_DIFFER.
    """

    requirement: Requirement
    cases: tuple[str, ...]
    verdicts: Mapping[str, str]
    parts: str


@dataclass(frozen=True, slots=True)
class Grid:
    """All of them.

    Args:
        columns: in the order given.
        rows: in the order of the catalogue; requirements that no report names are left out.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]

    def totals(self, column: str) -> Counter[str]:
        """Count the requirements of a column by verdict."""
        return Counter(row.verdicts[column] for row in self.rows)

    def share(self, column: str, rows: Iterable[Row] | None = None) -> Share:
        """Return the share of requirements that a column keeps, of some rows or of all."""
        return share(row.verdicts[column] for row in (self.rows if rows is None else rows))

    def words(self) -> list[str]:
        """Return the verdicts that occur, the one that counts most first."""
        found = {word for row in self.rows for word in row.verdicts.values()}
        return [word for word in WORST if word in found]

    def levels(self) -> list[tuple[str, list[LevelVerdict | None]]]:
        """Return the levels of conformance with the verdict of each column; a report may lack one."""
        found = [{each.level: each for each in column.level_verdicts()} for column in self.columns]
        names = [name for name in conformance_levels.NAMES if any(name in each for each in found)]
        return [(name, [each.get(name) for each in found]) for name in names]

    def chapters(self) -> Iterator[tuple[requirements.Chapter, list[Row]]]:
        """Return the chapters of the catalogue that have rows, with those."""
        for chapter in requirements.chapters():
            rows = [row for row in self.rows if row.requirement.chapter == chapter.name]
            if rows:
                yield chapter, rows


def grid(columns: Sequence[Column]) -> Grid:
    """Combine columns into a grid."""
    # The order of the first report that has a case; a later one may have others.
    named: dict[str, dict[str, None]] = {}
    for column in columns:
        for outcome in column.outcomes.values():
            for name in outcome.requirements:
                named.setdefault(name, {})[outcome.case] = None
    catalogue = requirements.load()
    return Grid(columns, [_row(catalogue[name], tuple(named[name]), columns) for name in catalogue if name in named])


def parting(one: Outcome, other: Outcome) -> int | None:
    """Return at which compared step two conversations of a case part, for `Outcome.place`; None where none is shown."""
    ours, others = one.same(), other.same()
    if ours is None or others is None or ours == others:
        return None
    steps = enumerate(zip(ours, others, strict=False))
    return next((number for number, (a, b) in steps if a != b), min(len(ours), len(others)))


def changes(cases: Iterable[str], before: Column, after: Column) -> list[tuple[Outcome, Outcome, int]]:
    """Return those of some cases, tried on both of two endpoints, that were answered otherwise, and where they part."""
    found = []
    for case in cases:
        one, other = before.outcomes.get(case), after.outcomes.get(case)
        if one is None or other is None or not {one.verdict, other.verdict} <= TRIED:
            continue
        place = parting(one, other)
        if place is not None:
            found.append((one, other, place))
    return found


def _row(requirement: Requirement, cases: tuple[str, ...], columns: Sequence[Column]) -> Row:
    verdicts = {column.name: _worst(column, cases) for column in columns}
    if len(set(verdicts.values())) > 1:
        parts = VERDICTS_DIFFER
    else:
        parts = ANSWERS if any(changes(cases, *pair) for pair in pairwise(columns)) else SAME
    return Row(requirement, cases, verdicts, parts)


def _worst(column: Column, cases: Iterable[str]) -> str:
    found = {column.outcomes[case].verdict for case in cases if case in column.outcomes}
    return next((word for word in WORST if word in found), NOT_RUN)
