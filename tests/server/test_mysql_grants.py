"""What an account may not do is said before the start, for each mapping, with the GRANT that fixes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8
from helpers.serving import ask, serving

from kvref.cli import main
from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
USER, NAME = "'k''v'@'%'", "k'v"  # a name that needs quoting
TABLE = "`od_d``db`.`ta'b le`"


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb", pytest.param("mysql-9.7", marks=pytest.mark.nightly)])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        row = "'odd', 'od_d`db', 'ta''b le', 'k', 'v', '0', '0', '0', 'PRIMARY'"
        sql(
            server,
            "CREATE DATABASE `od_d``db`",
            f"CREATE TABLE {TABLE} (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), w INT) ENGINE = InnoDB",
            "DELETE FROM innodb_memcache.containers",
            f"INSERT INTO innodb_memcache.containers VALUES ({row})",
        )
        yield server


@pytest.fixture
def dsn(database: SQLServer) -> Iterator[str]:
    sql(database, f"CREATE USER {USER}", f"GRANT SELECT ON innodb_memcache.* TO {USER}")
    yield f"mysql://{NAME}@{database.host}:{database.port}/"
    sql(database, f"DROP USER {USER}")


def reported(dsn: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["doctor", "--store", dsn, "--json", "-"])
    assert result.stdout, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == found["exit_code"]
    return found


def received(dsn: str) -> str:
    found = reported(dsn)
    assert found["exit_code"] == 0, found
    ((row),) = found["rows"]
    assert row["state"] == "usable"
    return str(row["not_granted"])


def granted(database: SQLServer, text: str) -> None:
    """Carry out the GRANT of a text."""
    found = re.search(r": (GRANT .* TO '.*'@'.*')$", text)
    assert found is not None, text
    sql(database, found[1])


def lacking(privileges: str) -> str:
    return f"{USER} may not {privileges} in {TABLE}, and "


def test_each_level_of_grants(database: SQLServer, dsn: str) -> None:
    mariadb = "MariaDB" in sql(database, "SELECT VERSION()")[0][0]
    everything = "SELECT, INSERT, UPDATE, DELETE"
    for grants, lacks in (
        ([f"SELECT ON {TABLE}"], "INSERT, UPDATE, DELETE"),
        ([f"SELECT, INSERT, UPDATE ON {TABLE}"], "DELETE"),
        ([f"{everything} ON {TABLE}"], ""),
        ([f"SELECT, UPDATE (k, v, w), INSERT (k, v, w), DELETE ON {TABLE}"], ""),
        ([f"SELECT, UPDATE (k), INSERT (v), DELETE ON {TABLE}"], "INSERT, UPDATE"),
        ([f"SELECT (k), INSERT, UPDATE, DELETE ON {TABLE}"], "SELECT all columns"),
        ([f"SELECT (k), UPDATE, DELETE ON {TABLE}"], "SELECT, INSERT"),
        ([f"SELECT (k, v), INSERT (k, v), UPDATE (k, v), DELETE ON {TABLE}"], ""),
        ([r"SELECT, DELETE ON `od\_d``db`.*"], "INSERT, UPDATE"),
        ([r"ALL ON `od%`.*"], ""),
        (["SELECT, INSERT ON *.*"], "UPDATE, DELETE"),
        (["ALL ON *.*"], ""),
    ):
        sql(database, *[f"GRANT {each} TO {USER}" for each in grants])
        text = received(dsn)
        assert text.startswith(lacking(lacks)) if lacks else not text, (grants, text)
        if lacks:
            granted(database, text)
            assert received(dsn) == ""
        sql(database, f"REVOKE ALL, GRANT OPTION FROM {USER}", f"GRANT SELECT ON innodb_memcache.* TO {USER}")
    sql(database, f"GRANT SELECT, UPDATE (k, v), INSERT (k, v), DELETE ON {TABLE} TO {USER}")
    assert received(dsn) == ""
    sql(database, f"REVOKE ALL, GRANT OPTION FROM {USER}", f"GRANT SELECT ON innodb_memcache.* TO {USER}")
    sql(database, "CREATE ROLE writes", f"GRANT {everything} ON {TABLE} TO writes")
    sql(database, f"GRANT writes TO {USER}", f"GRANT SELECT ON {TABLE} TO {USER}")
    assert received(dsn).startswith(lacking("INSERT, UPDATE, DELETE"))  # a role that is not active does not count
    sql(database, f"SET DEFAULT ROLE writes {'FOR' if mariadb else 'TO'} {USER}")
    assert received(dsn) == ""
    sql(database, "DROP ROLE writes", f"REVOKE SELECT ON {TABLE} FROM {USER}")
    if not mariadb:
        sql(database, "SET GLOBAL partial_revokes = ON")
        sql(database, f"GRANT {everything} ON *.* TO {USER}", f"REVOKE INSERT ON `od_d``db`.* FROM {USER}")
        text = received(dsn)
        assert text.startswith(lacking("INSERT"))
        granted(database, text)
        assert received(dsn) == ""
        sql(database, f"REVOKE ALL, GRANT OPTION FROM {USER}", "SET GLOBAL partial_revokes = OFF")


def test_columns_that_the_account_does_not_see(database: SQLServer, dsn: str) -> None:
    columns = "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)", "f INT", "w INT"
    map_table(database, "part", "v", *columns)
    sql(database, "UPDATE innodb_memcache.containers SET flags = 'f' WHERE name = 'part'")
    try:
        for seen, hidden in (("k, v, w", "f"), ("v, f", "k"), ("k, f", "v")):
            sql(database, f"GRANT SELECT ({seen}), INSERT ({seen}), UPDATE ({seen}), DELETE ON test.part TO {USER}")
            (row,) = [row for row in reported(dsn)["rows"] if row["name"] == "part"]
            assert row["state"] == "cannot tell"
            assert (
                f"container 'part': the account lacks SELECT on the column {hidden} of `test`.`part`, or"
                in row["fault"]
            )
            sql(database, f"GRANT SELECT ON {TABLE} TO {USER}")
            with serving(dsn) as served, served.connect() as client:
                line = served.wait_for(f"the column {hidden} of `test`.`part`").rstrip()
                granted(database, line)
                served.reload()
                assert ask(client, b"set @@part.a 7 0 1\r\nx\r\n").startswith(b"SERVER_ERROR 1143 INSERT")
            sql(database, f"REVOKE ALL, GRANT OPTION FROM {USER}", f"GRANT SELECT ON innodb_memcache.* TO {USER}")
        # What no row of containers names may be hidden, and the definition of the table.
        sql(database, f"GRANT SELECT (k, v, f) ON test.part TO {USER}")
        (row,) = [row for row in reported(dsn)["rows"] if row["name"] == "part"]
        assert (row["state"], row["not_granted"][: row["not_granted"].index(" in ")]) == (
            "usable", f"{USER} may not INSERT, UPDATE, DELETE",
        )  # fmt: skip
        assert "command denied" in row["not_cached"]
        assert row["not_cached"].endswith(f": GRANT SELECT ON `test`.`part` TO {USER}")
    finally:
        sql(database, "DROP TABLE test.part", "DELETE FROM innodb_memcache.containers WHERE name = 'part'")


def test_a_reload_sees_what_was_granted_and_created_since(database: SQLServer, dsn: str) -> None:
    """No reading of a table outlives a reload, and no connection: MySQL grants globally, and roles, to later log-ins."""
    mariadb = "MariaDB" in sql(database, "SELECT VERSION()")[0][0]
    row = "'late', 'late', 'late', 'k', 'v', 'f', '0', '0', 'PRIMARY'"
    sql(database, f"INSERT INTO innodb_memcache.containers VALUES ({row})", f"GRANT SELECT ON {TABLE} TO {USER}")
    sql(database, "CREATE ROLE late", "GRANT ALL ON *.* TO late", f"GRANT late TO {USER}")
    write = b"set @@late.a 7 0 1\r\nx\r\n"
    every, seen = "SELECT, INSERT, UPDATE, DELETE", "SELECT (k, v), INSERT (k, v), UPDATE (k, v)"
    late, none = (f"SET DEFAULT ROLE {role} {'FOR' if mariadb else 'TO'} {USER}" for role in ("late", "NONE"))
    for options in ((), ("--workers", "2"), ("--set", "daemon_memcached_w_batch_size=3")):
        sql(database, "CREATE DATABASE late")
        with serving(dsn, *options) as served:
            with served.connect() as client:
                assert ask(client, b"set @@odd.a 0 0 1\r\nx\r\n").startswith(b"SERVER_ERROR 1142 "), options
            for missing, then, reply in (
                ("", f"GRANT ALL ON late.* TO {USER}", b"NOT_FOUND\r\n"),
                (
                    "there is no table late.late",
                    "CREATE TABLE late.late (k VARCHAR(9) PRIMARY KEY, v INT)",
                    b"CLIENT_ERROR ",
                ),
                ("", "ALTER TABLE late.late MODIFY v VARCHAR(9), ADD f INT", b"STORED\r\n"),
                ("", f"REVOKE ALL ON late.* FROM {USER}", b"NOT_FOUND\r\n"),
                ("", f"GRANT {seen}, DELETE ON late.late TO {USER}", b"NOT_FOUND\r\n"),
                (
                    "lacks SELECT on the column f",
                    f"GRANT SELECT (f) ON late.late TO {USER}",
                    b"SERVER_ERROR 1143 UPDATE",
                ),
                ("may not INSERT, UPDATE", f"GRANT INSERT (f), UPDATE (f) ON late.late TO {USER}", b"STORED\r\n"),
                ("", f"REVOKE SELECT (f), INSERT (f), UPDATE (f) ON late.late FROM {USER}", b"NOT_FOUND\r\n"),
                ("lacks SELECT on the column f", f"GRANT {every} ON *.* TO {USER}", b"STORED\r\n"),
                ("", f"REVOKE {every} ON *.* FROM {USER}", b"NOT_FOUND\r\n"),
                ("lacks SELECT on the column f", late, b"STORED\r\n"),
                ("", none, b"NOT_FOUND\r\n"),
            ):
                assert not missing or any(missing in line for line in served.log), (options, then)
                sql(database, then)
                served.reload()
                with served.connect() as client:
                    assert ask(client, write).startswith(reply), (options, then)
        sql(database, "DROP DATABASE late", f"REVOKE ALL, GRANT OPTION FROM {USER}")
        sql(database, f"GRANT SELECT ON innodb_memcache.* TO {USER}", f"GRANT SELECT ON {TABLE} TO {USER}")
        sql(database, f"GRANT late TO {USER}")
    sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'late'", "DROP ROLE late")


def test_the_profile_decides_which_columns_are_written(database: SQLServer, dsn: str) -> None:
    map_table(database, "plain", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)", "w INT")
    sql(database, f"GRANT SELECT, UPDATE (k, v), INSERT (k, v), DELETE ON test.plain TO {USER}")
    for profile, lacks in (("kvref", ""), ("mysql-8.0", "INSERT, UPDATE")):
        with serving(dsn, "--profile", profile) as served:
            found = [line for line in served.log if f"{USER} may not {lacks} in `test`.`plain`" in line]
            assert len(found) == bool(lacks)
    sql(database, "DROP TABLE test.plain", "DELETE FROM innodb_memcache.containers WHERE name = 'plain'")


def test_serve_warns_at_the_start_and_at_each_reload(database: SQLServer, dsn: str) -> None:
    sql(database, f"GRANT SELECT ON {TABLE} TO {USER}")
    for workers in ("1", "2"):
        with serving(dsn, "--workers", workers) as served, served.connect() as client:
            line = served.wait_for(lacking("INSERT, UPDATE, DELETE")).rstrip()
            assert "mapping 'odd': " in line
            assert "set, add, replace, append, prepend, incr, decr, touch, delete, flush_all" in line
            assert ask(client, b"get none\r\n") == b"END\r\n"
            assert ask(client, b"set a 0 0 1\r\n1\r\n").startswith(b"SERVER_ERROR 1142 ")
            granted(database, line)
            served.reload()
            assert not any("may not" in each for each in served.log)
            assert ask(client, b"set a 0 0 1\r\n1\r\n") == b"STORED\r\n"
            sql(database, f"REVOKE INSERT, UPDATE, DELETE ON {TABLE} FROM {USER}")
    with serving(dsn, "--read-only") as served:
        assert not any("may not" in each for each in served.log)


def test_what_is_not_known_is_reported(database: SQLServer, dsn: str) -> None:
    sql(database, f"GRANT SELECT ON {TABLE} TO {USER}", "SET GLOBAL read_only = ON")
    try:
        assert f"it is not known what {USER} may do with {TABLE}: 1290 " in received(dsn)
    finally:
        sql(database, "SET GLOBAL read_only = OFF")


def test_what_may_not_be_read_is_named_with_its_grant(database: SQLServer, dsn: str) -> None:
    def refused() -> str:
        result = CliRunner().invoke(main, ["serve", "--listen", "127.0.0.1:0", "--store", dsn])
        assert result.exit_code in (2, 3)
        return result.stderr.strip()

    text = refused()
    assert "the account lacks SELECT on od_d`db.ta'b le" in text
    sql(database, f"REVOKE SELECT ON innodb_memcache.* FROM {USER}")
    text_of_configuration = refused()
    granted(database, text_of_configuration)
    assert refused() == text
    granted(database, text)
    assert received(dsn).startswith(lacking("INSERT, UPDATE, DELETE"))
    result = CliRunner().invoke(
        main, ["serve", "--listen", "127.0.0.1:0", "--set", "row_cache_binlog=1", "--store", dsn]
    )
    if "cannot read the log" in result.stderr:  # MariaDB has no log without an option
        assert f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}" in result.stderr
