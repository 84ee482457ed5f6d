"""One requirement with all its data: the endpoints that it applies to, deviations, cases, and evidence."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from kvref import profiles
from kvref.specification import deviations, requirements
from kvref.specification.deviations import defects
from kvref.specification.terminal import APPLIES, DEVIATES, OTHERWISE, PROFILES
from kvref_conformance import corpus
from kvref_conformance.cases import all_cases
from kvref_conformance.judging.conversation import shown
from kvref_conformance.spec.example import Example, example
from kvref_conformance.steps import By, Send

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref.specification.deviations.defects import Defect
    from kvref.specification.requirements import Requirement
    from kvref_conformance.case import Case

# In the order of the columns; the version whose recordings show the profile, where there are any.
VERSIONS: Final = dict(zip(PROFILES, ("", "8.0.33", "5.6.14", "memcached-1.6.18"), strict=True))


@dataclass(frozen=True, slots=True)
class View:
    """One profile's column.

    Args:
        profile: its name.
        state: APPLIES, DEVIATES (it applies and is broken, as documented) or OTHERWISE.
        reason: what the endpoint does instead; empty unless it deviates.
        answers: pairs (sent, answered): those recorded of a deviation, else the last that a case wants, which is what
            the endpoint answered when it was judged, else the last of the example in that version.
        source: `recorded`, or the case.
    """

    profile: str
    state: str
    reason: str
    answers: tuple[tuple[str, str], ...]
    source: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One requirement.

    Args:
        requirement: itself.
        cases: ids of the cases that judge it.
        recordings: its evidence among the transcripts, each with the versions it was recorded with.
        example: the first of these; None without any.
        views: one for each profile of VERSIONS.
        defects: what it does to users beyond an unusual answer: crashes, values lost.
    """

    requirement: Requirement
    cases: tuple[str, ...]
    recordings: Mapping[str, tuple[str, ...]]
    example: Example | None
    views: tuple[View, ...]
    defects: tuple[Defect, ...]


def entry(requirement: Requirement) -> Entry:
    """Collect what is known of a requirement.

    Raises:
        SuiteError: its evidence names a conversation that is not among the transcripts.
    """
    cases = _cases_by_requirement().get(requirement.id, ())
    examples = [example(cited, corpus.find(cited)) for cited in requirement.evidence if not cited.startswith("live:")]
    first = examples[0] if examples else None
    views = tuple(_view(requirement, profile, cases, first) for profile in VERSIONS)
    recordings = {each.citation: each.versions for each in examples}
    harm = tuple(defect for defect in defects.load() if defect.requirement == requirement.id)
    return Entry(requirement, tuple(case.id for case in cases), recordings, first, views, harm)


def recorded_versions(requirement: Requirement) -> frozenset[str]:
    """Return the versions with which a requirement's evidence was recorded."""
    return frozenset().union(
        *(corpus.find(cited).versions() for cited in requirement.evidence if not cited.startswith("live:"))
    )


@cache
def _cases_by_requirement() -> Mapping[str, tuple[Case, ...]]:
    found: defaultdict[str, list[Case]] = defaultdict(list)
    for case in all_cases():
        for name in case.requirements:
            found[name].append(case)
    return {name: tuple(cases) for name, cases in found.items()}


def cases_of(requirement: str) -> tuple[str, ...]:
    """Return the ids of the cases that judge a requirement."""
    return tuple(case.id for case in _cases_by_requirement().get(requirement, ()))


def _view(requirement: Requirement, profile: str, cases: tuple[Case, ...], shown_by: Example | None) -> View:
    if not requirement.applies_to(profile):
        return View(profile, OTHERWISE, "", (), "")
    rows = deviations.of_requirement(requirement.id, profile)
    if rows:
        answers = tuple((shown(sent), shown(got)) for row in rows for sent, got in row.conversation)
        return View(profile, DEVIATES, deviations.reason(rows), answers, "recorded")
    case = next((case for case in cases if _tried(case, profile)), None)
    if case is not None:
        return View(profile, APPLIES, "", _wanted(case, profile), f"case {case.id}")
    answer = shown_by.last_answer(VERSIONS[profile]) if shown_by else None
    return View(profile, APPLIES, "", (answer,) if answer else (), "recorded")


def _tried(case: Case, profile: str) -> bool:
    return all(requirements.load()[name].applies_to(profile) for name in case.requirements)


def _wanted(case: Case, profile: str) -> tuple[tuple[str, str], ...]:
    steps = [step for step in case.steps if isinstance(step, Send)]
    if not steps:
        return ()
    last = steps[-1]
    allowed = last.allow.of(profiles.load(profile)) if isinstance(last.allow, By) else last.allow
    return ((shown("".join(last.packets)), " or ".join(map(shown, allowed))),)


@dataclass(frozen=True, slots=True)
class Section:
    """One chapter as it is shown."""

    name: str
    title: str
    about: str
    entries: tuple[Entry, ...]


def sections(wanted: Mapping[str, Requirement]) -> tuple[Section, ...]:
    """Return the chapters that hold requirements of a selection, with these.

    Args:
        wanted: requirements by id.

    Raises:
        SuiteError: as `entry`.
    """
    return tuple(
        Section(chapter.name, chapter.title, chapter.about, entries)
        for chapter in requirements.chapters()
        if (entries := tuple(entry(each) for each in chapter.requirements if each.id in wanted))
    )
