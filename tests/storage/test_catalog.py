"""Containers rows that are wrong: the good ones are served, each bad one is named with its fault."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kvref import profiles
from kvref.errors import ConfigError
from kvref.semantics.mapping import Directory
from kvref.storage.sqlite import SQLiteStore

BAD = [
    ({"db_table": "nope"}, "there is no table test.nope"),
    ({"key_columns": "c9"}, "table t has no key column 'c9': its columns are k, v, f, b, r"),
    ({"value_columns": "v,C9"}, "table t has no value column 'C9'"),
    ({"value_columns": None}, "value_columns is NULL"),
    ({"value_columns": "r"}, "the value column r is of type REAL"),
    ({"key_columns": "b"}, "the key column b should be INTEGER, CHAR or VARCHAR"),
    ({"flags": "v"}, "the flags v in table t should be INTEGER"),
    ({"cas_column": "r"}, "the cas_column r in table t should be INTEGER"),
    ({"unique_idx_name_on_key": "nope"}, "'nope' is no unique index of table t (unique indexes: PRIMARY, on_v)"),
    ({"unique_idx_name_on_key": "plain"}, "'plain' is no unique index"),
    ({"unique_idx_name_on_key": "by_bytes"}, "'by_bytes' is no unique index"),
    ({"unique_idx_name_on_key": "expression"}, "'expression' is no unique index"),
    ({"value_columns": "v,v"}, "column v is mapped twice"),
    ({"value_columns": "k"}, "column k is mapped twice"),
    ({"cas_column": "f"}, "column f is mapped twice"),
    ({"unique_idx_name_on_key": "on_v"}, "index on_v is on v: it must be on the key column k only"),
]
GOOD = {
    "name": "x", "db_schema": "test", "db_table": "t", "key_columns": "k", "value_columns": "v", "flags": "f",
    "cas_column": "0", "expire_time_column": "0", "unique_idx_name_on_key": "primary",
}  # fmt: skip


def read(
    tmp_path: Path, rows: list[dict[str, str | None]], profile: str = "kvref", *sql: str
) -> tuple[Directory, list[str]]:
    store = SQLiteStore(tmp_path / "x.sqlite", profiles.load(profile))
    store.initialise()
    with sqlite3.connect(tmp_path / "x.sqlite") as other:
        # A table without the NOT NULLs of the plugin's, to put every fault into.
        other.execute("CREATE TABLE copy AS SELECT * FROM containers")
        other.execute("DROP TABLE containers")
        other.execute("ALTER TABLE copy RENAME TO containers")
        other.execute("CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), f INT, r REAL, b BLOB)")
        other.execute("CREATE UNIQUE INDEX on_v ON t (v)")
        other.execute("CREATE INDEX plain ON t (k)")
        # Other rows are equal to this one than to the column: a look-up could hit two.
        other.execute("CREATE UNIQUE INDEX by_bytes ON t (k COLLATE NOCASE)")
        other.execute("CREATE UNIQUE INDEX expression ON t (lower(k))")
        for row in rows:
            other.execute(f"INSERT INTO containers VALUES ({', '.join('?' * len(row))})", list(row.values()))
        for statement in sql:
            other.execute(statement)
    other.close()
    try:
        return store.read_directory(), store.problems
    finally:
        store.close()


@pytest.mark.parametrize(("change", "problem"), BAD)
def test_a_bad_row_is_named_and_the_good_ones_are_served(
    tmp_path: Path, change: dict[str, str | None], problem: str
) -> None:
    directory, problems = read(tmp_path, [GOOD | {"name": "AAA"} | change, GOOD | {"name": "default"} | change])
    assert directory.default.name == "aaa"
    assert len(problems) == 2
    assert problem in problems[1]
    assert problems[1].startswith("container 'AAA': ")


def test_no_usable_row(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"no usable row in containers:\n  container 'x': there is no table test\.nope"
    ):
        read(tmp_path, [GOOD | {"db_table": "nope"}], "kvref", "DELETE FROM containers WHERE name = 'aaa'")


def test_empty_containers(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no usable row in containers: it is empty"):
        read(tmp_path, [], "kvref", "DELETE FROM containers")


@pytest.mark.parametrize("column", ["flags", "cas_column", "expire_time_column"])
def test_null_for_a_feature(tmp_path: Path, column: str) -> None:
    _, problems = read(tmp_path, [GOOD | {column: None}], "mysql-8.0")
    assert problems == [
        f"container 'x': {column} has an invalid NULL value: write '0' for a feature that is not in use"
    ]


def test_null_for_a_feature_is_off_in_kvref(tmp_path: Path) -> None:
    directory, problems = read(tmp_path, [GOOD | {"flags": None, "name": "default"}])
    assert (directory.default.flags, problems) == (None, [])


@pytest.mark.parametrize(
    ("sql", "delimiter", "problem"),
    [
        ("UPDATE config_options SET value = ':' WHERE name = 'table_map_delimiter'", b":", None),
        ("UPDATE config_options SET value = '' WHERE name = 'table_map_delimiter'", b".", None),
        (
            "UPDATE config_options SET name = 'TABLE_MAP_DELIMITER' WHERE value = '.'",
            b".",
            "has no row 'table_map_delimiter'",
        ),
        ("UPDATE config_options SET value = NULL", b".", "is NULL: taken as missing"),
        (f"UPDATE config_options SET value = '{'x' * 40}' WHERE value = '.'", b"x" * 32, None),
    ],
)
def test_options(tmp_path: Path, sql: str, delimiter: bytes, problem: str | None) -> None:
    directory, problems = read(tmp_path, [], "kvref", sql)
    assert directory.delimiter == delimiter
    assert bool(problems) is bool(problem)
    assert problem is None or problem in problems[0]


def test_the_plugin_profiles_refuse_null_options(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="config_options is empty or holds a NULL"):
        read(tmp_path, [], "mysql-8.0", "UPDATE config_options SET value = NULL")


def test_a_table_named_with_its_schema_comes_first(tmp_path: Path) -> None:
    sql = (
        'CREATE TABLE "shop.t" (k VARCHAR(9) PRIMARY KEY, v TEXT)',
        "INSERT INTO containers VALUES ('default', 'shop', 't', 'k', 'v', '0', '0', '0', 'PRIMARY')",
    )
    directory, _ = read(tmp_path, [GOOD], "kvref", *sql)
    assert directory.default.source == "shop.t"
    assert directory.default.label == b"shop/t"


def test_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    evil = 't"; DROP TABLE demo_test; --'
    quoted = evil.replace('"', '""')
    sql = (
        f'CREATE TABLE "{quoted}" (k VARCHAR(9) PRIMARY KEY, "v""=1--" VARCHAR(9))',
        "DELETE FROM containers",
    )
    row = GOOD | {"db_table": evil, "value_columns": 'v"=1--', "flags": "0"}
    directory, problems = read(tmp_path, [], "kvref", *sql, insert_of(row))
    assert problems == []
    assert directory.default.source == evil


def insert_of(row: dict[str, str | None]) -> str:
    values = ", ".join("NULL" if v is None else "'" + v.replace("'", "''") + "'" for v in row.values())
    return f"INSERT INTO containers VALUES ({values})"
