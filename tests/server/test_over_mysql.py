"""kvref over InnoDB of live servers: the wire and SQL side by side, and what fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any

import pymysql
import pytest
from helpers.commands import kvref
from helpers.live import MYSQL_8, missing_skips
from helpers.serving import Served, ask, serving
from helpers.waiting import until_equal

from kvref_testbed import targets
from kvref_testbed.targets.servers import SQLServer

pytestmark = pytest.mark.live
HELLO = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


def sql(database: SQLServer, *statements: str) -> list[tuple[Any, ...]]:
    with closing(database.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb", "mysql-9.7"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with ExitStack() as stack:
        with missing_skips():
            server = stack.enter_context(targets.sql_server(request.param))
        assert kvref("init", "--demo", "--store", server.dsn).returncode == 0
        yield server


@pytest.fixture
def served(database: SQLServer) -> Iterator[Served]:
    with serving(database.dsn, "--set", "innodb_lock_wait_timeout=1") as running:
        yield running
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def test_the_schema_is_made_once(database: SQLServer) -> None:
    result = kvref("init", "--demo", "--store", database.dsn)
    assert (result.returncode, result.stdout) == (0, f"{database.dsn}: the configuration tables already exist\n")
    assert sql(database, "SELECT name, db_table FROM innodb_memcache.containers") == [("aaa", "demo_test")]


@pytest.mark.parametrize(
    ("engine", "cause"), [("ENGINE = MyISAM", "of engine MyISAM"), ("PARTITION BY KEY () PARTITIONS 2", "partitioned")]
)
def test_tables_that_cannot_be_mapped(database: SQLServer, served: Served, engine: str, cause: str) -> None:
    sql(
        database,
        f"CREATE TABLE test.odd (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9)) {engine}",
        "INSERT INTO innodb_memcache.containers VALUES ('odd', 'test', 'odd', 'k', 'v', '0', '0', '0', 'PRIMARY')",
    )
    try:
        with served.connect() as client:
            assert ask(client, b"bind odd\r\n") == b"NOT_FOUND\r\n"
        served.reload()
        assert cause in served.wait_for("`test`.`odd`")
    finally:
        sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'odd'", "DROP TABLE test.odd")


def test_flush_all_of_the_plugin_is_a_truncate_where_the_account_may(database: SQLServer) -> None:
    sql(
        database,
        "CREATE USER 'kv'@'%' IDENTIFIED BY ''",
        "GRANT SELECT ON innodb_memcache.* TO 'kv'@'%'",
        "GRANT SELECT, DELETE ON test.demo_test TO 'kv'@'%'",
        "CREATE TABLE test.deleted (k VARCHAR(32))",
        "CREATE TRIGGER test.fires BEFORE DELETE ON test.demo_test FOR EACH ROW INSERT INTO test.deleted VALUES (OLD.c1)",
    )
    again = "INSERT INTO test.demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0)"
    try:
        with serving(f"mysql://kv@{database.host}:{database.port}/", "--profile", "mysql-8.0") as served:
            for fired in ([("AA",)], []):
                with served.connect() as client:
                    assert ask(client, b"flush_all\r\nget AA\r\n") == b"OK\r\nEND\r\n"
                assert sql(database, "SELECT k FROM test.deleted") == fired
                sql(database, again, "DELETE FROM test.deleted", "GRANT DROP ON test.demo_test TO 'kv'@'%'")
    finally:
        sql(database, "DROP TRIGGER test.fires", "DROP TABLE test.deleted", "DROP USER 'kv'@'%'")


def test_a_server_that_goes_and_comes_back(database: SQLServer, served: Served) -> None:
    with served.connect() as client:
        assert ask(client, b"set kept 0 0 1\r\nx\r\n") == b"STORED\r\n"
        database.kill()
        try:
            assert ask(client, b"get kept\r\nset kept 0 0 1\r\ny\r\n").count(b"SERVER_ERROR ") == 2
        finally:
            database.start()
        assert ask(client, b"get kept\r\nset other 0 0 1\r\ny\r\n") == b"VALUE kept 0 1\r\nx\r\nEND\r\nSTORED\r\n"


def test_more_clients_than_connections(database: SQLServer) -> None:
    sql(
        database,
        "CREATE USER 'kv'@'%' IDENTIFIED BY '' WITH MAX_USER_CONNECTIONS 2",
        "GRANT SELECT ON *.* TO 'kv'@'%'",
    )
    try:
        with ExitStack() as stack:
            served = stack.enter_context(serving(f"mysql://kv@{database.host}:{database.port}/?connections=2"))
            clients = [stack.enter_context(served.connect()) for _ in range(20)]
            for client in clients:
                client.sendall(b"get AA\r\n" * 20)
            for client in clients:
                assert ask(client, b"") == HELLO * 20
    finally:
        sql(database, "DROP USER 'kv'@'%'")


def test_a_server_without_a_free_connection(database: SQLServer) -> None:
    (before,) = sql(database, "SELECT @@GLOBAL.max_connections")[0]
    sql(database, "CREATE USER 'kv'@'%' IDENTIFIED BY ''", "GRANT SELECT ON *.* TO 'kv'@'%'")
    taken = []
    try:
        with serving(f"mysql://kv@{database.host}:{database.port}/") as served, served.connect() as client:
            sql(database, "SET GLOBAL max_connections = 10")
            for _ in range(12):
                with suppress(pymysql.err.OperationalError):
                    taken.append(pymysql.connect(host=database.host, port=database.port, user="kv"))
            assert b": 1040 Too many connections: close other programs' connections" in ask(client, b"get AA\r\n")
            while taken:
                taken.pop().close()
            until_equal(lambda: ask(client, b"get AA\r\n"), HELLO)
    finally:
        for connection in taken:
            connection.close()
        sql(database, f"SET GLOBAL max_connections = {before}", "DROP USER 'kv'@'%'")
