"""Commands that a connection sends at once are carried out together in its open batch over InnoDB."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
from helpers.database import database_or_skip, map_table, sql, until_one_waits, until_rows
from helpers.live import MYSQL_8
from helpers.serving import Served, ask, serving
from server.at_once import common_statements, got, put, serving_without_pauses

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
STORED = b"STORED\r\n"
END = b"END\r\n"
LOCKED = b"SERVER_ERROR lock wait timeout\r\n"
KEYS = "SELECT c1, c2 FROM test.demo_test WHERE c1 <> 'AA' ORDER BY c1"
NAMES = [f"n{number:02d}" for number in range(16)]


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, "SET GLOBAL log_output = 'TABLE'")
        yield server


def options(profile: str, **settings: int) -> list[str]:
    chosen = {"innodb_api_bk_commit_interval": 86400, "innodb_lock_wait_timeout": 1, **settings}
    return ["--profile", profile, *[word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]]


@contextmanager
def batching(database: SQLServer, writes: int, profile: str = "kvref", **settings: int) -> Iterator[Served]:
    """Serve with batches of so many writes, which no idle commit ends, and clean up."""
    try:
        with serving(
            f"{database.dsn}?timeout=2", *options(profile, daemon_memcached_w_batch_size=writes, **settings)
        ) as served:
            yield served
    finally:
        sql(
            database,
            "DELETE FROM test.demo_test",
            "INSERT INTO test.demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0)",
        )


@contextmanager
def clients(served: Served, count: int) -> Iterator[list[socket.socket]]:
    """Connect clients whose next commands are planned."""
    with ExitStack() as stack:
        connected = [stack.enter_context(served.connect()) for _ in range(count)]
        for each in connected:
            assert ask(each, b"get none\r\n") == END
        yield connected


def uncommitted(database: SQLServer) -> list[tuple[str, str]]:
    return sql(database, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", KEYS)


def test_commands_that_arrive_together_share_statements(database: SQLServer) -> None:
    settings = options("kvref", daemon_memcached_w_batch_size=32)
    with serving_without_pauses(database, *settings) as served, clients(served, 1) as (client,):
        sets, changes = [b"".join(put(name, value) for name in NAMES) for value in "12"]
        assert ask(client, sets) == STORED * 16
        sql(database, "SET GLOBAL general_log = ON")
        gets = b"".join(got(name, "2") for name in NAMES)
        assert ask(client, changes) == STORED * 16  # fills the batch
        assert ask(client, b"".join(b"get %b\r\n" % name.encode() for name in NAMES)) == gets
        widths = dict(common_statements(database))
        assert widths["UPDATE"] == widths["SELECT"] == 16
        assert sql(database, KEYS) == [(name, "2") for name in NAMES]
    sql(database, "DELETE FROM test.demo_test WHERE c1 LIKE 'n%'")


def test_sets_of_connections_with_batches_of_reads_alone_share_statements(database: SQLServer) -> None:
    settings = options("kvref", daemon_memcached_r_batch_size=32)
    with serving_without_pauses(database, *settings) as served, clients(served, 1) as (client,):
        assert ask(client, b"".join(put(name) for name in NAMES)) == STORED * 16
        sql(database, "SET GLOBAL general_log = ON")
        assert ask(client, b"".join(put(name, "2") for name in NAMES)) == STORED * 16
        assert max(width for verb, width in common_statements(database) if verb == "UPDATE") > 1
        assert sql(database, KEYS) == [(name, "2") for name in NAMES]
    sql(database, "DELETE FROM test.demo_test WHERE c1 LIKE 'n%'")


def test_a_connection_sees_what_it_has_written_and_a_get_commits(database: SQLServer) -> None:
    with batching(database, 9) as served, clients(served, 2) as (one, two):
        twice = put("a", "1") + put("a", "2") + b"append a 0 0 1\r\n3\r\nincr a 2\r\n"
        assert ask(one, twice + put("b")) == STORED * 3 + b"25\r\n" + STORED
        assert ask(two, b"get a b\r\n") == END
        assert uncommitted(database) == [("a", "25"), ("b", "x")]
        assert ask(one, b"get a\r\nget b\r\nget c\r\n" + put("c")) == got("a", "25") + got("b") + END + STORED
        assert ask(two, b"get a c\r\n") == got("a", "25")
        assert sql(database, KEYS) == [("a", "25"), ("b", "x")]


def test_gets_count_in_both_batches(database: SQLServer) -> None:
    with batching(database, 9, daemon_memcached_r_batch_size=3) as served, clients(served, 1) as (client,):
        sql(database, "INSERT INTO test.demo_test (c1, c2, c3) VALUES ('seen', 'x', 0)")
        assert ask(client, put("a") + b"get a\r\n") == STORED + got("a")  # with `get none`, two reads
        assert sql(database, KEYS) == [("seen", "x")]
        assert ask(client, b"get seen\r\n" + put("b")) == got("seen") + STORED
        assert sql(database, KEYS) == [("a", "x"), ("seen", "x")]


def test_full_batches_within_one_packet(database: SQLServer) -> None:
    with batching(database, 4) as served, clients(served, 1) as (client,):
        assert ask(client, b"".join(put(name) for name in NAMES[:10])) == STORED * 10
        assert sql(database, KEYS) == [(name, "x") for name in NAMES[:8]]
        assert ask(client, b"".join(b"delete %b\r\n" % name.encode() for name in NAMES[:2])) == b"DELETED\r\n" * 2
        assert sql(database, KEYS) == [(name, "x") for name in NAMES[2:10]]


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0"])
def test_a_failed_write_among_others(database: SQLServer, profile: str) -> None:
    with batching(database, 9, profile) as served, clients(served, 1) as (client,):
        assert ask(client, put("a") + put("AA", "1", "add") + put("b")) == STORED + b"NOT_STORED\r\n" + STORED
        kept = [("a", "x"), ("b", "x")] if profile == "kvref" else [("b", "x")]
        assert uncommitted(database) == kept
        client.close()
        until_rows(database, KEYS, kept)


def test_a_row_that_is_not_written_is_free_again(database: SQLServer) -> None:
    with batching(database, 9) as served, clients(served, 2) as (one, two):
        assert ask(one, put("AA", "1", "add") + b"incr AA 1\r\n")[:12] == b"NOT_STORED\r\n"
        assert ask(two, put("AA", "2")) == STORED  # what failed was alone in its batch


def test_a_command_that_is_rejected_before_it_comes_to_its_row_locks_nothing(database: SQLServer) -> None:
    map_table(database, "narrow", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)", "f TINYINT")
    sql(
        database,
        "INSERT INTO test.narrow VALUES ('m', 'x', 0)",
        "UPDATE innodb_memcache.containers SET flags = 'f' WHERE name = 'narrow'",
    )
    try:
        with batching(database, 9) as served, clients(served, 2) as (one, two):
            assert [ask(each, put(f"@@narrow.{key}")) for each, key in ((one, "a"), (two, "b"))] == [STORED] * 2
            refused = b"CLIENT_ERROR 300 is out of the range of column f\r\n"
            assert ask(one, put("c") + b"set m 300 0 1\r\ny\r\n" + put("d")) == STORED + refused + STORED
            assert ask(two, put("m", "2") + put("e")) == STORED * 2
    finally:
        sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'narrow'", "DROP TABLE test.narrow")


def test_a_command_that_waits_leaves_the_rows_of_later_ones_unlocked(database: SQLServer) -> None:
    with batching(database, 3, innodb_lock_wait_timeout=20) as served, ExitStack() as stack:
        one, two = stack.enter_context(clients(served, 2))
        assert ask(two, put("z", "two") + put("y", "two")) == STORED * 2
        one.sendall(put("a", "one") + put("z", "one") + put("b", "one"))
        until_one_waits(database)
        assert one.recv(99) == STORED  # what precedes the command that waits
        assert ask(two, put("b", "two")) == STORED  # commits; if `b` was locked, this were a deadlock
        assert ask(one, b"") == STORED * 2
        assert sql(database, KEYS) == [("a", "one"), ("b", "one"), ("y", "two"), ("z", "one")]


def test_a_row_that_a_program_has_locked(database: SQLServer) -> None:
    sql(database, "INSERT INTO test.demo_test (c1, c2, c3) VALUES ('m', 'x', 0)")
    with (
        batching(database, 9) as served,
        clients(served, 1) as (client,),
        closing(database.connect()) as other,
        other.cursor() as cursor,
    ):
        cursor.execute("BEGIN")
        cursor.execute("UPDATE test.demo_test SET c2 = 'mine' WHERE c1 = 'm'")
        assert ask(client, put("a") + put("m") + put("b") + b"incr m 1\r\n") == STORED + LOCKED + STORED + LOCKED
        cursor.execute("ROLLBACK")
        assert ask(client, put("m", "2") + put("c")) == STORED * 2
        assert uncommitted(database) == [("a", "x"), ("b", "x"), ("c", "x"), ("m", "2")]


def test_a_batch_that_waits_for_a_program_has_locked_no_later_row(database: SQLServer) -> None:
    sql(database, "INSERT INTO test.demo_test (c1, c2, c3) VALUES ('m', 'x', 0), ('p', 'x', 0)")
    with (
        batching(database, 9, innodb_lock_wait_timeout=20) as served,
        clients(served, 1) as (client,),
        closing(database.connect()) as other,
        other.cursor() as cursor,
    ):
        cursor.execute("BEGIN")
        cursor.execute("UPDATE test.demo_test SET c2 = 'mine' WHERE c1 = 'm'")
        assert ask(client, put("a")) == STORED
        client.sendall(put("m") + put("p"))
        until_one_waits(database)
        cursor.execute(
            "UPDATE test.demo_test SET c2 = 'mine' WHERE c1 = 'p'"
        )  # if `p` was locked, this were a deadlock
        cursor.execute("COMMIT")
        assert ask(client, b"") == STORED * 2
        assert uncommitted(database) == [("a", "x"), ("m", "x"), ("p", "x")]


def test_a_key_that_a_program_inserts(database: SQLServer) -> None:
    with (
        batching(database, 9) as served,
        clients(served, 1) as (client,),
        closing(database.connect()) as other,
        other.cursor() as cursor,
    ):
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO test.demo_test (c1, c2, c3) VALUES ('m', 'mine', 0)")
        assert ask(client, put("a") + put("m") + put("AA", "1") + put("b")) == STORED + LOCKED + STORED * 2
        assert uncommitted(database) == [("a", "x"), ("b", "x"), ("m", "mine")]


def test_the_table_rejects_some_of_several_writes(database: SQLServer) -> None:
    map_table(database, "ruled", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)", "CHECK (v <> 'no')")
    rows = "SELECT k, v FROM test.ruled ORDER BY k"
    try:
        with batching(database, 4) as served, clients(served, 1) as (client,):
            assert ask(client, put("@@ruled.a", "1") + put("b", "1")) == STORED * 2
            reply = ask(client, put("a", "2") + put("c", "no") + put("b", "no") + put("d", "2") + put("e", "2"))
            refused = reply.split(b"\r\n")
            assert [each[:12] for each in refused] == [
                b"STORED", b"SERVER_ERROR", b"SERVER_ERROR", b"STORED", b"STORED", b"",
            ]  # fmt: skip
            assert sql(database, rows) == [("a", "2"), ("b", "1"), ("d", "2")]
            assert ask(client, b"get e\r\n") == got("e", "2")
            assert sql(database, rows) == [("a", "2"), ("b", "1"), ("d", "2"), ("e", "2")]
    finally:
        sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'ruled'", "DROP TABLE test.ruled")


def test_a_transaction_that_the_server_has_ended(database: SQLServer) -> None:
    with batching(database, 9) as served, clients(served, 1) as (client,):
        assert ask(client, put("a") + put("b")) == STORED * 2
        ((thread,),) = sql(
            database, "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_rows_modified > 0"
        )
        sql(database, f"KILL {thread}")
        lost, *others = ask(client, put("c") + put("d") + put("e")).splitlines(keepends=True)
        assert lost.startswith(b"SERVER_ERROR")
        assert lost.endswith(b": 2 pending writes are lost\r\n")
        assert others == [STORED] * 2
        assert uncommitted(database) == [("d", "x"), ("e", "x")]
        assert ask(client, b"get c d\r\n") == got("d")


def test_many_connections_that_write_the_same_rows(database: SQLServer) -> None:
    """Sums of increments are exact, whoever waits for whom: all lock rows in the same order."""
    with batching(database, 5, innodb_lock_wait_timeout=20) as served, clients(served, 6) as several:
        assert ask(several[0], put("s", "0") + put("t", "0") + b"get s\r\n") == STORED * 2 + got("s", "0")
        for _ in range(10):
            for client in several:
                client.sendall(b"incr s 1\r\nincr t 1\r\nget s\r\nincr t 1\r\nget none\r\n")
        for client in several:
            assert ask(client, b"").count(b"END") == 20
        assert sql(database, KEYS) == [("s", "60"), ("t", "120")]
