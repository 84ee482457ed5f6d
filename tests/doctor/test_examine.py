"""Rows wrong in every way the manual names, each said in words with its cure; features found in what is declared."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doctor.rows import BAD, COLUMNS, PLAIN, TABLE
from doctor.test_dump import CONFIGURATION, row

from kvref import collations, profiles
from kvref.cli import main
from kvref.doctor.dump.source import open_dump
from kvref.doctor.examine import examine
from kvref.doctor.report import CHANGES, WARNINGS, summarize
from kvref.doctor.source import open_source
from kvref.storage.sqlite.store import SQLiteStore


def doctor(*arguments: str) -> Result:
    """Run the command as into a file, whose width COLUMNS does not set."""
    return CliRunner(env={"COLUMNS": None}).invoke(main, ["doctor", *arguments])


def examined(file: Path, profile: str = "mysql-8.0") -> dict[str, Any]:
    result = doctor("--store", f"sqlite:///{file}", "--profile", profile, "--json", "-")
    record: dict[str, Any] = json.loads(result.stdout)
    assert record["exit_code"] == result.exit_code
    return record


def configured(folder: Path, rows: dict[str, dict[str, str | None]], *sql: str) -> Path:
    """Make a store with these rows besides none of the demo's."""
    file = folder / "x.sqlite"
    with closing(SQLiteStore(file, profiles.load("mysql-8.0"))) as store:
        store.initialise()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        collations.register(other)
        other.execute("CREATE TABLE copy AS SELECT * FROM containers WHERE FALSE")  # without the NOT NULLs
        other.execute("DROP TABLE containers")
        other.execute("ALTER TABLE copy RENAME TO containers")
        for statement in (
            TABLE, 'CREATE UNIQUE INDEX on_v ON "test.t" (v)', 'CREATE UNIQUE INDEX both ON "test.t" (k, v)',
            'CREATE INDEX plain ON "test.t" (k)', *sql,
        ):  # fmt: skip
            other.execute(statement)
        for name, row in rows.items():
            given = {**PLAIN, **row}
            other.execute(
                "INSERT INTO containers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [name, *(given[c] for c in COLUMNS)]
            )
    return file


def ids(found: list[dict[str, Any]], field: str = "requirements") -> set[str]:
    return {each["id"] for finding in found for each in finding[field]}


@pytest.mark.parametrize(("change", "fault", "requirement"), BAD)
def test_a_bad_row_is_named_with_its_fault_and_its_cure(
    tmp_path: Path, change: dict[str, str | None], fault: str, requirement: str | None
) -> None:
    record = examined(configured(tmp_path, {"bad": change, "good": {}}))
    bad, good = record["rows"]
    assert (bad["state"], good["state"], record["exit_code"]) == ("unusable", "usable", 1)
    assert fault in bad["fault"]
    assert requirement is None or requirement in ids(bad["findings"])
    assert record["default"].startswith("'good', the first usable row in the order of names")
    assert record["default"].endswith("passed over: 'bad' (unusable)")
    assert {"KV-DEF-005", "KV-CONT-021"} <= ids(record["findings"])
    shown = " ".join(doctor("--store", f"sqlite:///{tmp_path / 'x.sqlite'}", "--profile", "mysql-8.0").stdout.split())
    assert "'bad' unusable" in shown


def test_what_only_kvref_does_otherwise(tmp_path: Path) -> None:
    virtual = "CREATE TABLE g (k VARCHAR(9) PRIMARY KEY, v TEXT, g TEXT AS (v || '!') VIRTUAL)"
    rows = {
        "virtual": {"db_table": "g", "flags": "0"},
        "twice": {"value_columns": "v,v"},
        "same": {},
        "null": {"flags": None},
    }
    found = {row["name"]: row for row in examined(configured(tmp_path, rows, virtual))["rows"]}
    assert found["virtual"]["fault"].endswith("table g contains virtual columns: g: make them STORED")
    assert found["virtual"]["kvref"]["state"] == found["null"]["kvref"]["state"] == "usable"
    assert found["twice"]["state"] == "usable"
    assert found["twice"]["kvref"] == {
        "state": "unusable", "fault": "container 'twice': column v is mapped twice: a write would contradict itself", "rule": "mapped-twice",
    }  # fmt: skip
    assert "KV-COL-036" in found["twice"]["ends_mysqld"]
    assert found["same"]["kvref"] is None
    assert "KV-TYPE-037" in ids(found["same"]["findings"], "kvref_only")
    assert all(
        not finding["kvref_only"]
        for row in examined(tmp_path / "x.sqlite", "kvref")["rows"]
        for finding in row["findings"]
    )


