"""Verdicts by level of conformance, their badges, and the selection of a level."""

from __future__ import annotations

from argparse import Namespace

import pytest

from kvref.specification import conformance_levels, requirements
from kvref_conformance.case import Case
from kvref_conformance.cases import all_cases
from kvref_conformance.judging.verdict import DEVIATES, FAILS, HOLDS, NOT_RUN, QUIRK, UNSUPPORTED, Tally, Verdict
from kvref_conformance.reports import levels
from kvref_conformance.running import selection


def level_of(case: Case) -> str:
    return conformance_levels.of_requirements(case.requirements)


def of_level(name: str) -> list[Case]:
    return [case for case in all_cases() if level_of(case) == name]


def applicable(*names: str) -> list[Case]:
    catalogue = requirements.load()
    return [
        case
        for case in all_cases()
        if level_of(case) in names and all(catalogue[each].applies_to("kvref") for each in case.requirements)
    ]


def tally(cases: list[Case], word: str = HOLDS, **others: str) -> Tally:
    return Tally([Verdict(case.id, "x", case.requirements, others.get(case.id, word)) for case in cases])


def verdict(tally: Tally, level: str) -> levels.LevelVerdict:
    return next(each for each in levels.verdicts(tally, "kvref") if each.level == level)


def test_a_level_conforms_if_all_of_it_and_of_what_it_builds_on_holds() -> None:
    found = levels.verdicts(tally(applicable("core", "mapping")), "kvref")
    assert {each.level: each.verdict for each in found} == {
        "core": "conforms",
        "mapping": "conforms",
        **dict.fromkeys(conformance_levels.NAMES[2:], "not judged"),
    }
    mapping = len(applicable("mapping"))
    assert levels.lines(tally(applicable("core", "mapping")), "kvref")[1] == (
        f"conformance level mapping: conforms, {mapping} passed, 0 failed, {len(of_level('mapping')) - mapping} not applicable"
    )


@pytest.mark.parametrize(("word", "wanted"), [(DEVIATES, "conforms"), (QUIRK, "conforms"), (FAILS, "does not conform")])
def test_a_verdict_counts_in_its_level_and_in_those_that_build_on_it(word: str, wanted: str) -> None:
    cases = applicable("core", "mapping", "touch-meta")
    first = applicable("mapping")[0].id
    reported = tally(cases, **{first: word})
    assert [verdict(reported, name).verdict for name in ("core", "mapping", "touch-meta")] == [
        "conforms",
        wanted,
        "conforms",
    ]
    failed = tally(cases, **{applicable("core")[0].id: word})
    assert [verdict(failed, name).verdict for name in ("core", "mapping", "touch-meta")] == [wanted] * 3


def test_a_level_is_incomplete_without_a_case_or_without_what_it_builds_on() -> None:
    cases = applicable("core", "mapping")
    assert verdict(tally(cases[:-1]), "mapping").verdict == "incomplete"
    assert verdict(tally(applicable("mapping")), "mapping").verdict == "incomplete"
    first = applicable("mapping")[0].id
    assert verdict(tally(cases, **{first: NOT_RUN}), "mapping").verdict == "incomplete"


def test_a_feature_that_the_endpoint_lacks_is_missed_only_where_it_defines_the_level() -> None:
    levels_of = conformance_levels.load()
    catalogue = requirements.load()

    def without(chapter: str) -> str:
        cases = applicable("core", "mapping")
        lacking = {case.id: UNSUPPORTED for case in cases if catalogue[case.requirements[0]].chapter == chapter}
        assert lacking
        return verdict(tally(cases, **lacking), "mapping").verdict

    assert "ranges" not in levels_of["mapping"].defined_by
    assert without("ranges") == "conforms"
    assert "bind" in levels_of["mapping"].defined_by
    assert without("bind") == "incomplete"


def test_a_level_selects_its_cases_and_those_of_the_levels_that_it_builds_on() -> None:
    options = Namespace(conformance_level=["columns"], chapter=[], only=[], last_broken=False, report=None)
    wanted = selection.wanted(options)
    assert {level_of(case) for case in all_cases() if wanted(case)} == {"core", "mapping", "columns"}
