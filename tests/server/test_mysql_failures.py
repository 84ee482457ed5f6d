"""What fails between kvref and its database: each command ends with an answer that is true, and the next one works."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import pymysql
import pytest
from helpers.commands import kvref
from helpers.database import database_or_skip, map_table, sql, stopped, until_one_waits, until_rows
from helpers.live import MYSQL_8
from helpers.proxy import proxy_to
from helpers.serving import Served, ask, serving, stats
from helpers.waiting import until
from server.conversations import Frame, Peer
from server.writers import UNKNOWN

from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
HELLO = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
PATIENCE = 2.0  # seconds: 1 for a lock, 1 for an answer
OPTIONS = ("--max-allowed-packet=1M",)


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param, OPTIONS) as server:
        sql(server, "CREATE USER 'kv'@'%'", "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO 'kv'@'%'")
        yield server


def dsn(database: SQLServer, *, port: int | None = None, connections: int = 8) -> str:
    return f"mysql://kv@{database.host}:{port or database.port}/?timeout=1&connections={connections}"


@pytest.fixture
def served(database: SQLServer) -> Iterator[Served]:
    with serving(dsn(database), "--set", "innodb_lock_wait_timeout=1") as running:
        yield running
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


# What vtgate replies of a tablet whose database was restarted (Vitess 0.24.4).
STALE = (
    2006,
    "target: innodb_memcache.0.primary: vttablet: rpc error: code = Unavailable desc = conn 71: Write(packet) failed:"
    " write unix @->/sql.sock: write: broken pipe (errno 2006) (sqlstate HY000)",
)
NO_TABLET = (1105, 'target: test.-80.primary: no healthy tablet available for \'keyspace:"test" shard:"-80"\'')


def kill_connections(database: SQLServer) -> int:
    found = sql(database, "SELECT id FROM information_schema.processlist WHERE user = 'kv'")
    for (number,) in found:
        with suppress(pymysql.err.OperationalError):  # gone already
            sql(database, f"KILL {number}")
    return len(found)


def together(served: Served, clients: int, data: bytes) -> list[bytes]:
    """Send on so many connections at once."""

    def one(client: socket.socket) -> bytes:
        with client:
            return ask(client, data)

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(one, [served.connect() for _ in range(clients)]))


@pytest.mark.parametrize(
    ("servers", "statement"),
    [
        ("127.0.0.1:{}", b"SET SESSION sql_mode"),
        ("127.0.0.1:{}", b"config_options"),
        ("127.0.0.1:1,127.0.0.1:{}", b"SHOW GLOBAL VARIABLES"),
    ],
    ids=["session", "configuration", "status"],
)
def test_a_start_waits_for_tablets_of_vitess_that_replace_stale_connections(
    database: SQLServer, servers: str, statement: bytes
) -> None:
    with proxy_to(database.host, database.port) as proxy:
        proxy.refuse(statement, STALE, NO_TABLET, STALE)
        with serving(f"mysql://kv@{servers.format(proxy.port)}/?timeout=1") as served, served.connect() as client:
            assert proxy.refusals == 0
            assert sum("next attempt in" in line for line in served.log) == 3
            assert ask(client, b"get AA\r\n") == HELLO


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (NO_TABLET, 6),
        ((2006, "MySQL server has gone away"), 1),  # not of a tablet
        ((1105, "target: test.-80.primary: vttablet: rpc error: code = Unknown desc = unknown"), 1),
    ],
)
def test_a_start_gives_up_after_some_errors_of_a_tablet_and_at_once_after_others(
    database: SQLServer, error: tuple[int, str], attempts: int
) -> None:
    with proxy_to(database.host, database.port) as proxy:
        proxy.refuse(b"config_options", *[error] * 10)
        refused = kvref("serve", "--store", f"mysql://kv@127.0.0.1:{proxy.port}/", "--listen", "127.0.0.1:0")
        assert 10 - proxy.refusals == attempts
    assert refused.returncode == 3
    assert f"Error: {error[0]} " in refused.stderr


def test_connections_to_a_server_that_has_refused_a_write_are_replaced(database: SQLServer, served: Served) -> None:
    def connections() -> set[tuple[int]]:
        return {*sql(database, "SELECT id FROM information_schema.processlist WHERE user = 'kv'")}

    with served.connect() as client:
        for _ in range(2):  # the first one may take another connection than those behind it
            assert ask(client, b"set n 0 0 1\r\n0\r\n") == b"STORED\r\n"
        writing = connections()
        for _ in range(2):
            assert ask(client, b"get AA\r\n") == HELLO
        reading = connections() - writing
        assert reading
        sql(database, "SET GLOBAL read_only = 1")
        try:
            assert ask(client, b"set n 0 0 1\r\n1\r\n").startswith(b"SERVER_ERROR 1290 ")
        finally:
            sql(database, "SET GLOBAL read_only = 0")
        assert ask(client, b"set n 0 0 1\r\n1\r\n") == b"STORED\r\n"
        assert ask(client, b"get AA\r\n") == HELLO
        # The address may lead to another server by now.
        until(lambda: writing - connections(), seconds=20)
        until(lambda: not reading & connections(), seconds=20)


@pytest.mark.parametrize("how", ["killed", "idle for too long"])
def test_connections_that_the_server_closed_while_nobody_used_them(database: SQLServer, how: str) -> None:
    if how != "killed":
        sql(database, "SET GLOBAL wait_timeout = 1")
    try:
        with serving(dsn(database)) as served, served.connect() as client:
            together(served, 8, b"get AA\r\nset n 0 0 1\r\n0\r\n" * 20)
            if how == "killed":
                assert kill_connections(database) > 1
            else:
                until_rows(database, "SELECT id FROM information_schema.processlist WHERE user = 'kv'", [])
            assert ask(client, b"set n 0 0 1\r\n1\r\nincr n 1\r\nget AA\r\n") == b"STORED\r\n2\r\n" + HELLO
    finally:
        sql(database, "SET GLOBAL wait_timeout = 28800", "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def test_connections_killed_in_the_middle_of_commands(database: SQLServer, served: Served) -> None:
    stop, replies = threading.Event(), list[bytes]()

    def count(client: socket.socket) -> None:
        with client:
            while not stop.is_set():
                replies.append(ask(client, b"incr n 1\r\n"))

    def acknowledged() -> int:
        return sum(reply.strip().isdigit() for reply in list(replies))

    with served.connect() as client:
        assert ask(client, b"set n 0 0 1\r\n0\r\n") == b"STORED\r\n"
        with ThreadPoolExecutor(6) as pool:
            counts = [pool.submit(count, served.connect()) for _ in range(6)]
            until, killed = time.monotonic() + 1.2, 0
            while time.monotonic() < until or killed <= 10 or acknowledged() <= 20:
                killed += kill_connections(database)
            stop.set()
            for each in counts:
                each.result()
        ((value,),) = sql(database, "SELECT c2 FROM test.demo_test WHERE c1 = 'n'")
        unknown = sum(UNKNOWN in reply for reply in replies)
        assert acknowledged() <= int(value) <= acknowledged() + unknown
        assert ask(client, b"incr n 1\r\n") == b"%d\r\n" % (int(value) + 1)


def test_an_increment_whose_connection_is_cut_counts_once_or_says_that_it_may(database: SQLServer) -> None:
    value = 0
    with ExitStack() as stack:
        proxy = stack.enter_context(proxy_to(database.host, database.port))
        where = dsn(database, port=proxy.port)
        served = stack.enter_context(serving(where, "--set", "innodb_lock_wait_timeout=1"))
        client = stack.enter_context(served.connect())
        assert ask(client, b"set n 0 0 1\r\n0\r\n") == b"STORED\r\n"
        # The byte in front of a statement is 3; a statement before the commit is tried again on another connection.
        for received, how, answer, added in (
            (b"\x03UPDATE", "before", b"", 1),
            (b"\x03UPDATE", "after", b"", 1),
            (b"FOR UPDATE", "after", b"", 1),
            (b"\x03COMMIT", "before", UNKNOWN, 0),
            (b"\x03COMMIT", "after", UNKNOWN, 1),
            (b"\x03COMMIT", "silence", b"no answer from the database within 2 s: " + UNKNOWN, 0),
        ):
            proxy.trap(received, how)
            value += added
            assert (answer or b"%d\r\n" % value) in ask(client, b"incr n 1\r\n"), (received, how)
            # The server may still be at it.
            until_rows(database, "SELECT c2 FROM test.demo_test WHERE c1 = 'n'", [(str(value),)])
            value += 1
            assert ask(client, b"incr n 1\r\n") == b"%d\r\n" % value
    sql(database, "DELETE FROM test.demo_test WHERE c1 = 'n'")


def test_a_get_whose_connection_is_cut_looks_each_word_up_in_its_mapping(database: SQLServer) -> None:
    map_table(database, "second", "v", "k VARCHAR(9) NOT NULL", "v VARCHAR(9)", "PRIMARY KEY (k)")
    sql(database, "INSERT INTO test.second VALUES ('AA', 'other'), ('BB', 'other')")
    found = HELLO.removesuffix(b"END\r\n") + b"VALUE @@second.AA 0 5\r\nother\r\nEND\r\n"
    try:
        with ExitStack() as stack:
            proxy = stack.enter_context(proxy_to(database.host, database.port))
            served = stack.enter_context(serving(dsn(database, port=proxy.port)))
            client = stack.enter_context(served.connect())
            before = stats(client)
            proxy.trap(b"FROM `test`.`second`", "before")
            assert ask(client, b"get AA @@second.AA\r\n") == found
            assert proxy.trapped
            assert ask(client, b"get BB\r\n") == b"VALUE BB 0 5\r\nother\r\nEND\r\n"
            assert int(stats(client)["get_hits"]) - int(before["get_hits"]) == 3
    finally:
        sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'second'", "DROP TABLE test.second")


def test_a_server_that_hangs(database: SQLServer) -> None:
    two = dsn(database, connections=2)
    with serving(two, "--set", "innodb_lock_wait_timeout=1") as served, served.connect() as client:
        assert ask(client, b"set n 0 0 1\r\n0\r\n") == b"STORED\r\n"
        with stopped(database):
            begun = time.monotonic()
            answers = together(served, 5, b"incr n 1\r\n")
            # The last ones wait for a connection, then for an answer.
            assert time.monotonic() - begun > PATIENCE - 0.5
        assert all(
            answer.startswith(b"SERVER_ERROR ")
            and (b"no answer" in answer or b"none of 2 connections to the database became free" in answer)
            for answer in answers
        )
        assert ask(client, b"incr n 1\r\nget AA\r\n") == b"1\r\n" + HELLO
    sql(database, "DELETE FROM test.demo_test WHERE c1 = 'n'")


def test_binary_gets_of_a_server_that_hangs(database: SQLServer) -> None:
    with serving(dsn(database, connections=8), "--set", "innodb_lock_wait_timeout=1") as served, ExitStack() as stack:
        peer = Peer(served, stack)
        gets: list[Frame] = [(0x0C, b"AA", b"", b""), (0x0D, b"AA", b"", b""), (0x0A, b"", b"", b"")]
        found = peer.exchange_frames(gets, 0)
        assert [reply[1] for reply in found] == [0, 0, 0]
        with stopped(database):
            replies = peer.exchange_frames(gets, 0)
        assert [reply[1] for reply in replies] == [0x84, 0x84, 0]
        assert all(b"no answer" in bytes(reply[-1]) for reply in replies[:2])
        assert peer.exchange_frames(gets, 0) == found


def test_a_table_that_ddl_holds(database: SQLServer, served: Served) -> None:
    locked = b"SERVER_ERROR lock wait timeout\r\n"
    with closing(database.connect(30)) as other, other.cursor() as cursor, served.connect() as client:
        cursor.execute("LOCK TABLES test.demo_test WRITE")
        assert together(served, 3, b"get AA\r\n") == [locked] * 3
        assert together(served, 2, b"set AA 0 0 1\r\nx\r\n") == [locked] * 2
        cursor.execute("UNLOCK TABLES")
        assert ask(client, b"get AA\r\n") == HELLO
        cursor.execute("BEGIN")
        cursor.execute("SELECT COUNT(*) FROM test.demo_test")
        alter = threading.Thread(target=sql, args=(database, "ALTER TABLE test.demo_test COMMENT 'new'"))
        alter.start()
        waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'Waiting for table metadata lock'"
        until_rows(database, waiting, [(1,)])
        assert ask(client, b"get AA\r\n") == locked
        cursor.execute("COMMIT")
        alter.join(timeout=30)
        assert ask(client, b"get AA\r\n") == HELLO


def test_a_deadlock_is_tried_again(database: SQLServer, served: Served) -> None:
    map_table(database, "knot", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)")
    sql(database, "INSERT INTO test.knot VALUES ('a', '1'), ('z', '1')")
    with (
        closing(database.connect(30)) as other,
        other.cursor() as cursor,
        served.connect() as client,
        ExitStack() as end,
    ):
        end.callback(
            sql, database, "DELETE FROM innodb_memcache.containers WHERE name = 'knot'", "DROP TABLE test.knot"
        )
        assert ask(client, b"bind knot\r\n") == b"SUCCEED\r\n"
        ((before,),) = sql(
            database, "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
        )
        cursor.execute("BEGIN")
        # The server gives up the transaction that changed less, which is to be kvref's.
        cursor.executemany("INSERT INTO test.demo_test (c1) VALUES (%s)", [(f"more{n}",) for n in range(50)])
        cursor.execute("UPDATE test.knot SET v = '2' WHERE k = 'z'")
        client.sendall(b"flush_all\r\n")  # locks a, waits for z
        until_one_waits(database)
        cursor.execute("UPDATE test.knot SET v = '2' WHERE k = 'a'")
        cursor.execute("COMMIT")
        assert ask(client, b"") == b"OK\r\n"
        ((after,),) = sql(database, "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'")
        assert (after - before, sql(database, "SELECT * FROM test.knot")) == (1, [])


def test_a_statement_that_is_killed(database: SQLServer, served: Served) -> None:
    with closing(database.connect(30)) as other, other.cursor() as cursor, served.connect() as client:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE test.demo_test SET c2 = 'mine' WHERE c1 = 'AA'")
        client.sendall(b"set AA 0 0 1\r\nx\r\n")
        until_one_waits(database)
        ((number,),) = sql(
            database, "SELECT id FROM information_schema.processlist WHERE user = 'kv' AND info LIKE '%FOR UPDATE'"
        )
        sql(database, f"KILL QUERY {number}")
        assert ask(client, b"").startswith(b"SERVER_ERROR 1317 Query execution was interrupted")
        cursor.execute("ROLLBACK")
        assert ask(client, b"get AA\r\n") == HELLO


def test_a_value_that_no_packet_holds(database: SQLServer, served: Served) -> None:
    map_table(database, "large", "v", "k VARCHAR(9) PRIMARY KEY", "v LONGTEXT")
    with served.connect() as client:
        assert ask(client, b"bind large\r\nset a 0 0 400000\r\n" + b"x" * 400_000 + b"\r\n") == b"SUCCEED\r\nSTORED\r\n"
        for verb in (b"set", b"append"):
            answer = ask(client, verb + b" a 0 0 600000\r\n" + b"\\" * 600_000 + b"\r\n")  # as hexadecimal digits
            assert answer.startswith(b"SERVER_ERROR 1153 max_allowed_packet is 1048576, this statement has ")
        assert len(ask(client, b"get a\r\n")) == 400_000 + len(b"VALUE a 0 400000\r\n\r\nEND\r\n")
    sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'large'", "DROP TABLE test.large")
