"""The catalogue of requirements: strict to load. What each must bring with it: `tests/spec/test_gates.py`."""

from __future__ import annotations

import pytest

from kvref.errors import SuiteError
from kvref.specification import requirements
from kvref.specification.requirements import Requirement
from kvref_conformance.cases import all_cases, by_chapter

GOOD = {
    "title": '"get"',
    "statement": '"`get` answers."',
    "level": '"MUST"',
    "profiles": '["*"]',
    "sources": '["memcached protocol.txt"]',
    "evidence": '["core:verb-002"]',
}


HEAD = 'title = "Storage"\nabout = "What is stored."\n'


def toml(identifier: str = "KV-CORE-001", **changes: str | None) -> str:
    fields = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return f"{HEAD}[{identifier}]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())


def only(text: str) -> Requirement:
    (chapter,) = requirements.parse({"storage": text})
    (requirement,) = chapter.requirements
    return requirement


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (toml("KV-core-1"), "looks like"),
        (toml(title=None), "title"),
        (toml(colour='"red"'), "colour"),
        (toml(statement='""'), "statement"),
        (toml(sources="[]"), "sources"),
        (toml(evidence="[]"), "evidence"),
        (toml(evidence='["verb-002"]'), "names no recording"),
        (toml(level='"SHALL"'), "SHALL"),
        (toml(profiles='["oracle"]'), "oracle"),
        (toml(profiles='"*"'), "profiles"),
        (toml(level='"QUIRK"'), "contradicts"),
        (toml(contradicts='["a text"]'), "contradicts"),
        (toml(untestable='""'), "untestable"),
        (toml(tests="[]"), "tests"),
        (toml() + toml().removeprefix(HEAD), "storage.toml"),
        (toml().removeprefix(HEAD), "begins with"),
        ("[KV-CORE-001", "storage.toml"),
    ],
)
def test_a_bad_requirement_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SuiteError, match=complaint):
        requirements.parse({"storage": text})


def test_an_id_in_two_files_is_refused() -> None:
    with pytest.raises(SuiteError, match=r"storage.toml and bind.toml"):
        requirements.parse({"storage": toml(), "bind": toml()})


def test_a_requirement_applies_to_the_profiles_it_names() -> None:
    row = only(toml(profiles='["kvref", "mysql-8.0"]'))
    assert [row.applies_to(name) for name in ("kvref", "mysql-8.0", "mysql-5.6", "memcached")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_chapters_hold_every_requirement_once() -> None:
    listed = [requirement.id for chapter in requirements.chapters() for requirement in chapter.requirements]
    assert listed == list(requirements.load())
    assert [chapter.name for chapter in requirements.chapters()] == list(requirements.CHAPTERS)
    assert len(listed) >= 300


def test_every_chapter_has_cases_and_no_case_id_is_used_twice() -> None:
    ids = [case.id for case in all_cases()]
    assert len(ids) == len(set(ids))
    assert tuple(by_chapter()) == requirements.CHAPTERS
    assert [chapter for chapter, cases in by_chapter().items() if not cases] == []
