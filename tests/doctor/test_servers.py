"""Live servers, and dumps that mysqldump 8.0.33 makes of them: the same is said of both."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pymysql
import pytest
from click.testing import CliRunner, Result
from doctor.rows import BAD, COLUMNS, MYSQL, NOT_NULL, PLAIN
from doctor.shop import CLEAN_UP, ENDS, FAULTS, FOUND, STATEMENTS
from helpers.live import MYSQL_8, missing_skips, target_or_skip
from helpers.serving import ask

from kvref.addresses import parse_address
from kvref.cli import main
from kvref_testbed import targets
from kvref_testbed.targets.servers import SQLServer

pytestmark = pytest.mark.live


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", "--profile", "mysql-8.0", *arguments])


def record(*arguments: str) -> dict[str, Any]:
    result = doctor(*arguments, "--json", "-")
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["exit_code"] == result.exit_code
    return found


def sql(database: SQLServer, *statements: str) -> None:
    with closing(database.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with ExitStack() as stack:
        with missing_skips():
            server = stack.enter_context(targets.sql_server(request.param))
        assert CliRunner().invoke(main, ["init", "--demo", "--store", server.dsn]).exit_code == 0
        yield server


@pytest.fixture
def shop(database: SQLServer) -> Iterator[SQLServer]:
    sql(database, *STATEMENTS)
    yield database
    sql(database, *CLEAN_UP)


@pytest.fixture(scope="module")
def mysqldump(programs: Path) -> Path:
    return programs / "mysqldump"


def dumped(program: Path, server: SQLServer, folder: Path, *arguments: str) -> str:
    command = [
        str(program),
        "--no-defaults",
        "--user=root",
        "--column-statistics=0",
        f"--socket={server.socket}",
        *arguments,
    ]
    made = subprocess.run(command, capture_output=True, check=True, timeout=60)
    (folder / "dump.sql").write_bytes(made.stdout)
    return str(folder / "dump.sql")


def hold(found: dict[str, Any]) -> None:
    """Check what is said of the shop."""
    assert found["exit_code"] == 1
    assert found["default"] == "'aaa', the first usable row in the order of names, as no usable row is named 'default'"
    rows = {row["name"]: row for row in found["rows"]}
    assert {name for name, row in rows.items() if row["state"] == "unusable"} == set(FAULTS)
    for name, fault in FAULTS.items():
        assert fault in rows[name]["fault"].lower()
    for name, features in FOUND.items():
        assert rows[name]["state"] == "usable"
        assert features <= {finding["feature"] for finding in rows[name]["findings"]}, name
        assert rows[name]["ends_mysqld"] == ENDS[name]


def test_a_server(shop: SQLServer) -> None:
    hold(record("--store", shop.dsn))
    shown = " ".join(doctor("--store", shop.dsn, "--verbose").stdout.split())
    assert "'items' usable shop.items" in shown
    ends = "If the value column is of an integer type, the server MUST terminate at a `prepend`. (KV-TYPE-036)"
    assert f"THIS MAPPING ENDS mysqld: {ends}" in shown
    assert "triggers: t1" in shown


def test_a_server_whose_rows_are_all_good(database: SQLServer) -> None:
    assert record("--store", database.dsn)["exit_code"] == 0
    notes = record("--store", database.dsn, "--profile", "mysql-5.6")["notes"]
    assert ["the server is MySQL 8.0.33" in note for note in notes] == [True] * (database.version == "8.0.33")


@pytest.mark.nightly
def test_a_dump_is_reported_as_its_server(shop: SQLServer, mysqldump: Path, tmp_path: Path) -> None:
    here = record("--store", shop.dsn)
    dump = record(dumped(mysqldump, shop, tmp_path, "--databases", "innodb_memcache", "test", "shop"))
    hold(dump)
    assert dump["notes"] == []
    for one, other in zip(here["rows"], dump["rows"], strict=True):
        assert (one["name"], one["state"], one["rule"]) == (other["name"], other["state"], other["rule"])
        assert [each["feature"] for each in one["findings"]] == [each["feature"] for each in other["findings"]]


@pytest.mark.nightly
def test_a_dump_of_the_configuration_only(shop: SQLServer, mysqldump: Path, tmp_path: Path) -> None:
    found = record(
        dumped(mysqldump, shop, tmp_path, "innodb_memcache", "containers", "config_options", "cache_policies")
    )
    states = {row["name"]: row["state"] for row in found["rows"]}
    assert states.pop("null") == "unusable"  # what needs no table to be seen
    assert set(states.values()) == {"cannot tell"}
    assert "the dump has no table test.demo_test: dump its database too" in found["rows"][0]["fault"]
    assert found["default"].startswith("not known: 'aaa'")


# Columns of a table, and the definition that the statement for each gives it.
NARROW = {
    "TINYINT": "BIGINT", "SMALLINT UNSIGNED NOT NULL": "BIGINT UNSIGNED NOT NULL",
    "MEDIUMINT DEFAULT -7": "BIGINT DEFAULT -7", "INT UNSIGNED DEFAULT 7": "BIGINT UNSIGNED DEFAULT 7",
    "INTEGER NOT NULL DEFAULT 7 COMMENT 'it''s'": r"BIGINT NOT NULL DEFAULT 7 COMMENT 'it\'s'",
    "DECIMAL(20,0) NOT NULL DEFAULT 7": "BIGINT UNSIGNED NOT NULL DEFAULT 7", "FLOAT": "BIGINT UNSIGNED",
    "DOUBLE": "BIGINT UNSIGNED", "VARCHAR(20) DEFAULT '7'": "BIGINT UNSIGNED DEFAULT 7",
}  # fmt: skip


def test_a_narrow_cas_column_is_refused_with_the_statement_that_widens_it(database: SQLServer) -> None:
    try:
        for number, declared in enumerate(NARROW):
            table = f"CREATE TABLE narrow.`t``{number}` (k INT PRIMARY KEY, v TEXT, `c d` {declared})"
            row = f"('n{number}', 'narrow', 't`{number}', 'k', 'v', '0', 'c d', '0', 'PRIMARY')"
            sql(database, "CREATE DATABASE IF NOT EXISTS narrow", table)
            sql(database, f"INSERT INTO narrow.`t``{number}` VALUES (1, 'v', 7)")
            sql(database, f"INSERT INTO innodb_memcache.containers VALUES {row}")
        found = record("--store", database.dsn, "--profile", "kvref")
        faults = {row["name"]: row["fault"] for row in found["rows"] if row["state"] == "unusable"}
        for number, (declared, wide) in enumerate(NARROW.items()):
            alter = f"ALTER TABLE `narrow`.`t``{number}` MODIFY `c d` {wide}"
            assert faults[f"n{number}"].endswith(f": {alter}"), declared
            sql(database, alter)
        assert record("--store", database.dsn, "--profile", "kvref")["exit_code"] == 0
        with closing(database.connect()) as connection, connection.cursor() as cursor:
            for number in range(len(NARROW)):
                cursor.execute(f"SELECT `c d` FROM narrow.`t``{number}`")
                assert cursor.fetchall() == ((7,),)
    finally:
        sql(database, "DELETE FROM innodb_memcache.containers WHERE db_schema = 'narrow'", "DROP DATABASE narrow")


def test_an_account_that_may_not_look(database: SQLServer) -> None:
    sql(database, "CREATE USER 'kv'@'%' IDENTIFIED BY 'pä55'")
    dsn = f"mysql://kv@{database.host}:{database.port}/"
    try:
        refused = doctor("--store", dsn)
        assert (refused.exit_code, "1045 Access denied for user 'kv'" in refused.output) == (2, True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KVREF_MYSQL_PASSWORD", "pä55")
            denied = doctor("--store", dsn)
            assert denied.exit_code == 2
            assert "configuration table innodb_memcache.containers: 1142 " in denied.output
            assert ": GRANT SELECT ON innodb_memcache.* TO 'kv'@'%'\n" in denied.output
            sql(database, "GRANT SELECT ON innodb_memcache.* TO 'kv'@'%'")
            found = record("--store", dsn)
            assert (found["exit_code"], found["rows"][0]["state"]) == (2, "cannot tell")
            assert (
                "the account lacks SELECT on test.demo_test, or it does not exist (1142 " in found["rows"][0]["fault"]
            )
            sql(database, "GRANT SELECT ON test.demo_test TO 'kv'@'%'")
            assert record("--store", dsn)["exit_code"] == 0
    finally:
        sql(database, "DROP USER 'kv'@'%'")


def test_a_server_without_the_schema_or_none_at_all(database: SQLServer) -> None:
    sql(database, "RENAME TABLE innodb_memcache.containers TO innodb_memcache.away")
    try:
        missing = doctor("--store", database.dsn)
        assert (missing.exit_code, "create the tables with `kvref init`" in missing.output) == (2, True)
    finally:
        sql(database, "RENAME TABLE innodb_memcache.away TO innodb_memcache.containers")
    unreachable = doctor("--store", "mysql://root@127.0.0.1:1/")
    assert (unreachable.exit_code, "2003 Can't connect" in unreachable.output) == (2, True)


@pytest.mark.nightly
def test_the_plugin_takes_just_the_rows_that_are_usable() -> None:
    with target_or_skip("mysql-8.0-plugin") as target:
        assert target.sql is not None
        connection = pymysql.connect(unix_socket=str(target.socket), user="root", autocommit=True)
        with closing(connection), connection.cursor() as cursor:
            for statement in (*STATEMENTS, *MYSQL):
                cursor.execute(statement)
            for number, (change, *_) in enumerate(BAD):
                given = {**PLAIN, **change}
                # The plugin's own table has NOT NULL columns, and no row holds NULL in them.
                if all(given[column] is not None for column in NOT_NULL):
                    words = [f"bad{number}", *(given[column] for column in COLUMNS)]
                    cursor.execute(f"INSERT INTO innodb_memcache.containers VALUES ({', '.join(['%s'] * 9)})", words)
        found = {row["name"]: row for row in record("--store", target.sql)["rows"]}
        where = parse_address(target.memcached())
        with socket.create_connection((where.host, where.port), timeout=10) as client:
            taken = {name for name in found if ask(client, b"bind %s\r\n" % name.encode()) == b"SUCCEED\r\n"}
    assert len(found) > 30
    assert {name for name, row in found.items() if row["state"] == "usable"} == taken
