"""The table from features to requirements is whole, and each predicate finds its feature and nothing else's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvref import profiles
from kvref.doctor import examine, features, predicates
from kvref.specification import requirements
from kvref.specification.deviations import defects

ROOT = Path(__file__).parents[2]
TABLE = features.load()
MAPPING = profiles.with_mappings()
WITHOUT_REQUIREMENT = {"unseen"}  # it describes no property of the row


def names(scope: str) -> set[str]:
    return {name for each, name in TABLE if each == scope}


def test_every_feature_has_a_predicate_and_every_predicate_a_row() -> None:
    assert names("mapping") == set(predicates.PREDICATES)
    assert names("configuration") == set(examine.PREDICATES)


def rules() -> Iterator[str]:
    """Yield a pattern for each rule that a RowError is raised with."""
    for path in ("storage/config/containers.py", "storage/mysql/schema.py", "doctor/dump/__init__.py"):
        tree = ast.parse((ROOT / "kvref" / path).read_text())
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "RowError":
                continue
            match call.args[1]:
                case ast.Constant(value=str() as rule):
                    yield re.escape(rule)
                case ast.JoinedStr(values=parts):
                    yield "".join(part.value if isinstance(part, ast.Constant) else ".+" for part in parts)
                case ast.Name(id="rule"):
                    yield "view|other-engine"
                case ast.Attribute(attr="rule"):
                    pass  # what another line has raised is raised again
                case other:
                    pytest.fail(f"{path}: {ast.unparse(other)} is not a rule that can be read")


def test_every_rule_of_a_refusal_has_a_row_and_every_row_a_rule() -> None:
    raised = list(rules())
    assert len(raised) > 15
    for name in names("refusal"):
        assert any(re.fullmatch(rule, name) for rule in raised), name
    for rule in raised:
        assert any(re.fullmatch(rule, name) for name in names("refusal") | WITHOUT_REQUIREMENT), rule


@pytest.mark.parametrize("feature", TABLE.values(), ids=lambda each: f"{each.scope}.{each.name}")
def test_what_is_named_is_there_and_counts_somewhere(feature: features.Feature) -> None:
    assert feature.requirements
    assert len(set(feature.requirements)) == len(feature.requirements)
    for identifier in feature.requirements:
        requirement = requirements.load()[identifier]
        assert any(requirement.applies_to(profile) for profile in MAPPING)


@pytest.mark.parametrize("profile", MAPPING)
def test_what_is_shown_applies_to_the_profile(profile: str) -> None:
    for feature in TABLE.values():
        found = features.finding(feature, ("x",), profile)
        assert all(each.requirement.applies_to(profile) for each in found.citations)
        assert all(
            each.requirement.profiles == ("kvref",) or "kvref" in each.requirement.profiles for each in found.instead
        )
        assert not any(each.requirement.applies_to(profile) for each in found.instead)
        shown = {each.requirement.id for each in (*found.citations, *found.instead)}
        assert shown <= set(feature.requirements)


def test_every_crash_that_a_mapping_decides_is_reported() -> None:
    of_commands = {"KV-RANGE-020", "KV-MGET-024", "KV-MGET-025", "KV-MAP-042"}  # any mapping; what is sent decides
    of_options = {"KV-BINLOG-010", "KV-BINLOG-011"}  # the server's binary log decides
    reported = {identifier for feature in TABLE.values() for identifier in feature.requirements}
    crashes = {row.requirement for row in defects.load() if row.kind == defects.CRASH}
    assert crashes - reported <= of_commands | of_options, sorted(crashes - reported)
