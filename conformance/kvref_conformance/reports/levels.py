"""Verdicts of a run by level of conformance, and their badges: SVG, and JSON in the form that shields.io reads."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.specification import conformance_levels, requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.judging.verdict import (
    FAILED,
    NOT_APPLICABLE,
    NOT_RUN,
    PASSING,
    TRIED,
    UNSUPPORTED,
    WORST,
    base,
    outcome_counts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kvref_conformance.case import Case
    from kvref_conformance.judging.verdict import Tally

CONFORMS: Final = "conforms"
DOES_NOT_CONFORM: Final = "does not conform"
INCOMPLETE: Final = "incomplete"
NOT_JUDGED: Final = "not judged"
DOES_NOT_APPLY: Final = "not applicable"
# Color of the badge by verdict: its name at shields.io and the same color in SVG.
COLORS: Final = {
    CONFORMS: ("brightgreen", "#4c1"),
    DOES_NOT_CONFORM: ("red", "#e05d44"),
    INCOMPLETE: ("yellow", "#dfb317"),
    NOT_JUDGED: ("lightgrey", "#9f9f9f"),
    DOES_NOT_APPLY: ("lightgrey", "#9f9f9f"),
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
            every case of these was tried that applies to the profile, to the database and to the features of the
            endpoint; a feature that defines one of these levels must be there. It is not applicable if none of the
            requirements that define it applies to the endpoint.
        totals: number of its cases by verdict, without those of the levels that it builds on; cases that do not apply
            to the profile or to the database are UNSUPPORTED, others that are not in the run are NOT_RUN.
        applicable: number of its cases that apply to the profile and to the database.
    """

    level: str
    verdict: str
    totals: Counter[str]
    applicable: int

    @classmethod
    def from_json(cls, level: Mapping[str, Any]) -> LevelVerdict:
        """Return what `as_json` made, in this release or an earlier one."""
        return cls(level["level"], level["verdict"], Counter(level["totals"]), level["applicable"])

    @property
    def passed(self) -> int:
        """Return the number of its cases that are kept."""
        return sum(self.totals[word] for word in PASSING)

    @property
    def failed(self) -> int:
        """Return the number of its cases that are broken, or in which the suite failed."""
        return sum(self.totals[word] for word in FAILED)

    @property
    def not_applicable(self) -> int:
        """Return the number of its cases that do not apply to the endpoint."""
        return sum(self.totals[word] for word in NOT_APPLICABLE)

    @property
    def tried(self) -> int:
        """Return the number of its cases that were tried."""
        return sum(self.totals[word] for word in TRIED)

    def line(self) -> str:
        """Return the verdict in one line."""
        return f"conformance level {self.level}: {self.verdict}, {self.count()}"

    def count(self) -> str:
        """Return how many of its cases passed, failed and are not applicable."""
        return outcome_counts(self.totals)

    def as_json(self) -> dict[str, Any]:
        """Return the verdict for a report in JSON."""
        return {
            "level": self.level,
            "verdict": self.verdict,
            "passed": self.passed,
            "failed": self.failed,
            "not_applicable": self.not_applicable,
            "tried": self.tried,
            "applicable": self.applicable,
            "totals": {word: count for word, count in self.totals.items() if count},
        }


def verdicts(tally: Tally, profile: str) -> list[LevelVerdict]:
    """Return the verdicts on all levels, in their order.

    Args:
        tally: of a run.
        profile: name of the profile that the run judged by.
    """
    by_case: dict[str, set[str]] = {}
    for each in tally.verdicts:
        by_case.setdefault(base(each.case), set()).add(each.verdict)
    cases: dict[str, list[_Judged]] = {name: [] for name in conformance_levels.NAMES}
    for case, level, defines, applies in _cases(profile):
        cases[level].append(_Judged.of(case, by_case.get(case.id, set()), defines=defines, applies=applies))
    return [_verdict(name, cases) for name in cases]


def lines(tally: Tally, profile: str) -> list[str]:
    """Return what the terminal shows at the end of a run: the levels of which it tried or rejected cases."""
    # A verdict on the suite itself has no requirement, and so no level.
    seen = {conformance_levels.of_requirements(each.requirements) for each in tally.verdicts if each.requirements}
    found = [each for each in verdicts(tally, profile) if each.level in seen]
    return [each.line() for each in found if each.tried or each.verdict == DOES_NOT_APPLY]


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
class _Judged:
    """A case in a run.

    Args:
        word: the worst of its verdicts, where several things were found; see `LevelVerdict.totals`.
        applies: to the profile and to the database.
        defines: it tests a requirement that defines its level.
    """

    word: str
    applies: bool
    defines: bool

    @property
    def complete(self) -> bool:
        """Return whether it was tried, or needs to be tried in no run against this endpoint."""
        return self.word in TRIED or not self.applies or (self.word in NOT_APPLICABLE and not self.defines)

    @classmethod
    def of(cls, case: Case, found: set[str], *, defines: bool, applies: bool) -> _Judged:
        # The judge runs a case that needs a database only with that database.
        applies = applies and not (case.engine and found <= {NOT_RUN})
        worst = next((word for word in WORST if word in found), NOT_RUN)
        return cls(worst if applies else UNSUPPORTED, applies, defines)


@cache
def _cases(profile: str) -> tuple[tuple[Case, str, bool, bool], ...]:
    """Return each case with its level, whether it defines that level, and whether it applies to the profile."""
    catalogue, levels, mapped = (
        requirements.load(),
        conformance_levels.load(),
        profiles.load(profile).flag("mapping.supported"),
    )
    found = []
    for case in all_cases():
        stated = [catalogue[each] for each in case.requirements]
        level = conformance_levels.of_requirements(case.requirements)
        defines = any(each.chapter in levels[level].defined_by for each in stated)
        applies = all(each.applies_to(profile) for each in stated) and (mapped or not case.needs_mappings())
        found.append((case, level, defines, applies))
    return tuple(found)


def _verdict(name: str, cases: Mapping[str, list[_Judged]]) -> LevelVerdict:
    parts = [case for each in conformance_levels.closure(name) for case in cases[each]]
    own = cases[name]
    if all(case.word in NOT_APPLICABLE for case in own if case.defines):
        word = DOES_NOT_APPLY
    elif all(case.word not in TRIED for case in own):
        word = NOT_JUDGED
    elif any(case.word in FAILED for case in parts):
        word = DOES_NOT_CONFORM
    else:
        word = CONFORMS if all(case.complete for case in parts) else INCOMPLETE
    return LevelVerdict(name, word, Counter(case.word for case in own), sum(case.applies for case in own))


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
