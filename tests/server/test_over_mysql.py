"""kvref over InnoDB of live servers: the wire and SQL side by side, and what fails."""

from __future__ import annotations

import time
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


def test_both_channels_see_the_same_rows(database: SQLServer, served: Served) -> None:
    with served.connect() as client:
        assert ask(client, b"get AA\r\nset \xc3\xa9 7 0 6\r\nh\xc3\xa9llo\r\n") == HELLO + b"STORED\r\n"
        assert ask(client, b"incr n 1\r\nset n 0 0 1\r\n5\r\nincr n 7\r\n") == b"NOT_FOUND\r\nSTORED\r\n12\r\n"
        rows = sql(database, "SELECT c1, c2, c3 FROM test.demo_test WHERE c1 <> 'AA' ORDER BY c3")
        assert rows == [("n", "12", 0), ("é", "héllo", 7)]
        sql(database, "UPDATE test.demo_test SET c2 = 'by SQL' WHERE c1 = 'n'")
        assert ask(client, b"get n\r\nget @>=n@<=n\r\n") == b"VALUE n 0 6\r\nby SQL\r\nEND\r\n" * 2
        assert ask(client, b"delete n\r\nget n\r\n") == b"DELETED\r\nEND\r\n"


def test_a_touch_writes_the_time_alone(database: SQLServer, served: Served) -> None:
    sql(database, "INSERT INTO test.demo_test (c1, c2, c5) VALUES ('t', 'x', 0)")
    with served.connect() as client:
        assert ask(client, b"touch t 2000000000\r\ntouch t 2000000000\r\n") == b"TOUCHED\r\nTOUCHED\r\n"
        assert ask(client, b"gats 2000000001 t\r\n") == b"VALUE t 0 1 0\r\nx\r\nEND\r\n"
    assert sql(database, "SELECT c2, c3, c4, c5 FROM test.demo_test WHERE c1 = 't'") == [("x", None, None, 2000000001)]


def test_one_new_key_from_many_connections(database: SQLServer, served: Served) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(served.connect()) for _ in range(24)]
        for round_ in range(5):
            for client in clients:
                client.sendall(b"set new%d 0 0 1\r\nx\r\nincr count%d 1\r\n" % (round_, round_))
            for client in clients:
                assert ask(client, b"") == b"STORED\r\nNOT_FOUND\r\n"
            assert ask(clients[0], b"set count 0 0 1\r\n0\r\n") == b"STORED\r\n"
            for client in clients:
                client.sendall(b"incr count 1\r\n")
            answers = sorted(int(ask(client, b"")) for client in clients)
            assert answers == list(range(1, len(clients) + 1))
    assert sql(database, "SELECT COUNT(*) FROM test.demo_test WHERE c1 LIKE 'new%'") == [(5,)]


def test_a_row_that_sql_has_locked(database: SQLServer, served: Served) -> None:
    with closing(database.connect()) as other, other.cursor() as cursor, served.connect() as client:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE test.demo_test SET c2 = 'mine' WHERE c1 = 'AA'")
        begun = time.monotonic()
        assert ask(client, b"set AA 0 0 1\r\nx\r\n") == b"SERVER_ERROR lock wait timeout\r\n"
        assert time.monotonic() - begun > 0.8
        # By default a read sees what is committed, and waits for no lock.
        assert ask(client, b"get AA\r\nset other 0 0 1\r\nx\r\n") == HELLO + b"STORED\r\n"
        cursor.execute("ROLLBACK")
        assert ask(client, b"get AA\r\n") == HELLO
        assert ask(client, b"touch AA\r\nset AA 8 0 12\r\nHELLO, HELLO\r\n").endswith(b"STORED\r\n")


def test_ddl_counts_within_a_second(database: SQLServer, served: Served) -> None:
    sql(
        database,
        "CREATE TABLE test.shop (id VARCHAR(9) PRIMARY KEY, v VARCHAR(9), w VARCHAR(9)) ENGINE = InnoDB",
        "INSERT INTO innodb_memcache.containers VALUES ('shop', 'test', 'shop', 'id', 'v|w', '0', '0', '0', 'PRIMARY')",
    )
    try:
        with served.connect() as client:
            assert ask(client, b"set @@shop.a 0 0 3\r\nx|y\r\n") == b"STORED\r\n"
            sql(database, "ALTER TABLE test.shop DROP COLUMN w")
            answer = ask(client, b"get a\r\n")
            assert answer.startswith(b"SERVER_ERROR container 'shop': table `test`.`shop` has no value column 'w'")
            sql(database, "ALTER TABLE test.shop ADD COLUMN w VARCHAR(3) DEFAULT 'new'")
            until_equal(lambda: ask(client, b"get a\r\n"), b"VALUE a 0 5\r\nx|new\r\nEND\r\n")
            refused = b"SERVER_ERROR object too large for cache: column w takes 3 characters\r\n"
            assert ask(client, b"set b 0 0 8\r\nx|longer\r\n") == refused
            sql(database, "DROP TABLE test.shop")
            assert b"there is no table test.shop" in ask(client, b"get a\r\n")
            assert ask(client, b"get @@aaa.AA\r\n").startswith(b"VALUE @@aaa.AA")
    finally:
        sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'shop'", "DROP TABLE IF EXISTS test.shop")


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


def test_an_account_that_lacks_a_privilege(database: SQLServer) -> None:
    sql(
        database,
        "CREATE USER 'kv'@'%' IDENTIFIED BY 'pä55'",
        "GRANT SELECT ON innodb_memcache.* TO 'kv'@'%'",
        "GRANT SELECT ON test.demo_test TO 'kv'@'%'",
    )
    dsn = f"mysql://kv@{database.host}:{database.port}/"
    try:
        refused = kvref("serve", "--store", dsn)
        assert refused.returncode == 3
        assert "1045 Access denied for user 'kv'" in refused.stderr
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KVREF_MYSQL_PASSWORD", "pä55")
            with serving(dsn) as served, served.connect() as client:
                assert ask(client, b"get AA\r\n") == HELLO
                answer = ask(client, b"set AA 0 0 1\r\nx\r\n")
                assert answer.startswith(b"SERVER_ERROR 1142 ")
                assert b"'kv'@" in answer
                sql(database, "GRANT INSERT, UPDATE, DELETE ON test.demo_test TO 'kv'@'%'")
                assert ask(client, b"set n 0 0 1\r\nx\r\ndelete n\r\n") == b"STORED\r\nDELETED\r\n"
    finally:
        sql(database, "DROP USER 'kv'@'%'")


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


def test_a_server_that_takes_no_writes(database: SQLServer) -> None:
    sql(
        database,
        "CREATE USER 'kv'@'%' IDENTIFIED BY ''",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO 'kv'@'%'",
        "SET GLOBAL read_only = 1",
    )
    try:
        with serving(f"mysql://kv@{database.host}:{database.port}/") as served, served.connect() as client:
            assert ask(client, b"set n 0 0 1\r\nx\r\n").startswith(b"SERVER_ERROR 1290 ")
            assert ask(client, b"get AA\r\n") == HELLO
            sql(database, "SET GLOBAL read_only = 0")
            assert ask(client, b"set n 0 0 1\r\nx\r\ndelete n\r\n") == b"STORED\r\nDELETED\r\n"
    finally:
        sql(database, "SET GLOBAL read_only = 0", "DROP USER 'kv'@'%'")


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