# A table and a change to the row; features that are found, and features that are not.
FEATURES = [
    ("k VARCHAR(32) COLLATE utf8mb4_bin PRIMARY KEY, v VARCHAR(40)", {}, "text-key narrow-key unicode-key key-minds-case one-value no-flags-column no-options nullable-value", "key-ignores-case several-values integer-key unmapped-nullable"),
    ("k VARCHAR(250) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, v BLOB", {}, "wide-key key-ignores-case key-ignores-accents key-expands blob-value", "narrow-key text-value"),
    ("k VARCHAR(9) COLLATE latin1_swedish_ci PRIMARY KEY, v TEXT COLLATE ucs2_bin", {}, "key-not-utf8 latin1-key key-ignores-trailing-blanks value-not-utf8", "unicode-key unicode-value ucs2-key latin1-value"),
    ("k CHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, v CHAR(9)", {}, "char-key char-value", "integer-key"),
    ("k INT PRIMARY KEY, v INT UNSIGNED", {}, "integer-key integer-value unsigned-value", "text-key nullable-integer-key unsigned-bigint-key"),
    ("k BIGINT UNSIGNED UNIQUE, v TINYTEXT", {"unique_idx_name_on_key": "sqlite_autoindex_t2_1"}, "unsigned-bigint-key nullable-integer-key nullable-unsigned-key secondary-index no-primary-key tinytext-value", "primary-key-beside"),
    ("k MEDIUMINT PRIMARY KEY, v DATE, f MEDIUMINT", {"flags": "f"}, "three-byte-key three-byte-value three-byte-option flags-column", "flags-narrow"),
    ("k INTEGER PRIMARY KEY AUTOINCREMENT, v JSON", {}, "auto-increment-key json-value", "key-ignores-case"),
    ("id INT PRIMARY KEY, k VARCHAR(9) COLLATE utf8mb4_bin NOT NULL UNIQUE, v FLOAT", {"unique_idx_name_on_key": "sqlite_autoindex_t2_2"}, "secondary-index primary-key-beside unmapped-not-null float-value", "no-primary-key two-indexes-on-key"),
    ("k INT PRIMARY KEY, v TEXT NOT NULL, w INT", {"value_columns": "v|w"}, "several-values several-with-integer several-not-null several-without-options not-null-text-value", "one-value several-of-limited-width"),
    ("k INT PRIMARY KEY, v VARCHAR(9) UNIQUE, w VARCHAR(9)", {"value_columns": "v w"}, "several-of-limited-width several-text-behind unique-value", "text-behind-value"),
    ("k INT PRIMARY KEY, v VARCHAR(9), w VARCHAR(9), z INT NOT NULL DEFAULT 1, y INT DEFAULT 2", {}, "text-behind-value text-value-of-limited-width unmapped-nullable unmapped-with-default unmapped-not-null unmapped-not-null-with-default", "value-last-in-table"),
    ("k INT PRIMARY KEY, v TEXT, f SMALLINT NOT NULL, c BIGINT, e INT", {"flags": "f", "cas_column": "c", "expire_time_column": "e"}, "flags-narrow cas-column cas-signed expiry-column expiry-of-31-bits not-null-options nullable-cas", "cas-narrow no-options nullable-flags no-cas-column"),
    ("k INT PRIMARY KEY, v TEXT, f BIGINT, c BIGINT UNSIGNED, e BIGINT", {"flags": "f", "cas_column": "c", "expire_time_column": "e"}, "flags-wide cas-unsigned-bigint expiry-beyond-31-bits", "cas-signed expiry-of-31-bits"),
    ("k INT PRIMARY KEY, v TEXT, c INT", {"cas_column": "c"}, "cas-narrow cas-signed", "cas-unsigned-bigint"),
    ("k INT PRIMARY KEY, v TEXT, f INT", {"flags": "F", "cas_column": "gone"}, "option-is-no-column option-in-other-case no-flags-column", "flags-column"),
    ("k INT PRIMARY KEY, v DECIMAL(9,2), c INT", {"cas_column": "c", "expire_time_column": "c"}, "cas-is-expiry storage-bytes-value", "flags-among-values"),
    ("k INT PRIMARY KEY, v YEAR, f INT", {"value_columns": "v,f,k", "flags": "f"}, "flags-among-values numbered-value key-among-values", "cas-is-expiry"),
    ("k INT PRIMARY KEY, v TEXT REFERENCES \"test.t\" (k), g INT AS (k + 1) STORED", {}, "refers-to-others", "others-refer-to-it virtual-column triggers"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "change", "there", "not_there"), FEATURES)
