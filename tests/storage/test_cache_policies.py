"""The row of `cache_policies` that counts, and its cells, in a SQLite file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvref import profiles
from kvref.engine.cache.memory import Policies, Policy
from kvref.storage.sqlite.store import SQLiteStore

ENUM = "\"ENUM('innodb_only','cache_only','caching','disabled')\""
NAMES = ("get_policy", "set_policy", "delete_policy", "flush_policy")
OFF, TABLE = Policy.OFF, Policy.TABLE


def read(folder: Path, profile: str, *statements: str) -> tuple[Policies, list[str]]:
    store = SQLiteStore(folder / f"{profile}.sqlite", profiles.load(profile))
    store.initialise()
    for statement in statements:
        store.run(statement, [])
    store.commit()
    try:
        return store.read_directory().policies, store.problems
    finally:
        store.close()


def table(columns: str) -> tuple[str, str]:
    return "DROP TABLE cache_policies", f"CREATE TABLE cache_policies ({columns})"


def columns(kind: str, *names: str) -> str:
    return ", ".join(["policy_name VARCHAR(40) PRIMARY KEY", *(f"{name} {kind}" for name in names or NAMES)])


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_the_first_row_counts_whatever_its_name(tmp_path: Path, profile: str) -> None:
    row = "INSERT INTO cache_policies VALUES ('{}', 'disabled', 'cache_only', 'caching', 'innodb_only')"
    found, problems = read(tmp_path, profile, row.format("a_first"), row.format("z_last"))  # [tx:policy-032]
    assert found == Policies(OFF, Policy.CACHE, Policy.BOTH, TABLE)
    assert problems == []


def test_nothing_to_read_is_the_table_alone(tmp_path: Path) -> None:
    for number, statement in enumerate(("DELETE FROM cache_policies", "DROP TABLE cache_policies")):
        folder = tmp_path / str(number)
        folder.mkdir()
        found, (problem,) = read(folder, "kvref", statement)
        assert found == Policies()
        assert "cache_policies is missing or empty" in problem


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
@pytest.mark.parametrize("word", ["'nonsense'", "'DISABLED'", "NULL"])
def test_an_unknown_word_is_the_table_alone_and_reported(tmp_path: Path, profile: str, word: str) -> None:
    cells = f"'p', {word}, 'disabled', 'disabled', 'disabled'"
    found, problems = read(
        tmp_path, profile, *table(columns(ENUM)), f"INSERT INTO cache_policies VALUES ({cells})"
    )  # [more:policy-138]
    assert found == Policies(TABLE, OFF, OFF, OFF)
    assert len(problems) == 1
    assert problems[0].startswith("cache_policies: get_policy is ")


def test_the_plugin_reads_numbers_of_members_by_place(tmp_path: Path) -> None:
    other = "\"ENUM('disabled','innodb_only','cache_only','caching')\""
    for number, (kind, names, cells, wanted) in enumerate(
        (
            ("VARCHAR(12)", NAMES, "'disabled'" + ", 'disabled'" * 3, Policies()),  # [more:policy-151]
            (ENUM, ("a", "b", "c", "d"), "'disabled', 'innodb_only', 'innodb_only', 'innodb_only'", Policies(OFF)),
            (other, NAMES, "'disabled', 'caching', 'disabled', 'disabled'", Policies(set=OFF)),  # [more:policy-141]
            (ENUM, NAMES[:3], "'disabled', 'disabled', 'disabled'", Policies(OFF, OFF, OFF)),  # [more:policy-142]
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        row = f"INSERT INTO cache_policies VALUES ('p', {cells})"
        assert read(folder, "mysql-8.0", *table(columns(kind, *names)), row)[0] == wanted


def test_kvref_reads_words_by_name(tmp_path: Path) -> None:
    names = ("set_policy", "get_policy", "flush_policy")
    found, problems = read(
        tmp_path,
        "kvref",
        *table(columns("TEXT", *names)),
        "INSERT INTO cache_policies VALUES ('p', 'caching', 'disabled', 'cache_only')",
    )
    assert found == Policies(OFF, Policy.BOTH, TABLE, Policy.CACHE)
    assert [problem.split(":")[1] for problem in problems] == [" has no column for delete"]
