"""Reads through HandlerSocket during DDL, locks, REVOKE and stopped servers: no command waits for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from database import map_table, sql
from server.at_once import Crowd, answer
from server.handlersocket_base import AA, SECRET, VARIABLE, Base, base
from serving import Served, ask, serving
from waiting import until, until_risen

from kvref_testbed.targets import handlersocket

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def database() -> Iterator[Base]:
    with base(handlersocket.LEVEL) as started:
        yield started


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def served(database: Base) -> Iterator[Served]:
    with serving(database.dsn) as running:
        yield running
    sql(database.server, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


@pytest.mark.parametrize("idle", [False, True])
def test_ddl_waits_for_no_longer_than_a_moment(database: Base, served: Served, idle: bool) -> None:
    stop, replies = threading.Event(), list[bytes]()

    def read() -> None:
        with served.connect() as client:
            while not stop.is_set():
                replies.append(ask(client, b"get AA\r\n"))

    with served.connect() as client:
        assert ask(client, b"get AA\r\n") == AA
    threads = [] if idle else [threading.Thread(target=read) for _ in range(4)]
    for each in threads:
        each.start()
    before, took = database.rounds(), []
    try:
        for _ in range(3):
            for statement in (
                "ALTER TABLE test.demo_test ADD COLUMN more INT", "ALTER TABLE test.demo_test DROP COLUMN more",
                "LOCK TABLES test.demo_test WRITE", "OPTIMIZE TABLE test.demo_test",
                "ALTER TABLE test.demo_test MODIFY c2 VARCHAR(900)", "ALTER TABLE test.demo_test MODIFY c2 VARCHAR(1024)",
            ):  # fmt: skip
                begun = time.monotonic()
                sql(database.server, statement)
                took.append(time.monotonic() - begun)
                if not idle:
                    until_risen(lambda: [len(replies)], 10)
    finally:
        stop.set()
        for each in threads:
            each.join(timeout=30)
    assert max(took) < 5, took
    if not idle:
        assert {*replies} == {AA}
        assert database.rounds() > before + 10
    with served.connect() as client:
        assert ask(client, b"get AA\r\n") == AA


def test_ddl_counts_at_once(database: Base) -> None:
    map_table(database.server, "renamed", "v", "k VARCHAR(5) PRIMARY KEY", "v VARCHAR(9)", "w VARCHAR(9)")
    sql(database.server, "INSERT INTO test.renamed VALUES ('abcde', 'v', 'w'), ('abc', 'x', 'y')")
    with serving(database.dsn) as served, Crowd(served, 4) as crowd:
        crowd.ask([b"get @@renamed\r\n"] * 4)
        before = database.rounds()
        for value in (b"v", b"w") * 4:
            assert crowd.ask([b"get abcde\r\n"] * 4) == [b"VALUE abcde 0 1\r\n%s\r\nEND\r\n" % value] * 4
            sql(database.server, "ALTER TABLE test.renamed RENAME COLUMN v TO w, RENAME COLUMN w TO v")
        sql(database.server, "DELETE FROM test.renamed WHERE k = 'abcde'")
        sql(database.server, "ALTER TABLE test.renamed MODIFY k VARCHAR(3)")
        # It would be cut, and the row of `abc` found.
        assert crowd.ask([b"get abcde\r\n"] * 4) == [b"END\r\n"] * 4
        assert crowd.ask([b"get abc\r\n"] * 4) == [b"VALUE abc 0 1\r\nx\r\nEND\r\n"] * 4
        assert database.rounds() > before + 5


def test_a_table_that_is_emptied_dropped_and_made_again(database: Base) -> None:
    map_table(database.server, "again", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(20)")
    with serving(database.dsn) as served, served.connect() as client:
        ask(client, b"get @@again\r\n")
        for number, change in enumerate(("TRUNCATE TABLE test.again", "DROP TABLE test.again")):
            assert ask(client, b"set k 0 0 1\r\n1\r\n") == b"STORED\r\n"
            assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
            sql(database.server, change)
            gone = ask(client, b"get k\r\n")
            assert gone == b"END\r\n" if number == 0 else b"SERVER_ERROR" in gone, gone
        sql(database.server, "CREATE TABLE test.again (k VARCHAR(20) PRIMARY KEY, v VARCHAR(20)) ENGINE = InnoDB")
        sql(database.server, "INSERT INTO test.again VALUES ('k', '2')")
        assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n2\r\nEND\r\n"


@pytest.mark.serial
def test_a_table_that_sql_has_locked_is_in_nobody_elses_way(database: Base) -> None:
    map_table(database.server, "held", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(20)")
    sql(database.server, "INSERT INTO test.held VALUES ('k', '1')")
    with (
        serving(database.dsn) as served, served.connect() as waits, served.connect() as client,
        closing(database.server.connect(30)) as other, other.cursor() as cursor,
    ):  # fmt: skip
        assert ask(waits, b"get @@held.k\r\n") == b"VALUE @@held.k 0 1\r\n1\r\nEND\r\n"
        cursor.execute("LOCK TABLES test.held WRITE")
        waits.sendall(b"get k\r\n")
        assert ask(client, b"get AA\r\n") == AA
        begun = time.monotonic()
        for _ in range(50):
            assert ask(client, b"get AA\r\n") == AA
        assert time.monotonic() - begun < 0.9
        before = database.rounds()
        assert ask(client, b"get AA\r\n") == AA
        assert database.rounds() > before  # its threads do not wait for that table
        cursor.execute("UNLOCK TABLES")
        assert answer(waits) == b"VALUE k 0 1\r\n1\r\nEND\r\n"


def test_a_row_that_sql_has_locked_is_read(database: Base, served: Served) -> None:
    with served.connect() as client, closing(database.server.connect(30)) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM test.demo_test WHERE c1 = 'AA' FOR UPDATE")
        before = database.rounds()
        assert ask(client, b"get AA\r\n") == AA
        assert database.rounds() > before


def test_an_account_sees_no_more_than_by_sql(database: Base) -> None:
    map_table(database.server, "hidden", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(20)")
    grants = [
        f"GRANT SELECT ON {table} TO 'few'@'%'" for table in ("innodb_memcache.*", "test.demo_test", "test.hidden")
    ]
    sql(database.server, "CREATE USER 'few'@'%'", *grants, "INSERT INTO test.hidden VALUES ('k', 'secret')")
    with serving(database.dsn.replace("root@", "few@")) as served, served.connect() as client:
        assert b"secret" in ask(client, b"get @@hidden.k\r\n")
        sql(database.server, "REVOKE SELECT ON test.hidden FROM 'few'@'%'")
        until(lambda: b"denied" in ask(client, b"get k\r\n"))
        assert ask(client, b"get @@aaa.AA\r\n") == AA.replace(b"AA", b"@@aaa.AA")


def test_the_server_goes_and_comes_back(served: Served, database: Base) -> None:
    with served.connect() as client:
        for end in (database.server.kill, database.server.stop):
            assert ask(client, b"get AA\r\n") == AA
            end()
            assert b"SERVER_ERROR" in ask(client, b"get AA\r\n")
            database.server.start()
            sql(database.server, handlersocket.AS_USUAL)
            assert ask(client, b"get AA\r\n") == AA
            before = database.rounds()

            def back(before: int = before) -> bool:
                assert ask(client, b"get AA\r\n") == AA
                return database.rounds() > before

            until(back)


def test_its_threads_are_gone(database: Base, served: Served) -> None:
    """What an administrator ends stays away until the next start; every get is answered by SQL meanwhile."""
    with served.connect() as client:
        assert ask(client, b"get AA\r\n") == AA
        listed = sql(
            database.server, "SELECT id FROM information_schema.processlist WHERE state LIKE 'handlersocket%%'"
        )
        sql(database.server, *(f"KILL {number}" for (number,) in listed))
        for _ in range(20):
            assert ask(client, b"get AA\r\n") == AA
        assert "reads use SQL for" in served.wait_for("HandlerSocket at")
    database.server.stop()
    database.server.start()
    sql(database.server, handlersocket.AS_USUAL)