def test_features_come_from_what_is_declared(
    tmp_path: Path, columns: str, change: dict[str, str | None], there: str, not_there: str
) -> None:
    row = {"db_table": "t2", "flags": "0", "cas_column": "0", "expire_time_column": "0", **change}
    found = examined(configured(tmp_path, {"m": row}, f"CREATE TABLE t2 ({columns})"))["rows"][0]
    assert found["fault"] == ""
    names = {finding["feature"] for finding in found["findings"]}
    # Some requirements are of 5.6 only, and a finding without a requirement is not reported.
    of_5_6 = {"nullable-integer-key", "nullable-unsigned-key", "unsigned-value"}
    assert set(there.split()) - of_5_6 <= names
    assert not set(not_there.split()) & names
    again = {finding["feature"] for finding in examined(tmp_path / "x.sqlite", "mysql-5.6")["rows"][0]["findings"]}
    assert set(there.split()) & of_5_6 <= again


@pytest.mark.parametrize("action", ["ON DELETE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE"])
def test_what_acts_on_the_table(tmp_path: Path, action: str) -> None:
    sql = (
        f'CREATE TABLE child (id INT PRIMARY KEY, k VARCHAR(32) REFERENCES "test.t" (k) {action})',
        'CREATE TRIGGER seen AFTER INSERT ON "test.t" BEGIN SELECT 1; END',
    )
    rows = {"q": {}, "by.v": {"key_columns": "v", "value_columns": "w", "unique_idx_name_on_key": "on_v"}, "a b": {}}
    record = examined(configured(tmp_path, rows, *sql))
    found = {row["name"]: {each["feature"]: each["where"] for each in row["findings"]} for row in record["rows"]}
    assert found["q"]["triggers"] == ["seen"]
    assert found["q"]["others-refer-to-it"] == found["q"]["others-cascade"] == ["child"]
    assert found["q"]["table-mapped-again"] == ["by.v", "a b"]
    assert found["q"]["table-mapped-by-another-key"] == ["by.v"]
    assert "name-of-one-letter" in found["q"]
    assert "name-with-delimiter" in found["by.v"]
    assert "name-with-blank" in found["a b"]
    assert [row["ends_mysqld"] for row in record["rows"] if row["name"] == "q"] == [["KV-TABLE-015"]]
    plugin = ("--store", f"sqlite:///{tmp_path / 'x.sqlite'}", "--profile", "mysql-8.0")
    shown = " ".join(doctor(*plugin, "--verbose").stdout.split())
    assert (
        "THIS MAPPING ENDS mysqld: If a foreign key with ON DELETE CASCADE or SET NULL refers to the row of a `delete`, or"
        " one with ON UPDATE CASCADE or SET NULL to a row whose key a write respells, the server MUST terminate."
        " (KV-TABLE-015)" in shown
    )
    assert "KV-TABLE-011 QUIRK" in shown
    assert "ENDS mysqld" not in doctor("--store", f"sqlite:///{tmp_path / 'x.sqlite'}").stdout


def test_the_summary_comes_first_and_its_lines_are_short(tmp_path: Path) -> None:
    sql = 'CREATE TABLE child (id INT PRIMARY KEY, k VARCHAR(32) REFERENCES "test.t" (k) ON DELETE CASCADE)'
    rows: dict[str, dict[str, str | None]] = {"q": {}, "bad": {"db_table": "nope"}}
    store = f"sqlite:///{configured(tmp_path, rows, sql)}"
    shown = doctor("--store", store, "--profile", "mysql-8.0").stdout
    assert max(map(len, shown.splitlines())) <= 120
    parts = [
        "1 error, ",
        "errors\n",
        "warnings\n",
        "what changes for these tables with profile kvref\n",
        "\n'q' usable",
        "rows of",
    ]
    assert sorted(map(shown.index, parts)) == [shown.index(part) for part in parts]
    first = {part: shown.partition(f"\n{part}\n")[2].splitlines()[0] for part in ("errors", "warnings")}
    assert first["errors"] == "  - container 'bad': there is no table test.nope: create it or correct the row"
    assert first["warnings"].startswith("  - ENDS mysqld, 'q': If a foreign key with ON DELETE CASCADE")
    assert "KV-TABLE-015  QUIRK" not in shown
    below = shown.partition("what changes")[2].partition("\n\n")[0].splitlines()[1:]
    assert (len(below), below[-1].endswith("more: --verbose shows them")) == (11, True)
    verbose = doctor("--store", store, "--profile", "mysql-8.0", "--verbose").stdout
    assert "KV-TABLE-015  QUIRK" in verbose
    assert "more: --verbose" not in verbose
    own = doctor("--store", store).stdout
    assert "what changes" not in own
    assert doctor("--store", store, "--profile", "kvref").stdout == own


