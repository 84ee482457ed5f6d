"""`kvref implement`: the kit is complete, its schema is the one that the judge expects, and nothing is replaced."""

from __future__ import annotations

import itertools
import json
import sqlite3
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kvref import collations
from kvref.cli import main
from kvref.specification import conformance_levels
from kvref.specification.starter_kit import starter_files
from kvref_conformance.sql import connect, layout


def implement(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["implement", *arguments], catch_exceptions=False)


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    assert implement(str(tmp_path / "kit"), "--profile", "mysql-8.0").exit_code == 0
    return tmp_path / "kit"


def test_the_schema_is_the_one_that_the_judge_expects(kit: Path) -> None:
    path = kit / "data.db"
    store = sqlite3.connect(path)
    store.executescript((kit / "schema/sqlite.sql").read_text() + (kit / "schema/cache-sqlite.sql").read_text())
    assert [row[0] for row in store.execute("SELECT name FROM containers ORDER BY name")] == ["aaa", "cache"]
    store.close()
    database = connect(f"sqlite:///{path}", "8.0.33")
    assert (layout.problems(database), layout.complaints(database)) == ([], [])
    database.close()


def test_the_workflow_is_yaml_with_levels_of_conformance(kit: Path) -> None:
    read = yaml.safe_load((kit / "ci.yml").read_text())
    assert set(read["jobs"]["judge"]["strategy"]["matrix"]["level"]) <= set(conformance_levels.NAMES)


def test_the_vectors_are_ordered_as_the_collations_are() -> None:
    read = json.loads(starter_files("kvref")["collations.json"])["collations"]
    assert ["b", "B"] in read["utf8mb4_0900_ai_ci"]
    assert ["b"] in read["utf8mb4_bin"]
    for name, groups in read.items():
        compare = collations.order(collations.COLLATIONS[name]).compare
        firsts = [group[0] for group in groups]
        assert all(compare(one, other) < 0 for one, other in itertools.pairwise(firsts))
        assert all(compare(group[0], each) == 0 for group in groups for each in group)


def test_no_file_is_replaced(kit: Path) -> None:
    refused = implement(str(kit))
    assert refused.exit_code != 0
    assert "already has" in refused.output
