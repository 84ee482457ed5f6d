"""Verdicts of a run by level of conformance, and their badges: SVG, and JSON in the form that shields.io reads."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.specification import conformance_levels, requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.verdict import BROKEN, NOT_RUN, SUITE_ERROR, TRIED, base

if TYPE_CHECKING:
    from pathlib import Path

    from kvref_conformance.case import Case
    from kvref_conformance.verdict import Tally, Verdict

CONFORMS: Final = "conforms"
DOES_NOT_CONFORM: Final = "does not conform"
INCOMPLETE: Final = "incomplete"
NOT_JUDGED: Final = "not judged"
# Color of the badge by verdict: its name at shields.io and the same color in SVG.
COLORS: Final = {
    CONFORMS: ("brightgreen", "#4c1"),
    DOES_NOT_CONFORM: ("red", "#e05d44"),
    INCOMPLETE: ("yellow", "#dfb317"),
    NOT_JUDGED: ("lightgrey", "#9f9f9f"),
}
SCHEMA_VERSION: Final = 1  # of shields.io
# Width of a character and of the margins of a half of a badge, in pixels.
CHARACTER: Final = 6.6
MARGIN: Final = 10
HEIGHT: Final = 20


@dataclass(frozen=True, slots=True)
class LevelVerdict:
    """The verdict on one level.

    Args:
        level: its name.
        verdict: a key of COLORS. A level conforms if nothing of it and of the levels that it builds on is broken, and
            every case of these was tried that applies to the profile and to the database.
        totals: number of cases by verdict, without those of the levels that it builds on.
        tried: number of its own cases that were tried.
        applicable: number of its own cases that apply to the profile and to the database.
    """

    level: str
    verdict: str
    totals: Counter[str]
    tried: int
    applicable: int

    def line(self) -> str:
        """Return the verdict in one line."""
        return f"conformance level {self.level}: {self.verdict}, {self.count()}"

    def count(self) -> str:
        """Return how many cases were tried."""
        return f"{self.tried} of {self.applicable} cases"

    def as_json(self) -> dict[str, Any]:
        """Return the verdict for a report in JSON."""
        return {
            "level": self.level,
            "verdict": self.verdict,
            "tried": self.tried,
            "applicable": self.applicable,
            "totals": {word: count for word, count in self.totals.items() if count},
        }


def verdicts(tally: Tally, profile: str) -> list[LevelVerdict]:
    """Return the verdicts on the levels that have cases for a profile, in the order of the levels.

    Args:
        tally: of a run.
        profile: name of the profile that the run judged by.
    """
    by_case: dict[str, list[Verdict]] = {}
    for each in tally.verdicts:
        by_case.setdefault(base(each.case), []).append(each)
    cases: dict[str, list[Case]] = {name: [] for name in conformance_levels.NAMES}
    for case in all_cases():
        if _applies(case, profile, by_case):
            cases[conformance_levels.of_requirements(case.requirements)].append(case)
    own = {name: _Counted.of(members, by_case) for name, members in cases.items()}
    return [_verdict(name, own) for name, each in own.items() if each.applicable]


def lines(tally: Tally, profile: str) -> list[str]:
    """Return what the terminal shows of the levels at the end of a run; nothing if no case was tried."""
    return [each.line() for each in verdicts(tally, profile) if each.tried]


def write_badges(folder: Path, found: list[LevelVerdict], profile: str) -> None:
    """Write LEVEL.svg and LEVEL.json for each level to a folder, which is made.

    Args:
        folder: of the badges.
        found: as `verdicts` returns it.
        profile: name of the profile.
    """
    folder.mkdir(exist_ok=True)
    for each in found:
        label, message = f"{profile} {each.level}", f"{each.verdict}, {each.count()}"
        color, in_svg = COLORS[each.verdict]
        badge = {"schemaVersion": SCHEMA_VERSION, "label": label, "message": message, "color": color}
        (folder / f"{each.level}.json").write_text(json.dumps(badge, indent=1) + "\n", encoding="utf-8")
        (folder / f"{each.level}.svg").write_text(_svg(label, message, in_svg), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Counted:
    totals: Counter[str]
    tried: int
    applicable: int

    @classmethod
    def of(cls, cases: list[Case], by_case: dict[str, list[Verdict]]) -> _Counted:
        """Count the cases of a level; a case with several findings counts as one case that was tried."""
        totals = Counter(each.verdict for case in cases for each in by_case.get(case.id, ()))
        tried = sum(any(each.verdict in TRIED for each in by_case.get(case.id, ())) for case in cases)
        return cls(totals, tried, len(cases))

    def is_broken(self) -> bool:
        return any(self.totals[word] for word in (*BROKEN, SUITE_ERROR))


def _verdict(name: str, own: dict[str, _Counted]) -> LevelVerdict:
    mine = own[name]
    parts = [own[each] for each in conformance_levels.closure(name)]
    if not mine.tried:
        word = NOT_JUDGED
    elif any(part.is_broken() for part in parts):
        word = DOES_NOT_CONFORM
    else:
        word = CONFORMS if all(part.tried == part.applicable for part in parts) else INCOMPLETE
    return LevelVerdict(name, word, mine.totals, mine.tried, mine.applicable)


def _applies(case: Case, profile: str, by_case: dict[str, list[Verdict]]) -> bool:
    """Return whether an endpoint of the profile over the database of the run can be judged by a case."""
    catalogue = requirements.load()
    if not all(catalogue[each].applies_to(profile) for each in case.requirements):
        return False
    if case.needs_mappings() and not profiles.load(profile).flag("mapping.supported"):
        return False
    found = {each.verdict for each in by_case.get(case.id, ())}
    # The judge runs such a case only with that database.
    return not (case.engine and found <= {NOT_RUN})


def _svg(label: str, message: str, color: str) -> str:
    left, right = (round(len(text) * CHARACTER) + MARGIN for text in (label, message))
    width, title = left + right, escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n"
        f'<rect width="{left}" height="{HEIGHT}" fill="#555"/>\n'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{color}"/>\n'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">\n'
        f'<text x="{left / 2:g}" y="14">{escape(label)}</text>\n'
        f'<text x="{left + right / 2:g}" y="14">{escape(message)}</text>\n'
        "</g>\n</svg>\n"
    )
