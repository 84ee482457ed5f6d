"""Batches over InnoDB: who sees pending writes, who waits, what ends a batch, and what is left of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest
from helpers.commands import kvref
from helpers.database import database_or_skip, map_table, sql, until_one_waits, until_rows
from helpers.live import MYSQL_8
from helpers.serving import Served, ask, serving
from server.at_once import put

from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
STORED = b"STORED\r\n"
END = b"END\r\n"
LOCKED = b"SERVER_ERROR lock wait timeout\r\n"
KEYS = "SELECT c1 FROM test.demo_test WHERE c1 <> 'AA' ORDER BY c1"


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


@contextmanager
def batching(database: SQLServer, *options: str, connections: int = 16, **settings: int) -> Iterator[Served]:
    """Serve with batches that only an idle commit of a day would end, and clean up."""
    chosen = {"innodb_api_bk_commit_interval": 86400, "innodb_lock_wait_timeout": 1, **settings}
    words = [word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]
    try:
        with serving(f"{database.dsn}?connections={connections}&timeout=2", *words, *options) as served:
            yield served
    finally:
        sql(
            database,
            "DELETE FROM test.demo_test",
            "INSERT INTO test.demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0)",
        )


def found(key: str, value: str = "x", flags: int = 0) -> bytes:
    return f"VALUE {key} {flags} {len(value)}\r\n{value}\r\nEND\r\n".encode()


HELLO = found("AA", "HELLO, HELLO", 8)


def uncommitted(database: SQLServer, query: str) -> list[tuple[Any, ...]]:
    return sql(database, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", query)


def test_a_batch_of_four(database: SQLServer) -> None:
    with batching(database, daemon_memcached_w_batch_size=4) as served, served.connect() as client:
        assert ask(client, put("a") + put("b") + put("c")) == STORED * 3
        assert sql(database, KEYS) == []
        assert uncommitted(database, KEYS) == [("a",), ("b",), ("c",)]
        assert ask(client, put("d")) == STORED
        assert sql(database, KEYS) == [("a",), ("b",), ("c",), ("d",)]
        # The count begins at 0 again; a get of a connection with r=1 commits what it has written.
        assert ask(client, b"delete a\r\n" + put("b", "2") + put("n", "5")) == b"DELETED\r\n" + STORED * 2
        assert ("a",) in sql(database, KEYS)
        assert ask(client, b"incr n 2\r\n") == b"7\r\n"
        assert sql(database, "SELECT c1, c2 FROM test.demo_test WHERE c1 IN ('a', 'b', 'n') ORDER BY c1") == [
            ("b", "2"), ("n", "7"),
        ]  # fmt: skip


def test_what_the_connection_itself_sees(database: SQLServer) -> None:
    batches = {"daemon_memcached_w_batch_size": 100, "daemon_memcached_r_batch_size": 100}
    for level in range(4):
        with batching(database, innodb_api_trx_level=level, **batches) as served, served.connect() as client:
            assert ask(client, b"get AA n\r\n" + put("n", "1")) == HELLO + STORED, level
            assert ask(client, b"get n\r\nappend n 0 0 1\r\n2\r\nincr n 3\r\nget n\r\n") == (
                found("n", "1") + STORED + b"15\r\n" + found("n", "15")
            )
            assert ask(client, b"get @>=n@<=n\r\n") == found("n", "15")
            assert ask(client, b"delete n\r\nget n\r\n" + put("n", "4", "add")) == b"DELETED\r\n" + END + STORED
            assert ask(client, b"delete AA\r\nget AA\r\nget @>=A\r\n") == b"DELETED\r\n" + END + found("n", "4")
            assert sql(database, KEYS) == []


@pytest.mark.parametrize("level", range(4))
def test_what_another_connection_sees(database: SQLServer, level: int) -> None:
    settings = {"innodb_api_trx_level": level, "daemon_memcached_w_batch_size": 100}
    with batching(database, **settings) as served, served.connect() as writer, served.connect() as reader:
        assert ask(writer, put("AA", "new") + put("n")) == STORED * 2
        seen = ask(reader, b"get AA\r\nget n\r\n")
        if level == 0:
            assert seen == found("AA", "new") + found("n")
        elif level < 3:
            assert seen == HELLO + END
        else:
            assert seen == LOCKED * 2  # a shared lock is waited for
        writer.close()
        until_rows(database, KEYS, [("n",)])
        assert ask(reader, b"get AA n\r\n") == found("AA", "new")[:-5] + found("n")


@pytest.mark.parametrize(
    ("level", "profile"),
    [*((level, "kvref") for level in range(4)), (1, "mysql-5.6"), (0, "mysql-8.0"), (1, "mysql-8.0"), (3, "mysql-8.0")],
)
def test_a_batch_of_reads(database: SQLServer, level: int, profile: str) -> None:
    settings = {"innodb_api_trx_level": level, "daemon_memcached_r_batch_size": 4}
    sql(database, "INSERT INTO test.demo_test (c1, c2, c3) VALUES ('gone', 'x', 0), ('other', 'x', 0)")
    with batching(database, "--profile", profile, **settings) as served, served.connect() as client:
        assert ask(client, b"get AA\r\n") == HELLO
        sql(database, "UPDATE test.demo_test SET c2 = 'new', c3 = 0 WHERE c1 = 'AA'")
        sql(database, "DELETE FROM test.demo_test WHERE c1 = 'gone'")
        snapshot = level > 1 or (level == 1 and profile != "kvref")
        vanished = not snapshot or profile == "mysql-8.0"
        assert ask(client, b"get AA\r\nget gone\r\n") == (HELLO if snapshot else found("AA", "new")) + (
            END if vanished else found("gone")
        )
        ranges = profile != "mysql-5.6"
        between = b"" if vanished else found("gone")[:-5]
        assert ask(client, b"get @>=gone@<=other\r\n") == (between + found("other") if ranges else END)
        assert ask(client, b"get AA\r\nget gone\r\n") == found("AA", "new") + END


def test_a_changed_level_counts_from_the_next_transaction(database: SQLServer, tmp_path: Any) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text("[settings]\ninnodb_api_trx_level = 1\n")
    with ExitStack() as stack:
        options = ("--config", str(file))
        served = stack.enter_context(batching(database, *options, daemon_memcached_w_batch_size=9))
        writer, reader = stack.enter_context(served.connect()), stack.enter_context(served.connect())
        assert ask(writer, put("n")) == STORED
        assert ask(reader, b"get n\r\n") == END
        file.write_text("[settings]\ninnodb_api_trx_level = 0\n")
        served.reload()
        assert ask(reader, b"get n\r\n") == found("n")


def test_a_lock_that_is_not_got(database: SQLServer) -> None:
    kept = {"kvref": [("a",), ("b",)], "mysql-8.0": []}
    for profile, rows in kept.items():
        with (
            batching(database, "--profile", profile, daemon_memcached_w_batch_size=3) as served,
            served.connect() as client,
            closing(database.connect()) as other,
            other.cursor() as cursor,
        ):
            cursor.execute("BEGIN")
            cursor.execute("UPDATE test.demo_test SET c2 = 'mine' WHERE c1 = 'AA'")
            refused = LOCKED if profile == "kvref" else b"NOT_STORED\r\n"
            assert ask(client, put("a") + put("AA") + put("b")) == STORED + refused + STORED
            assert uncommitted(database, KEYS) == ([("a",), ("b",)] if rows else [("b",)])
            client.close()
            until_rows(database, KEYS, rows or [("b",)])


def test_an_add_waits_for_the_batch_that_adds_the_key(database: SQLServer) -> None:
    with (
        batching(database, daemon_memcached_w_batch_size=3, innodb_lock_wait_timeout=10) as served,
        served.connect() as one,
        served.connect() as two,
    ):
        assert ask(one, put("n", "1", "add") + put("m")) == STORED * 2
        two.sendall(put("n", "2", "add"))
        until_one_waits(database)
        assert ask(one, put("o")) == STORED  # the third commits
        assert ask(two, b"") == b"NOT_STORED\r\n"
        assert ask(one, b"delete n\r\n") == b"DELETED\r\n"
        two.sendall(put("n", "2", "set"))
        until_one_waits(database)
        one.close()
        assert ask(two, b"get n\r\n") == STORED + found("n", "2")


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0"])
def test_two_batches_that_wait_for_each_other(database: SQLServer, profile: str) -> None:
    settings = {"daemon_memcached_w_batch_size": 9, "innodb_lock_wait_timeout": 10}
    sql(database, "INSERT INTO test.demo_test (c1, c2, c3) VALUES ('BB', 'x', 0)")
    with (
        batching(database, "--profile", profile, **settings) as served,
        served.connect() as one,
        served.connect() as two,
    ):
        assert ask(one, put("AA", "1") + put("one")) == STORED * 2
        assert ask(two, put("BB", "2") + put("two")) == STORED * 2
        one.sendall(put("BB", "1"))
        until_one_waits(database)
        lost = b"SERVER_ERROR deadlock: 2 pending writes are lost\r\n" if profile == "kvref" else b"NOT_STORED\r\n"
        assert ask(two, put("AA", "2")) == lost
        assert ask(one, b"") == STORED
        one.close()
        two.close()
        until_rows(database, KEYS, [("BB",), ("one",)])
        assert sql(database, "SELECT c2 FROM test.demo_test WHERE c1 IN ('AA', 'BB')") == [("1",), ("1",)]


def test_what_commits_an_open_batch(database: SQLServer) -> None:
    settings = {"daemon_memcached_w_batch_size": 100, "innodb_api_bk_commit_interval": 1}
    with batching(database, **settings) as served, served.connect() as client:
        assert ask(client, put("idle")) == STORED
        until_rows(database, KEYS, [("idle",)])
        with served.connect() as lost:
            assert ask(lost, put("lost")) == STORED
        until_rows(database, KEYS, [("idle",), ("lost",)])
        assert ask(client, put("drained")) == STORED
    # `batching` has emptied the table: what a drain commits is seen before that.
    with batching(database, daemon_memcached_w_batch_size=100) as served, served.connect() as client:
        assert ask(client, put("drained")) == STORED
        served.process.terminate()
        served.process.wait(timeout=60)
        assert sql(database, KEYS) == [("drained",)]


def test_a_kill_takes_the_batch_and_its_locks(database: SQLServer) -> None:
    with batching(database, daemon_memcached_w_batch_size=2) as served, served.connect() as client:
        assert ask(client, put("a") + put("b") + put("c")) == STORED * 3
        served.process.kill()
        served.process.wait(timeout=60)
        until_rows(database, "SELECT COUNT(*) FROM information_schema.innodb_trx", [(0,)])
        assert sql(database, KEYS) == [("a",), ("b",)]


def test_a_database_that_is_killed(database: SQLServer) -> None:
    with (
        batching(database, daemon_memcached_w_batch_size=3) as served,
        served.connect() as client,
        served.connect() as idle,
    ):
        assert ask(client, put("a") + put("b")) == STORED * 2
        assert ask(idle, put("c")) == STORED
        database.kill()
        database.start()
        answer = ask(client, put("d"))
        assert answer.startswith(b"SERVER_ERROR 20")
        assert answer.endswith(b": 2 pending writes are lost\r\n")
        assert ask(client, put("e") + b"get AA\r\n") == STORED + HELLO
        idle.close()
        served.wait_for("background commit of a batch failed")
        assert sql(database, KEYS) == [("e",)]


def test_ddl_while_connections_are_idle(database: SQLServer) -> None:
    settings = {"daemon_memcached_w_batch_size": 2, "daemon_memcached_r_batch_size": 2}
    with batching(database, **settings) as served, served.connect() as one, served.connect() as two:
        assert ask(one, put("a") + put("b")) == STORED * 2
        assert ask(two, b"get a\r\nget b\r\n") == found("a") + found("b")
        for comment in ("one", "two"):
            sql(database, "SET SESSION lock_wait_timeout = 1", f"ALTER TABLE test.demo_test COMMENT '{comment}'")
        assert ask(one, put("c") + b"get c\r\n") == STORED + found("c")


def test_ddl_during_a_batch(database: SQLServer) -> None:
    """A table that the batch has not touched yet may change: the batch goes on with its new shape."""
    map_table(database, "shop", "v|w", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)", "w VARCHAR(9)")
    try:
        with batching(database, daemon_memcached_w_batch_size=3) as served, served.connect() as client:
            assert ask(client, put("@@shop.k", "x|y") + put("@@aaa.a")) == STORED * 2
            sql(database, "ALTER TABLE test.shop CHANGE w u VARCHAR(9)", "UPDATE test.shop SET v = 'new'")
            sql(database, "ALTER TABLE test.shop CHANGE u w VARCHAR(9) AFTER k")
            assert ask(client, put("@@shop.k", "n|m")) == STORED
            assert ask(client, b"get k\r\n") == found("k", "n|m")
            assert sql(database, KEYS) == [("a",)]
    finally:
        sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'shop'", "DROP TABLE test.shop")


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_flush_all_during_an_open_batch(database: SQLServer, profile: str) -> None:
    with (
        batching(database, "--profile", profile, daemon_memcached_w_batch_size=9) as served,
        served.connect() as one,
        served.connect() as two,
    ):
        assert ask(one, put("a")) == STORED
        answers = {"kvref": LOCKED, "mysql-8.0": b"SERVER_ERROR failed to flush cache\r\n", "mysql-5.6": b"OK\r\n"}
        begun = time.monotonic()
        assert ask(two, b"flush_all\r\n") == answers[profile]
        assert time.monotonic() - begun > 0.8
        assert ask(one, put("b") + b"get a\r\n") == STORED + found("a")  # commits
        assert sql(database, KEYS) == [("a",), ("b",)]
        assert ask(one, put("c") + b"flush_all\r\nget a\r\n") == STORED + b"OK\r\n" + END
        assert sql(database, "SELECT COUNT(*) FROM test.demo_test") == [(0,)]


def test_more_open_batches_than_connections(database: SQLServer) -> None:
    with ExitStack() as stack:
        served = stack.enter_context(batching(database, connections=4, daemon_memcached_w_batch_size=2))
        clients = [stack.enter_context(served.connect()) for _ in range(4)]
        for number, client in enumerate(clients[:3]):
            assert ask(client, put(f"n{number}")) == STORED
        refused = b"SERVER_ERROR none of 3 connections to the database became free within 3 s\r\n"
        assert ask(clients[3], put("late")) == refused
        clients[3].sendall(put("late"))
        served.until_state("conn_io_queue")
        assert ask(clients[0], put("more")) == STORED
        assert ask(clients[3], b"get late\r\n") == STORED + found("late")


def test_thirty_open_batches(database: SQLServer) -> None:
    with ExitStack() as stack:
        served = stack.enter_context(batching(database, connections=40, daemon_memcached_w_batch_size=5))
        clients: list[socket.socket] = [stack.enter_context(served.connect()) for _ in range(30)]
        for round_ in range(4):
            for number, client in enumerate(clients):
                client.sendall(put(f"n{number}.{round_}"))
            for client in clients:
                assert ask(client, b"") == STORED
        assert sql(database, KEYS) == []
        assert uncommitted(database, "SELECT COUNT(*) FROM test.demo_test WHERE c1 <> 'AA'") == [(120,)]
        for number, client in enumerate(clients):
            client.sendall(put(f"n{number}.last"))
        for client in clients:
            assert ask(client, b"") == STORED
        assert sql(database, "SELECT COUNT(*) FROM test.demo_test WHERE c1 <> 'AA'") == [(150,)]


@pytest.mark.nightly
def test_a_server_that_ends_transactions_whose_wait_is_over() -> None:
    with (
        database_or_skip("mysql-8.0", ["--innodb-rollback-on-timeout=1"]) as strict,
        batching(strict, daemon_memcached_w_batch_size=9) as served,
        served.connect() as one,
        served.connect() as two,
    ):
        assert ask(one, put("AA")) == STORED
        answer = ask(two, put("n") + put("AA"))
        assert answer.startswith(STORED + b"SERVER_ERROR 1205 ")
        assert answer.endswith(b": 1 pending writes are lost\r\n")
        assert ask(two, put("m") + b"get n\r\n") == STORED + END
        assert sql(strict, KEYS) == [("m",)]


def test_settings_that_a_database_cannot_follow(database: SQLServer) -> None:
    with batching(database, innodb_api_disable_rowlock=1, daemon_memcached_w_batch_size=9) as served:
        served.wait_for("innodb_api_disable_rowlock=1 has no effect with mysql://")
        with served.connect() as one, served.connect() as two:
            assert ask(one, put("AA")) == STORED
            assert ask(two, put("AA")) == LOCKED
    refused = kvref(
        "serve", "--listen", "127.0.0.1:0", "--store", f"{database.dsn}?connections=1",
        "--set", "daemon_memcached_w_batch_size=2",
    )  # fmt: skip
    assert refused.returncode == 2
    assert "connections=1 is too few for batches: set at least 2" in " ".join(refused.stderr.split())
