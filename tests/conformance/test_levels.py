"""Verdicts by level of conformance, their badges, and the selection of a level."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from reports import HEADER

from kvref.specification import conformance_levels, requirements
from kvref_conformance import selection
from kvref_conformance.case import Case
from kvref_conformance.cases import all_cases
from kvref_conformance.report import html, jsonl, levels
from kvref_conformance.verdict import DEVIATES, FAILS, HOLDS, NOT_RUN, QUIRK, Tally, Verdict


def level_of(case: Case) -> str:
    return conformance_levels.of_requirements(case.requirements)


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
        f"conformance level mapping: conforms, {mapping} of {mapping} cases"
    )


@pytest.mark.parametrize(("word", "wanted"), [(DEVIATES, "conforms"), (QUIRK, "conforms"), (FAILS, "does not conform")])
def test_a_verdict_counts_in_its_level_and_in_those_that_build_on_it(word: str, wanted: str) -> None:
    cases = applicable("core", "mapping", "touch-meta")
    first = applicable("mapping")[0].id
    told = tally(cases, **{first: word})
    assert [verdict(told, name).verdict for name in ("core", "mapping", "touch-meta")] == [
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


def test_a_case_for_another_database_does_not_count() -> None:
    cases = applicable(*conformance_levels.NAMES)
    behind = {case.id: NOT_RUN for case in cases if case.engine}
    found = verdict(tally(cases, **behind), "batches")
    own = [case for case in cases if level_of(case) == "batches"]
    assert (found.verdict, found.applicable) == ("conforms", len([case for case in own if not case.engine]))


def test_a_level_without_cases_for_the_profile_has_no_verdict() -> None:
    names = {each.level for each in levels.verdicts(Tally(), "memcached")}
    assert "core" in names
    assert "policies" not in names


def test_the_badges_say_the_verdict(tmp_path: Path) -> None:
    found = levels.verdicts(tally(applicable("core")), "kvref")
    levels.write_badges(tmp_path / "badges", found, "kvref")
    assert {path.stem for path in (tmp_path / "badges").glob("*.svg")} == set(conformance_levels.NAMES)
    core = len(applicable("core"))
    message = f"conforms, {core} of {core} cases"
    assert json.loads((tmp_path / "badges" / "core.json").read_text()) == {
        "schemaVersion": 1,
        "label": "kvref core",
        "message": message,
        "color": "brightgreen",
    }
    drawn = ET.parse(tmp_path / "badges" / "core.svg").getroot()
    assert [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")] == ["kvref core", message]


def test_the_reports_have_the_verdicts(tmp_path: Path) -> None:
    told = tally(applicable("core"))
    jsonl.write(tmp_path / "report.jsonl", HEADER, told)
    footer = json.loads((tmp_path / "report.jsonl").read_text().splitlines()[-1])
    core = len(applicable("core"))
    assert footer["conformance_levels"][0] == {
        "level": "core",
        "verdict": "conforms",
        "tried": core,
        "applicable": core,
        "totals": {"holds": core},
    }
    html.write(tmp_path / "report.html", HEADER, told)
    page = (tmp_path / "report.html").read_text()
    assert f'<tr><th scope="row">core</th><td>conforms</td><td>{core} of {core}</td></tr>' in page


def test_a_level_selects_its_cases_and_those_of_the_levels_that_it_builds_on() -> None:
    options = Namespace(conformance_level=["columns"], chapter=[], only=[], last_broken=False, report=None)
    wanted = selection.wanted(options)
    assert {level_of(case) for case in all_cases() if wanted(case)} == {"core", "mapping", "columns"}