ORDINARY = "CREATE TABLE `t` (`k` varchar(32) NOT NULL, `v` varchar(40), PRIMARY KEY (`k`));\n"
VIRTUAL = "CREATE TABLE `g` (`k` int PRIMARY KEY, `v` text, `w` text AS (`v`) VIRTUAL, `n` int NOT NULL);\n"


def test_the_default_report_has_what_concerns_kvref_and_a_line_for_the_defects_of_the_plugin(tmp_path: Path) -> None:
    tables = (
        f"{CONFIGURATION}{row('t', 'shop.t')}{row('g', 'shop.g')}CREATE DATABASE `shop`;USE `shop`;{ORDINARY}{VIRTUAL}"
    )
    (tmp_path / "x.sql").write_text(tables)
    result = doctor(str(tmp_path / "x.sql"), "--verbose")
    shown = " ".join(result.stdout.split())
    assert result.exit_code == 0
    assert "as profile kvref starts with it" in shown
    warning = "'g': a NOT NULL column without a DEFAULT is not mapped, so that no new key can be stored: n"
    assert "0 errors, 5 warnings, 2 notices" in shown  # four of them about the policies
    assert f"warnings - {warning} - cache_policies: " in shown
    assert (
        "- the plugin rejects a row that is usable: container 'g': table `shop`.`g` contains virtual columns: w:"
        in shown
    )
    plugin = summarize_dump(tmp_path / "x.sql", "mysql-8.0")
    defects = sum("KV-" in line for line in plugin[WARNINGS])
    assert defects > 9
    assert f"- the plugin has {defects} defects that can concern these tables (truncation, " in shown
    assert "): --profile mysql-8.0 lists them" in shown
    assert summarize_dump(tmp_path / "x.sql", "kvref")[CHANGES] == plugin[CHANGES] != ()
    (tmp_path / "x.sql").write_text(f"-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB\n{tables}")
    assert "plugin" not in doctor(str(tmp_path / "x.sql")).stdout.replace("the plugin's also show", "")


def summarize_dump(path: Path, profile: str) -> dict[str, tuple[str, ...]]:
    with open_dump(path) as source:
        return summarize(examine(source, profiles.load(profile)))


# The other columns of a table with the key k and the value v, and those without which no new key can be stored.
UNMAPPED = [
    ("n INT NOT NULL, m DATE NOT NULL, o INT", ["n", "m"]),
    ("n INT NOT NULL DEFAULT 0, o TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", []),
    ("n INT NOT NULL AUTO_INCREMENT UNIQUE", []),
    ("n INT AS (1) STORED NOT NULL", []),
]


@pytest.mark.parametrize(("columns", "without"), UNMAPPED)
@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0"])
def test_columns_without_which_no_new_key_can_be_stored(
    tmp_path: Path, columns: str, without: list[str], profile: str
) -> None:
    table = f"CREATE TABLE `t` (k varchar(32) PRIMARY KEY, v text, {columns});"
    (tmp_path / "x.sql").write_text(f"{CONFIGURATION}{row('t', 'shop.t')}CREATE DATABASE shop;USE shop;{table}")
    warnings = [each for each in summarize_dump(tmp_path / "x.sql", profile)[WARNINGS] if "no new key" in each]
    assert [each.rpartition("stored: ")[2] for each in warnings] == ([", ".join(without)] if without else [])


