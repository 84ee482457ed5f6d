"""Planned commands over a database server: groups, order, locks, rejected rows, lost connections."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8
from helpers.serving import Served
from helpers.waiting import until
from server.at_once import put, serving_without_pauses

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
STORED = b"STORED\r\n"
# Decides a set, and then fails as no decision should.
FAILING = """
from kvref.engine.plans.store import Storage
from kvref.errors import StoreError
decide = Storage.set
failures = [StoreError("failed")]  # of the group; by steps, the command is carried out
def decide_and_fail(self, row, word, command):
    decision = decide(self, row, word, command)
    if word == b"fails" and failures:
        raise failures.pop()
    return decision
Storage.set = decide_and_fail
"""


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, "SET GLOBAL log_output = 'TABLE'")
        map_table(server, "narrow", "v", "k VARCHAR(32) PRIMARY KEY", "v VARCHAR(20) UNIQUE", "CHECK (v <> 'no')")
        yield server


@pytest.fixture
def served(database: SQLServer) -> Iterator[Served]:
    with serving_without_pauses(database) as running:
        yield running
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def reply(client: socket.socket, count: int) -> bytes:
    """Return so many replies of a line or a get."""
    found = b""
    while len(re.findall(rb"(?m)^(?!VALUE)(?:[A-Z_]+(?: .*)?|\d+)\r$", found)) < count:
        received = client.recv(1 << 16)
        assert received, found
        found += received
    return found


def ask(client: socket.socket, data: bytes, count: int) -> bytes:
    client.sendall(data)
    return reply(client, count)


def logged(database: SQLServer, *verbs: str) -> list[int]:
    """Return how many statements began with each verb since the log was switched on, and end the log."""
    sql(database, "SET GLOBAL general_log = OFF")
    texts = [str(text) for (text,) in sql(database, "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log")]
    sql(database, "TRUNCATE mysql.general_log")
    return [sum(text.startswith(verb) for text in texts) for verb in verbs]


def test_writes_of_all_verbs_share_a_commit_and_gets_a_statement(database: SQLServer, served: Served) -> None:
    with served.connect() as client:
        assert ask(client, put("a", "1") + put("b", "5") + put("c", "x"), 3) == STORED * 3
        sql(database, "SET GLOBAL general_log = ON")
        group = put("new", "1", "add") + b"incr b 2\r\n" + put("c", "y", "append") + b"touch a 100\r\n"
        assert ask(client, group, 4) == STORED + b"7\r\n" + STORED + b"TOUCHED\r\n"
        assert logged(database, "COMMIT", "START TRANSACTION") == [1, 1]
        sql(database, "SET GLOBAL general_log = ON")
        assert ask(client, b"get a\r\nget b\r\ngets new c none\r\n", 3).count(b"VALUE") == 4
        assert logged(database, "SELECT IFNULL", "START TRANSACTION") == [1, 0]
        sql(database, "SET GLOBAL general_log = ON")
        assert ask(client, b"incr b 1\r\n" * 5, 5) == b"8\r\n9\r\n10\r\n11\r\n12\r\n"
        assert logged(database, "COMMIT", "UPDATE") == [1, 5]  # a trigger would see each


def test_a_connection_reads_what_it_has_written_and_no_later_state(served: Served) -> None:
    with served.connect() as client:
        data = b"".join(put("a", str(n)) + b"get a\r\n" for n in range(4)) + b"get A\r\ndelete a\r\nget a\r\n"
        shown = [STORED + b"VALUE a 0 1\r\n%d\r\nEND\r\n" % n for n in range(4)]
        assert ask(client, data, 11) == b"".join(shown) + b"VALUE A 0 1\r\n3\r\nEND\r\nDELETED\r\nEND\r\n"


def test_a_locked_row_delays_only_what_follows_it_on_its_connection(database: SQLServer, served: Served) -> None:
    with served.connect() as client, served.connect() as other, closing(database.connect(60)) as holder:
        assert ask(client, put("a", "0") + put("b", "0"), 2) == STORED * 2
        with holder.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("UPDATE test.demo_test SET c2 = '9' WHERE c1 = 'a'")
            client.sendall(put("b", "1") + b"incr a 1\r\n" + put("b", "2") + b"incr a 1\r\nget b\r\n")
            assert reply(client, 1) == STORED
            assert ask(other, put("c", "1") + b"get c\r\n", 2) == STORED + b"VALUE c 0 1\r\n1\r\nEND\r\n"
            cursor.execute("COMMIT")
        assert reply(client, 4) == b"10\r\n" + STORED + b"11\r\nVALUE b 0 1\r\n2\r\nEND\r\n"


def test_gets_that_lock_share_a_statement_and_wait_for_their_own_rows_alone(database: SQLServer) -> None:
    with (
        serving_without_pauses(database, "--set", "innodb_api_trx_level=3") as served,
        served.connect() as client,
        served.connect() as other,
        closing(database.connect(60)) as holder,
    ):
        assert ask(client, put("a", "x") + put("b", "y"), 2) == STORED * 2
        sql(database, "SET GLOBAL general_log = ON")
        assert ask(client, b"get a\r\nget b\r\nget none\r\n", 3).count(b"VALUE") == 2
        assert logged(database, "SELECT IFNULL", "START TRANSACTION") == [1, 0]
        with holder.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("UPDATE test.demo_test SET c2 = 'z' WHERE c1 = 'a'")
            client.sendall(b"get b\r\nget none a b\r\nget a\r\nget b\r\n")
            assert ask(other, b"get b\r\n", 1) == b"VALUE b 0 1\r\ny\r\nEND\r\n"
            cursor.execute("COMMIT")
        a, b = b"VALUE a 0 1\r\nz\r\n", b"VALUE b 0 1\r\ny\r\n"
        assert reply(client, 4) == b + b"END\r\n" + a + b + b"END\r\n" + a + b"END\r\n" + b + b"END\r\n"
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def test_a_row_that_the_table_refuses_fails_its_command_alone(database: SQLServer, served: Served) -> None:
    with served.connect() as client:
        assert ask(client, b"get @@narrow\r\n", 1).startswith(b"VALUE")
        group = put("k1", "x") + put("k2", "no") + put("k3", "x") + put("k4", "y") + put("k3", "z")
        replies = ask(client, group, 5).split(b"\r\n")
        assert [each[:12] for each in replies] == [
            b"STORED",
            b"SERVER_ERROR",
            b"SERVER_ERROR",
            b"STORED",
            b"STORED",
            b"",
        ]
        # The value of k1 is free once k1 is gone; in the other order, deletes by one statement, it is before.
        ordered = put("k5", "x", "add") + b"delete k1\r\ndelete k3\r\n" + put("k6", "x")
        assert ask(client, ordered, 4).split(b"\r\n")[1:] == [b"DELETED", b"DELETED", b"STORED", b""]
        assert ask(client, b"get k5 k6\r\n", 1) == b"VALUE k6 0 1\r\nx\r\nEND\r\n"
    assert sql(database, "SELECT k, v FROM test.narrow ORDER BY k") == [("k4", "y"), ("k6", "x")]
    sql(database, "DELETE FROM test.narrow")


@pytest.mark.serial
@pytest.mark.parametrize(("index", "statements"), [("a", 1), ("v", 4), ("twice", 4)])
def test_updates_share_a_statement_unless_another_unique_index_may_refuse_one(
    database: SQLServer, served: Served, index: str, statements: int
) -> None:
    columns = "v VARCHAR(20)", "a INT", "twice VARCHAR(40) AS (CONCAT(v, v)) STORED", f"UNIQUE ({index})"
    map_table(database, f"by_{index}", "v", "k VARCHAR(32) PRIMARY KEY", *columns)
    sql(
        database,
        f"INSERT INTO test.by_{index} (k, v, a) VALUES ('k1', 'a', 1), ('k2', 'b', 2), ('k3', 'c', NULL), ('k4', 'd', NULL)",
    )
    with served.connect() as client:
        assert ask(client, f"bind by_{index}\r\n".encode(), 1)
        sql(database, "SET GLOBAL general_log = ON")
        sets = b"".join(put(f"k{number}", f"w{number}") for number in range(1, 5))
        assert ask(client, sets, 4) == STORED * 4
        assert logged(database, "UPDATE") == [statements]
    rows = [("k1", "w1", 1), ("k2", "w2", 2), ("k3", "w3", None), ("k4", "w4", None)]
    assert sql(database, f"SELECT k, v, a FROM test.by_{index} ORDER BY k") == rows


@pytest.mark.serial
def test_commands_are_planned_after_a_reload_that_changes_nothing(database: SQLServer, served: Served) -> None:
    sets = b"".join(put(f"k{number}", "x") for number in range(8))
    with served.connect() as old:
        assert ask(old, sets, 8) == STORED * 8
        served.reload()
        with served.connect() as new:
            for client in (old, new):
                assert ask(client, put("k0", "x"), 1) == STORED
                sql(database, "SET GLOBAL general_log = ON")
                assert ask(client, sets, 8) == STORED * 8
                assert logged(database, "UPDATE") == [1]


def test_a_mark_of_a_command_that_is_decided_again_is_set_once(database: SQLServer, served: Served) -> None:
    columns = "v VARCHAR(20) UNIQUE", "f INT", "c BIGINT UNSIGNED", "e INT", "CHECK (v <> 'no')"
    map_table(database, "marked", "v", "k VARCHAR(32) PRIMARY KEY", *columns)
    sql(
        database,
        "UPDATE innodb_memcache.containers SET flags = 'f', cas_column = 'c', expire_time_column = 'e'"
        " WHERE name = 'marked'",
    )
    with served.connect() as client:
        assert ask(client, b"bind marked\r\n" + put("k", "x") + b"md k I T30\r\n", 3).endswith(STORED + b"HD\r\n")
        # The row is refused, and what follows it on its connection is decided again.
        replies = ask(client, put("refused", "no") + b"mg k T100 s\r\nmg k s\r\n", 3).split(b"\r\n")
        assert replies[1:] == [b"HD s1 X W", b"HD s1 Z X", b""]


@pytest.mark.serial
def test_a_locked_table_is_waited_for_once(database: SQLServer, served: Served) -> None:
    """The lock of a table is not a lock of a row: only MariaDB does not tell them apart, and fails at once."""
    with served.connect() as client, closing(database.connect(60)) as holder, holder.cursor() as cursor:
        assert ask(client, put("a", "0"), 1) == STORED
        cursor.execute("LOCK TABLES test.demo_test WRITE")
        sql(database, "SET GLOBAL general_log = ON")
        client.sendall(put("a", "1"))
        until(lambda: sql(database, "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%% FOR UPDATE'"
                                    " AND info NOT LIKE '%%processlist%%'") == [(1,)])  # fmt: skip
        cursor.execute("UNLOCK TABLES")
        assert reply(client, 1) == STORED
    waits = sql(database, "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'SELECT%%FOR UPDATE SKIP LOCKED'")
    logged(database)
    assert waits[0][0] == (0 if database.version.startswith("8.") else 1)


def test_a_command_that_runs_alone_shows_the_word_of_its_client(database: SQLServer, served: Served) -> None:
    gets = [
        b"get @@aaa.a\r\n",
        b"gets @@aaa.a\r\n",
        b"get a @@aaa.b\r\n",
        b"gat 0 @@aaa.a\r\n",
        b"gats 0 @@aaa.b a\r\n",
    ]
    with served.connect() as client:
        assert ask(client, put("a", "0") + put("b", "1") + b"get @@aaa.a\r\n", 3).count(STORED) == 2
        for each in gets:
            usual = ask(client, each, 1)
            assert b"@@aaa" in usual
            close_connections(database)
            assert ask(client, each, 1) == usual


def close_connections(database: SQLServer) -> None:
    """Let the database close all connections that are not in use."""
    for (number,) in sql(database, "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
                                   " AND command = 'Sleep'"):  # fmt: skip
        sql(database, f"KILL {number}")


def test_a_get_of_several_misses_a_row_that_stays_locked_and_leaves_mappings_selectable(database: SQLServer) -> None:
    options = "--profile", "mysql-8.0", "--set", "innodb_api_trx_level=3", "--set", "innodb_lock_wait_timeout=1"
    sql(database, "INSERT INTO test.narrow VALUES ('a', 'one'), ('b', 'two')")
    with (
        serving_without_pauses(database, *options) as served,
        served.connect() as client,
        closing(database.connect(60)) as holder,
        holder.cursor() as cursor,
    ):
        assert ask(client, b"get @@narrow.none\r\n", 1) == b"END\r\n"
        cursor.execute("BEGIN")
        cursor.execute("UPDATE test.narrow SET v = 'new' WHERE k = 'a'")
        # [more:lockedget-001]
        assert ask(client, b"get @@narrow.a b\r\n", 1) == b"VALUE b 0 3\r\ntwo\r\nEND\r\n"
        assert ask(client, b"get none a zz\r\n", 1) == b"END\r\n"
        assert ask(client, b"get @@aaa.AA\r\n", 1).startswith(b"VALUE @@aaa.AA 8 12\r\n")
        cursor.execute("ROLLBACK")
    sql(database, "DELETE FROM test.narrow")


def test_a_command_whose_decision_fails_is_counted_once(database: SQLServer) -> None:
    with serving_without_pauses(database, changed=FAILING) as served, served.connect() as client:
        assert ask(client, b"get a\r\n", 1) == b"END\r\n"
        assert ask(client, put("fails", "1"), 1) == STORED
        assert ask(client, put("a", "1"), 1) == STORED
        client.sendall(b"stats\r\n")
        assert b"STAT cmd_set 2\r\n" in _until_end(client)
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def _until_end(client: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"END\r\n"):
        received = client.recv(1 << 16)
        assert received, found
        found += received
    return found
