"""Containers rows that are wrong: the good ones are served, each bad one is named with its fault."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kvref import collations, profiles
from kvref.engine.mapping import Directory
from kvref.errors import ConfigError
from kvref.storage.sqlite.store import SQLiteStore

BAD = [
    ({"db_table": "nope"}, "there is no table test.nope"),
    ({"key_columns": "c9"}, "table t has no key column 'c9': its columns are k, v, f, b, x, r, u"),
    ({"value_columns": "v,C9"}, "table t has no value column 'C9'"),
    ({"value_columns": None}, "value_columns is NULL"),
    ({"db_table": "seen"}, "test.seen is a view: only tables can be mapped"),
    ({"value_columns": "r"}, "the value column r is of type REAL: it should be INTEGER, CHAR, VARCHAR, TEXT or BLOB"),
    ({"value_columns": "u"}, "the value column u has no declared type: it should be INTEGER, CHAR, VARCHAR, TEXT or"),
    ({"key_columns": "u"}, "the key column u has no declared type: it should be INTEGER, CHAR or VARCHAR"),
    ({"key_columns": "r"}, "the key column r is of type REAL: it should be INTEGER, CHAR or VARCHAR"),
    ({"key_columns": "b"}, "the key column b should be INTEGER, CHAR or VARCHAR"),
    ({"key_columns": "x"}, "the key column x should be INTEGER, CHAR or VARCHAR"),
    ({"flags": "v"}, "the flags v in table t should be INTEGER"),
    ({"cas_column": "r"}, "the cas_column r in table t should be INTEGER"),
    ({"unique_idx_name_on_key": "nope"}, "'nope' is not a unique index of table t (unique indexes: PRIMARY, on_v)"),
    ({"unique_idx_name_on_key": "plain"}, "'plain' is not a unique index"),
    ({"unique_idx_name_on_key": "by_bytes"}, "'by_bytes' is not a unique index"),
    ({"unique_idx_name_on_key": "expression"}, "'expression' is not a unique index"),
    ({"value_columns": "v,v"}, "column v is mapped twice"),
    ({"value_columns": "k"}, "the key column k cannot be a value column too"),
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
        collations.register(other)
        # A table without the NOT NULLs of the plugin's, to put every fault into.
        other.execute("CREATE TABLE copy AS SELECT * FROM containers")
        other.execute("DROP TABLE containers")
        other.execute("ALTER TABLE copy RENAME TO containers")
        other.execute("CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), f INT, r REAL, b BLOB, x TEXT, u)")
        other.execute("CREATE VIEW seen AS SELECT * FROM t")
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


@pytest.mark.parametrize(
    ("profile", "separator"), [("mysql-5.6", b"\xa7"), ("mysql-8.0", b"\xc2\xa7"), ("kvref", b"\xc2\xa7")]
)
def test_an_option_is_read_in_its_columns_character_set(tmp_path: Path, profile: str, separator: bytes) -> None:
    directory, _ = read(tmp_path, [], profile, "UPDATE config_options SET value = '§'")
    assert (directory.separator, directory.delimiter) == (separator, separator)


def test_options_may_be_a_view(tmp_path: Path) -> None:
    view = ["ALTER TABLE config_options RENAME TO o", "CREATE VIEW config_options AS SELECT * FROM o"]
    assert read(tmp_path, [], "kvref", *view)[0].separator == b"|"


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
    with pytest.raises(ConfigError, match="config_options is missing, empty or holds a NULL"):
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


@pytest.mark.parametrize(
    ("options", "used"),
    [
        (("n", "n", "0"), ("n", None, None)), (("0", "n", "n"), (None, "n", None)), (("n", "0", "n"), ("n", None, None)),
        (("v", "k", "n"), (None, None, "n")), (("v", "v", "v"), (None, None, None)),
    ],
)  # fmt: skip
def test_a_column_serves_its_first_use_in_the_plugin(
    tmp_path: Path, options: tuple[str, str, str], used: tuple[str | None, ...]
) -> None:
    names = dict(zip(("flags", "cas_column", "expire_time_column"), options, strict=True))
    sql = "CREATE TABLE o (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), n BIGINT)"
    row = GOOD | {"name": "default", "db_table": "o"} | names
    directory, problems = read(tmp_path, [], "mysql-8.0", sql, insert_of(row))  # [flag-073] [flag-074] [cont-027]
    found = (directory.default.flags, directory.default.cas, directory.default.expiry)
    assert (tuple(column and column.name for column in found), problems) == (used, [])


# Declared as; the range that a cas number exceeds; None where the type is not an integer at all.
NARROW = {
    "TINYINT": "-128 to 127", "TINYINT UNSIGNED NOT NULL": "0 to 255", "BOOL": "-128 to 127",
    "SMALLINT NOT NULL DEFAULT 7": "-32768 to 32767", "SMALLINT UNSIGNED": "0 to 65535",
    "MEDIUMINT": "-8388608 to 8388607", "MEDIUMINT UNSIGNED": "0 to 16777215",
    "INT": "-2147483648 to 2147483647", "INT UNSIGNED": "0 to 4294967295", "YEAR": "1901 to 2155",
    "DECIMAL(20)": None, "FLOAT": None, "DOUBLE NOT NULL": None, "VARCHAR(20) NOT NULL DEFAULT 'x'": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize("declared", NARROW)
def test_a_cas_column_that_is_no_integer_of_64_bits_is_refused_with_what_widens_it(
    tmp_path: Path, declared: str
) -> None:
    spread = NARROW[declared]
    table = f"CREATE TABLE o (k VARCHAR(9) PRIMARY KEY, v TEXT, c {declared})", "INSERT INTO o VALUES ('k', 'v', 7)"
    row = insert_of(GOOD | {"name": "default", "db_table": "o", "flags": "0", "cas_column": "c"})
    (tmp_path / "before").mkdir()
    ((problem),) = read(tmp_path / "before", [], "kvref", *table, row)[1]
    start, _, alter = problem.partition(": ALTER TABLE")
    assert start == "container 'default': the cas_column c in table o " + (
        "should be INTEGER"
        if spread is None
        else f"has numbers from {spread}, so that a number would recur and an outdated cas would overwrite"
    )
    (tmp_path / "after").mkdir()
    statements = [each.strip() for each in f"ALTER TABLE{alter}".split(";")]
    directory, problems = read(tmp_path / "after", [], "kvref", *table, *statements, row)
    cas = directory.default.cas
    assert (problems, cas and cas.name) == ([], "c")
    assert cas is not None
    assert cas.nullable is ("NOT NULL" not in declared)
    with closing(sqlite3.connect(tmp_path / "after" / "x.sqlite")) as other:
        assert other.execute("SELECT k, v, c FROM o").fetchall() == [("k", "v", 7)]


@pytest.mark.parametrize("declared", ["BIGINT", "BIGINT UNSIGNED", "INTEGER", "INTEGER NOT NULL"])
def test_a_cas_column_of_64_bits_is_mapped(tmp_path: Path, declared: str) -> None:
    sql = f"CREATE TABLE o (k VARCHAR(9) PRIMARY KEY, v TEXT, c {declared})"
    row = insert_of(GOOD | {"name": "o", "db_table": "o", "flags": "0", "cas_column": "c"})
    assert read(tmp_path, [], "kvref", sql, row)[1] == []


def test_the_plugin_profiles_map_a_narrow_cas_column(tmp_path: Path) -> None:  # [meta-005] [flag-060]
    sql = "CREATE TABLE o (k VARCHAR(9) PRIMARY KEY, v TEXT, c TINYINT)"
    row = insert_of(GOOD | {"name": "o", "db_table": "o", "flags": "0", "cas_column": "c"})
    assert read(tmp_path, [], "mysql-8.0", sql, row)[1] == []


def test_virtual_columns_are_refused_by_the_plugin_only(tmp_path: Path) -> None:  # [type-172]
    sql = "CREATE TABLE o (k VARCHAR(9) PRIMARY KEY, v TEXT, g TEXT AS (v || '!') VIRTUAL)"
    row = GOOD | {"name": "o", "db_table": "o", "flags": "0"}
    for profile, problems in (
        ("mysql-8.0", ["container 'o': table o contains virtual columns: g: make them STORED"]),
        ("kvref", []),
    ):
        (tmp_path / profile).mkdir()
        assert read(tmp_path / profile, [], profile, sql, insert_of(row))[1] == problems


def test_bytes_among_several_value_columns_are_refused_by_the_plugin_only(tmp_path: Path) -> None:
    sql = "CREATE TABLE o (k VARCHAR(9) PRIMARY KEY, v VARBINARY(9), w BLOB, x DATETIME)"
    fault = "container 'o': the value column v in table o should be INTEGER, CHAR or VARCHAR"
    for profile, values, problems in (
        ("mysql-8.0", "v,w", [fault]), ("mysql-8.0", "v", []), ("mysql-8.0", "w,w", []), ("kvref", "v,w", []),
    ):  # fmt: skip
        folder = tmp_path / f"{profile}{values}"
        folder.mkdir()
        row = GOOD | {"name": "o", "db_table": "o", "value_columns": values, "flags": "0"}
        assert read(folder, [], profile, sql, insert_of(row))[1] == problems, (profile, values)


def test_an_unknown_collation_is_named(tmp_path: Path) -> None:
    def alien(one: str, other: str) -> int:
        return (one > other) - (one < other)

    read(tmp_path, [])
    with closing(sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)) as other:
        collations.register(other)
        other.create_collation("utf16_bin", alien)
        other.execute("CREATE TABLE o (k VARCHAR(9) COLLATE utf16_bin PRIMARY KEY, v TEXT)")
        other.execute(insert_of(GOOD | {"name": "o", "db_table": "o", "flags": "0"}))
    with closing(SQLiteStore(tmp_path / "x.sqlite", profiles.load("kvref"))) as store:
        store.read_directory()
        fault = "no such collation sequence: utf16_bin (names of collations: see kvref.collations)"
        assert store.problems[0].startswith("container 'o': ")
        assert fault in store.problems[0]


def test_a_virtual_table_is_named_with_its_container(tmp_path: Path) -> None:
    virtual = "CREATE VIRTUAL TABLE words USING fts5(k, v)"
    _, problems = read(tmp_path, [GOOD, GOOD | {"name": "y", "db_table": "words"}], "kvref", virtual)
    assert problems == ["container 'y': table words is a virtual table, which cannot be mapped: map an ordinary table"]


def test_an_index_may_carry_its_tables_name_in_front(tmp_path: Path) -> None:
    sql = (
        "CREATE TABLE o (id INT PRIMARY KEY, k VARCHAR(9) COLLATE utf8mb4_bin NOT NULL, v TEXT)",
        'CREATE UNIQUE INDEX "o.by_key" ON o (k)',
    )
    row = GOOD | {"name": "default", "db_table": "o", "flags": "0", "unique_idx_name_on_key": "by_key"}
    directory, problems = read(tmp_path, [], "kvref", *sql, insert_of(row))
    assert (directory.default.source, problems) == ("o", [])


def insert_of(row: dict[str, str | None]) -> str:
    values = ", ".join("NULL" if v is None else "'" + v.replace("'", "''") + "'" for v in row.values())
    return f"INSERT INTO containers VALUES ({values})"


FILES = [
    ("t", True, True, True), ("t@002dx", True, True, False), ("t@00201", True, True, False), ("t@002Dx", False, False, False),
    ("t-x", False, False, True), ("t 1", False, False, True), ("@0074", True, False, False), ("t@00e9", True, False, False),
    ("@65e5", True, True, False), ("日", False, False, True), ("t@", False, False, False), ("t@002ddx", False, False, False),
    ("t#P#p0", True, False, False), ("t#p#", True, False, False), ("t#P", False, False, False), ("t#SP#s", False, False, False),
    ("a/test/t", True, True, False), (r"a/test\t", True, True, False), ("test//t", False, False, False), ("t/", False, False, False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "in_8_0", "in_5_6", "in_kvref"), FILES)
def test_tables_are_named_as_files_by_the_plugin(
    tmp_path: Path, name: str, in_8_0: bool, in_5_6: bool, in_kvref: bool
) -> None:
    # [cont-033, cont-034, cont-037, cont-038, cont-039, cont-041, names-001, path-001, path-002]
    tables = [f'CREATE TABLE "{table}" (k VARCHAR(9) PRIMARY KEY, v TEXT)' for table in ("t-x", "t 1", "té", "日")]
    row = GOOD | {"db_table": name, "flags": "0"}
    for profile, usable in (("mysql-8.0", in_8_0), ("mysql-5.6", in_5_6), ("kvref", in_kvref)):
        folder = tmp_path / profile
        folder.mkdir()
        _, problems = read(folder, [row], profile, *tables)
        assert problems == (
            [] if usable else [f"container 'x': there is no table test.{name}: create it or correct the row"]
        ), profile


def test_a_schema_is_named_as_a_file_too(tmp_path: Path) -> None:
    sql = ('CREATE TABLE "d-b.t" (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))',)
    row = GOOD | {"name": "default", "db_schema": "d@002db", "flags": "0"}
    directory, _ = read(tmp_path, [row], "mysql-8.0", *sql)
    assert (directory.default.source, directory.default.label) == ("d-b.t", b"d@002db/t")


@pytest.mark.parametrize("statement", ["DROP TABLE config_options", "DELETE FROM config_options", "DROP TABLE cache_policies", "DELETE FROM cache_policies"])  # fmt: skip
def test_configuration_tables_that_are_missing_or_empty(tmp_path: Path, statement: str) -> None:
    for profile in ("mysql-8.0", "mysql-5.6"):
        folder = tmp_path / profile
        folder.mkdir()
        with pytest.raises(ConfigError, match="missing"):  # [delim-027, cont-223]
            read(folder, [GOOD], profile, statement)
    directory, problems = read(tmp_path, [GOOD], "kvref", statement)
    assert (directory.delimiter, directory.separator) == (b".", b"|")
    assert all(statement.rsplit(maxsplit=1)[-1] in problem for problem in problems)
    assert problems


def test_an_option_that_nobody_reads_may_be_null(tmp_path: Path) -> None:
    for profile in ("mysql-8.0", "mysql-5.6", "kvref"):
        folder = tmp_path / profile
        folder.mkdir()
        _, problems = read(folder, [], profile, "INSERT INTO config_options VALUES ('other', NULL)")  # [sep-020]
        assert problems == [], profile


@pytest.mark.parametrize("values", ["k", "v,k", "k,v"])
def test_the_key_among_the_values(tmp_path: Path, values: str) -> None:
    for profile, usable in (("mysql-8.0", True), ("mysql-5.6", False), ("kvref", False)):
        folder = tmp_path / profile
        folder.mkdir()
        _, problems = read(folder, [GOOD | {"value_columns": values}], profile)  # [col-035]
        assert problems == ([] if usable else ["container 'x': the key column k cannot be a value column too"]), profile


@pytest.mark.parametrize("value_columns", ["v,", " v", "v ", "|v", "v;"])
def test_a_list_of_one_name_is_not_split(tmp_path: Path, value_columns: str) -> None:
    _, problems = read(tmp_path, [GOOD | {"value_columns": value_columns}], "mysql-8.0")  # [col-073..077]
    assert f"table t has no value column {value_columns!r}" in problems[0]