# A statement on the options, the features it makes, and whether the plugin starts.
OPTIONS = [
    ("DROP TABLE config_options", {"options-missing"}, False),
    ("DELETE FROM config_options", {"options-empty"}, False),
    ("DELETE FROM cache_policies", {"policies-empty"}, False),
    ("UPDATE cache_policies SET get_policy = 'caching', set_policy = 'caching'", {"policies-caching"}, True),
    ("UPDATE cache_policies SET get_policy = 'cache_only', delete_policy = 'disabled'", {"policies-cache-only", "policies-disabled"}, True),
    ("UPDATE config_options SET value = NULL WHERE name = 'separator'", {"separator-null"}, False),
    ("UPDATE config_options SET value = NULL WHERE name = 'table_map_delimiter'", {"delimiter-null"}, False),
    ("DELETE FROM config_options WHERE name = 'separator'", {"separator-missing"}, True),
    ("UPDATE config_options SET value = '' WHERE name = 'separator'", {"separator-empty"}, True),
    ("UPDATE config_options SET value = '::'", {"separator-of-several-bytes", "delimiter-of-several-bytes"}, True),
    (f"UPDATE config_options SET value = '{'x' * 33}' WHERE name = 'separator'", {"separator-of-several-bytes", "separator-too-long"}, True),
    ("UPDATE config_options SET name = 'SEPARATOR' WHERE name = 'separator'", {"separator-in-capitals", "separator-missing"}, True),
    ("INSERT INTO config_options VALUES ('other', 'x')", {"unknown-option"}, True),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "features", "starts"), OPTIONS)
def test_options(tmp_path: Path, sql: str, features: set[str], starts: bool) -> None:
    record = examined(configured(tmp_path, {"default": {}}, sql))
    assert {each["feature"] for each in record["findings"]} == features | {"default-by-name"}
    assert (bool(record["refused"]), record["exit_code"]) == ((False, 0) if starts else (True, 1))
    assert record["kvref_refused"] == ""
    crashes = {
        each["id"] for finding in record["findings"] for each in finding["requirements"] if "crash" in each["defects"]
    }
    assert bool(crashes) is any("null" in feature for feature in features)


@pytest.mark.parametrize(
    ("profile", "level", "gets"), [("kvref", 1, "show committed rows only"), ("mysql-8.0", 0, "also show what others")]
)
def test_what_gets_show_by_default(tmp_path: Path, profile: str, level: int, gets: str) -> None:
    file = configured(tmp_path, {"a": {}})
    assert examined(file, profile)["innodb_api_trx_level"] == level
    shown = " ".join(doctor("--store", f"sqlite:///{file}", "--profile", profile).stdout.split())
    assert f"gets {gets}" in shown
    assert f"by default (innodb_api_trx_level={level})" in shown


def test_the_file_is_not_touched_and_the_report_is_written(tmp_path: Path) -> None:
    file = configured(tmp_path, {"default": {}})
    before = file.read_bytes()
    result = doctor("--store", f"sqlite:///{file}", "--json", str(tmp_path / "report.json"))
    assert "rows of containers: 1 usable" in " ".join(result.stdout.split())
    assert json.loads((tmp_path / "report.json").read_text())["rows"][0]["state"] == "usable"
    assert file.read_bytes() == before
    assert doctor("--store", f"sqlite:///{file}", "--json", str(tmp_path / "no" / "x")).exit_code == 2


EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e"


def test_text_of_the_database_changes_no_terminal(tmp_path: Path) -> None:
    table = TABLE.replace("test.t", f"test.{EVIL}").replace("w VARCHAR(8)", f'"w{EVIL}" VARCHAR(8)')
    good = {**PLAIN, "db_table": EVIL, "value_columns": f"v|w{EVIL}"}
    trigger = f'CREATE TRIGGER "{EVIL}" AFTER INSERT ON "test.{EVIL}" BEGIN SELECT 1; END'
    rows = {EVIL: good, "a": {**good, **dict.fromkeys(("db_table", "key_columns"), f"nope{EVIL}")}}
    rows |= {column: {**good, column: f"nope{EVIL}"} for column in COLUMNS}
    folder = tmp_path / EVIL
    folder.mkdir()
    file = configured(folder, rows, table, trigger)
    reply = doctor("--store", f"sqlite:///{file}")
    assert reply.exit_code == 1, reply.output
    assert reply.output.replace("\n", "").isprintable()
    assert "\\x1b[2J" in reply.output
    machine = doctor("--store", f"sqlite:///{file}", "--json", "-").stdout
    assert machine.replace("\n", "").isprintable()
    assert {each["name"] for each in json.loads(machine)["rows"]} == rows.keys()
    refused = doctor(f"{EVIL}.sql")
    assert refused.exit_code == 2
    assert refused.output.replace("\n", "").isprintable()


def test_the_summary_warns_of_privileges(tmp_path: Path) -> None:
    with open_source(f"sqlite:///{configured(tmp_path, {'q': {}})}") as source:
        report = examine(source, profiles.load("mysql-8.0"))
    row = replace(report.rows[0], not_granted="set fails: GRANT it")
    assert summarize(replace(report, rows=(row,)))[WARNINGS][0] == "privileges, 'q': set fails: GRANT it"
