"""The gates of the catalog: each requirement has a case, each case a requirement, each claim its evidence."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from kvref import profiles
from kvref.errors import SuiteError
from kvref.specification import deviations, requirements
from kvref.specification.requirements import Requirement
from kvref_conformance import corpus
from kvref_conformance.cases import all_cases
from kvref_conformance.spec import coverage
from kvref_conformance.spec.entry import VERSIONS, cases_of, recorded_versions
from kvref_testbed.mutants import MUTANTS

RECORDING = re.compile(r"(?<![\w-])(?:\w+:)?([a-z]+(?:-[a-z]+)*-\d{3})\b")
EVIDENCE = re.compile(r"^evidence = \[([^\]]*)\]", re.MULTILINE)
CITATION = re.compile(r"(?:\w+:)?[a-z]+(?:-[a-z]+)*-\d{3}")
ROOT = Path(__file__).parents[2]
SNAPSHOT = Path(__file__).with_name("coverage.txt")
CATALOGUE = tuple(requirements.load().values())
OBLIGATIONS = [each for each in CATALOGUE if each.level in {"MUST", "SHOULD"}]
# The texts that a QUIRK may contradict: the manual, articles, the protocol, worklogs, the plugin's own source and scripts.
TEXTS = re.compile(
    r"MySQL 8\.0 manual, \d+\.\d+(\.\d+)* |InnoDB team blog 2012-09-29|MySQL 5\.7\.3: |memcached protocol(-binary)?\.txt|WL#\d+: "
    r"|InnoDB memcached plug-in vs native memcached|innodb_memcached_config\.sql: |\w+(, \w+)* \([\w., ]+\)|innodb_config\.h: "
)


# Obligations whose evidence from a version is a conversation that was run and not kept, and why.
MEGABYTES = "two megabytes of data do not belong into a recording; each run of the suite holds it"
LIVE_ONLY = {
    "KV-LIMIT-006": MEGABYTES,
    "KV-LIMIT-013": MEGABYTES,
    "KV-BINSTORE-039": MEGABYTES,
    "KV-MS-022": MEGABYTES,
    "KV-MS-034": MEGABYTES,
}


def held(requirement: Requirement) -> bool:
    return bool(cases_of(requirement.id) or requirement.tests)


def test_every_obligation_is_tested_by_a_case_or_a_test_or_says_why_not() -> None:
    assert [each.id for each in OBLIGATIONS if not held(each) and not each.untestable] == []


def test_nothing_is_called_untestable_that_something_holds() -> None:
    assert [each.id for each in CATALOGUE if held(each) and each.untestable] == []


def test_every_case_names_requirements_of_the_catalogue() -> None:
    assert [case.id for case in all_cases() if not case.requirements] == []
    assert {name for case in all_cases() for name in case.requirements} <= requirements.load().keys()


def test_every_obligation_has_evidence_from_each_version_it_applies_to() -> None:
    missing = [
        f"{each.id} {version}"
        for each in OBLIGATIONS
        for profile, version in VERSIONS.items()
        if version and each.applies_to(profile) and version not in recorded_versions(each)
        if f"live:{version}" not in each.evidence or each.id not in LIVE_ONLY
    ]
    assert missing == []


def test_a_conversation_that_was_not_kept_is_cited_where_that_is_explained_and_nowhere_else() -> None:
    live = {each.id for each in CATALOGUE if any(name.startswith("live:") for name in each.evidence)}
    assert live == LIVE_ONLY.keys()


def test_a_quirk_has_evidence_from_each_version_it_was_seen_in() -> None:
    missing = [
        f"{each.id} {version}"
        for each in CATALOGUE
        for profile, version in VERSIONS.items()
        if each.level == "QUIRK" and profile.startswith("mysql") and each.applies_to(profile)
        if version not in recorded_versions(each)
    ]
    assert missing == []


def test_every_requirement_shows_a_recording() -> None:
    assert [each.id for each in CATALOGUE if not recorded_versions(each)] == []


def test_every_quirk_names_a_known_text() -> None:
    unknown = [f"{each.id}: {text}" for each in CATALOGUE for text in each.contradicts if not TEXTS.match(text)]
    assert unknown == []


def cited() -> list[str]:
    rows = [row for profile in profiles.names() for row in deviations.load(profile).rows.values()]
    names = {name for holder in (*CATALOGUE, *rows) for name in holder.evidence}
    return sorted(name for name in names if not name.startswith("live:"))


def test_every_recording_that_is_cited_exists() -> None:
    missing = []
    for name in cited():
        try:
            corpus.find(name)
        except SuiteError:
            missing.append(name)
    assert missing == []


def prose(path: Path) -> Iterator[str]:
    """Yield the comments and docstrings of a file that may cite a recording."""
    if not RECORDING.search(path.read_text()):
        return
    with path.open("rb") as file:
        yield from (each.string for each in tokenize.tokenize(file.readline) if each.type == tokenize.COMMENT)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            yield ast.get_docstring(node) or ""


def recorded() -> set[str]:
    return {name for group in corpus.SETS for name in corpus.load(group)}


def test_every_recording_that_the_text_of_a_program_cites_exists() -> None:
    names = recorded()
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("kvref", "conformance", "tests", "yardsticks")
        for path in (ROOT / folder).rglob("*.py")
        for text in prose(path)
        for name in RECORDING.findall(text)
        if name not in names
    }
    assert sorted(found) == []


def test_every_recording_that_a_file_of_data_has_as_evidence_exists() -> None:
    names = {f"{group}:{name}" for group in corpus.SETS for name in corpus.load(group)} | recorded()
    files = [each for folder in ("kvref", "conformance") for each in (ROOT / folder).rglob("*.toml")]
    lists = {path: EVIDENCE.findall(path.read_text(encoding="utf-8")) for path in files}
    assert any(lists.values())
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, found in lists.items()
        for name in re.findall(r'"([^"]+)"', "".join(found))
        if CITATION.fullmatch(name) and name not in names
    ]
    assert missing == []


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_is_named_exists() -> None:
    named = [name.partition("::") for each in CATALOGUE for name in each.tests]
    assert [f"{path}::{name}" for path, _, name in named if name not in functions(ROOT / path)] == []


def test_every_mutant_names_the_requirement_that_must_fail_it() -> None:
    assert len(MUTANTS) >= 60
    named = {each.requirement for each in MUTANTS.values()}
    assert named <= {each.id for each in CATALOGUE if each.applies_to("kvref")}


def test_the_coverage_is_the_one_in_the_repository() -> None:
    text = "\n".join(coverage.lines()) + "\n"
    assert SNAPSHOT.read_text() == text, "coverage changed: kvref spec --coverage > tests/spec/coverage.txt"
