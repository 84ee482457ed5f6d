"""Levels of conformance: every chapter is in one, in an order in which they can be built."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from kvref.errors import SuiteError
from kvref.specification import conformance_levels, requirements
from kvref.specification.conformance_levels import NAMES
from kvref_conformance.cases import all_cases
from kvref_conformance.steps import Send

TEXT = files("kvref.specification").joinpath("conformance_levels.toml").read_text(encoding="utf-8")


def test_every_chapter_of_requirements_is_in_one_level() -> None:
    chapters = [chapter for level in conformance_levels.load().values() for chapter in level.chapters]
    assert sorted(chapters) == sorted(requirements.CHAPTERS)


def test_every_level_has_cases() -> None:
    assert {conformance_levels.of_requirements(case.requirements) for case in all_cases()} == set(NAMES)


def test_a_level_includes_those_that_it_builds_on() -> None:
    assert conformance_levels.closure("core") == ("core",)
    assert conformance_levels.closure("policies") == ("core", "mapping", "columns", "configuration", "policies")
    assert conformance_levels.closure("touch-meta") == ("core", "touch-meta")


def test_a_case_belongs_to_the_last_level_of_its_requirements() -> None:
    assert conformance_levels.of_requirements(["KV-CORE-001", "KV-BIND-001"]) == "mapping"
    assert conformance_levels.of_requirements(["KV-BIND-001", "KV-CORE-001"]) == "mapping"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"retrieval",', "", "retrieval must be in exactly one level"),
        ('"retrieval",', '"retrieval", "bind",', "bind must be in exactly one level"),
        ('"retrieval",', '"retrieval", "no_such",', "no_such must be in exactly one level"),
        ('builds_on = ["core"]', 'builds_on = ["binary"]', "mapping builds on binary"),
        ("[binary]", "[binaries]", "the levels must be core"),
        (
            'defined_by = ["columns"]',
            'defined_by = ["mapping"]',
            "columns: `defined_by` must name chapters of the level",
        ),
        ('defined_by = ["columns"]', "defined_by = []", "columns: `defined_by` must name chapters of the level"),
    ],
)
def test_a_malformed_list_is_rejected(old: str, new: str, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        conformance_levels.parse(TEXT.replace(old, new, 1))


def test_a_case_of_core_needs_neither_mapped_words_nor_a_collation_of_its_own() -> None:
    core = [case for case in all_cases() if conformance_levels.of_requirements(case.requirements) == "core"]
    words = [word for case in core for step in case.steps if isinstance(step, Send) for word in step.packets]
    assert not [word for word in words if re.search(r"(^|[ \n])@@\{", word)]
    assert not [case.id for case in core if case.shape is not None and "COLLATE" in case.shape.columns]
