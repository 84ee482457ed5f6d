"""Several servers in one DSN: which one is used, when it is replaced, and what happens to its connections."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pymysql
import pytest
from helpers.database import sql
from helpers.live import sql_server_or_skip
from helpers.waiting import until, until_risen
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from kvref import profiles
from kvref.errors import ConfigError, StoreError
from kvref.storage.mysql import cluster
from kvref.storage.mysql.cluster import Nodes
from kvref.storage.mysql.login import parse
from kvref.storage.mysql.store import MySQLStore
from kvref_testbed.targets import SQLServer
from kvref_testbed.targets.ports import free_port

LOCK_WAIT = 50.0
SECONDS = 30.0  # to wait for what comes soon

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def first() -> Iterator[SQLServer]:
    with sql_server_or_skip("mariadb") as server:
        yield server


@pytest.fixture(scope="module")
def second() -> Iterator[SQLServer]:
    with sql_server_or_skip("mariadb") as server:
        yield server


@contextmanager
def nodes_of(*ports: int, user: str = "root", options: str = "?timeout=1") -> Iterator[Nodes]:
    """Look after servers of loopback for the block."""
    nodes = Nodes(parse(f"mysql://{user}@{','.join(f'127.0.0.1:{port}' for port in ports)}/{options}", {}))
    try:
        yield nodes
    finally:
        nodes.close()


def port_of(connection: Connection[Cursor]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@port")
        ((port,),) = cursor.fetchall()
    return int(port)


def used(nodes: Nodes) -> int:
    """Return the port of the server that a new connection leads to."""
    with closing(nodes.connect(LOCK_WAIT)) as connection:
        return port_of(connection)


def until_looked_at(server: SQLServer) -> None:
    """Wait until the state of a server is queried twice; that of the one in use is, every second."""

    def styles() -> int:
        ((_, number),) = sql(server, "SHOW GLOBAL STATUS LIKE 'Com_show_variables'")
        return int(number)

    until_risen(lambda: [styles()], 2)


@contextmanager
def read_only(*servers: SQLServer) -> Iterator[None]:
    for each in servers:
        sql(each, "SET GLOBAL read_only = 1")
    try:
        yield
    finally:
        for each in servers:
            sql(each, "SET GLOBAL read_only = 0")


def test_the_first_that_serves_is_used(first: SQLServer, second: SQLServer) -> None:
    nobody = free_port()
    for ports, expected in (
        ((first.port, second.port), first),
        ((second.port, first.port), second),
        ((nobody, second.port, first.port), second),
    ):
        with nodes_of(*ports) as nodes:
            assert [used(nodes), used(nodes)] == [expected.port] * 2


def test_one_that_is_read_only_comes_last(first: SQLServer, second: SQLServer) -> None:
    with nodes_of(first.port, second.port) as nodes, read_only(first):
        assert used(nodes) == second.port
    with nodes_of(second.port, first.port) as nodes, read_only(first, second):
        assert used(nodes) == second.port


def test_who_is_refused_a_write_goes_to_one_that_takes_it(first: SQLServer, second: SQLServer) -> None:
    with nodes_of(first.port, second.port) as nodes, closing(nodes.connect(LOCK_WAIT)) as connection:
        with read_only(first):
            assert nodes.has_successor(connection)
            assert (nodes.is_stale(connection), used(nodes)) == (True, second.port)
            assert nodes.has_successor(connection)  # another thread has found it
        with closing(nodes.connect(LOCK_WAIT)) as now, read_only(first, second):
            assert not nodes.has_successor(now)
            assert not nodes.is_stale(now)


def test_all_connections_to_an_only_server_are_left_when_it_refuses_a_write(
    first: SQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CHECK_INTERVAL", 1e9)  # seconds
    with nodes_of(first.port) as nodes, ExitStack() as stack:

        def two() -> list[Connection[Cursor]]:
            return [stack.enter_context(closing(nodes.connect(LOCK_WAIT))) for _ in range(2)]

        before = two()
        assert not any(map(nodes.is_stale, before))
        assert not nodes.has_successor(before[0])
        assert all(map(nodes.is_stale, before))
        now = two()
        assert not nodes.has_successor(now[0])
        assert [*map(nodes.is_stale, now)] == [True, False]
        monkeypatch.setattr(cluster, "CHECK_INTERVAL", 0.0)
        assert not nodes.has_successor(now[0])
        assert all(map(nodes.is_stale, now))


def test_one_that_becomes_read_only_is_left(first: SQLServer, second: SQLServer) -> None:
    with nodes_of(first.port, second.port) as nodes, closing(nodes.connect(LOCK_WAIT)) as connection:
        assert not nodes.is_stale(connection)
        with read_only(first):
            until(lambda: nodes.is_stale(connection))
            assert used(nodes) == second.port
            # It is not cut off: what is open in it comes to its end.
            assert port_of(connection) == first.port
        assert used(nodes) == second.port


def test_one_that_ends_is_left_and_not_gone_back_to(
    first: SQLServer, second: SQLServer, caplog: pytest.LogCaptureFixture
) -> None:
    with nodes_of(first.port, second.port) as nodes, closing(nodes.connect(LOCK_WAIT)) as connection:
        with caplog.at_level(logging.WARNING, "kvref.storage"):
            first.kill()
            assert used(nodes) == second.port
        assert nodes.is_stale(connection)
        (output,) = caplog.messages
        assert output.startswith(f"store mysql://root@127.0.0.1:{first.port}/: 2")
        assert output.endswith(f": mysql://root@127.0.0.1:{second.port}/ is used now")
        first.start()
        until_looked_at(second)
        assert used(nodes) == second.port


def test_one_that_hangs_is_left_and_wakes_whoever_waits_for_it(first: SQLServer, second: SQLServer) -> None:
    with nodes_of(first.port, second.port) as nodes, closing(nodes.connect(LOCK_WAIT)) as connection:
        failures: list[Exception] = []

        def wait() -> None:
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT SLEEP(45)")
            except pymysql.err.MySQLError as error:
                failures.append(error)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        until(lambda: sql(first, "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"))
        ((file,),) = sql(first, "SELECT @@pid_file")
        process = int(Path(file).read_text())
        os.kill(process, signal.SIGSTOP)
        try:
            waiting.join(SECONDS)
            assert [error.args[0] for error in failures] == [2013]
            assert nodes.is_stale(connection)
            assert used(nodes) == second.port
        finally:
            os.kill(process, signal.SIGCONT)


def test_a_refusal_is_no_reason_to_leave(first: SQLServer, second: SQLServer) -> None:
    sql(second, "CREATE USER other")
    with nodes_of(first.port, second.port, user="other") as nodes:
        assert used(nodes) == second.port  # at the start whichever serves this account
    sql(first, "CREATE USER other")
    with nodes_of(first.port, second.port, user="other") as nodes:
        assert used(nodes) == first.port
        sql(first, "DROP USER other")
        with pytest.raises(StoreError, match=rf"^store mysql://other@127.0.0.1:{first.port}/: 1045 Access denied"):
            nodes.connect(LOCK_WAIT)


def test_where_none_serves_each_is_named() -> None:
    one, two = free_port(), free_port()
    with nodes_of(one, two) as nodes, pytest.raises(StoreError) as raised:
        nodes.connect(LOCK_WAIT)
    output = str(raised.value)
    assert output.startswith("none of the 2 servers is available: ")
    assert all(f"mysql://root@127.0.0.1:{port}/: 2003 Can't connect" in output for port in (one, two))


def test_what_is_set_for_a_session(first: SQLServer) -> None:
    ((before,),) = sql(first, "SELECT @@global.wsrep_sync_wait")
    sql(first, "SET GLOBAL wsrep_sync_wait = 3")
    try:
        for options, expected in (("", 3), ("?wsrep_sync_wait=0", 0), ("?wsrep_sync_wait=15", 15)):
            with (
                nodes_of(first.port, options=options) as nodes,
                closing(nodes.connect(LOCK_WAIT)) as connection,
                connection.cursor() as cursor,
            ):
                cursor.execute("SELECT @@session.wsrep_sync_wait")
                assert cursor.fetchall() == ((expected,),)
    finally:
        sql(first, f"SET GLOBAL wsrep_sync_wait = {before}")


@pytest.mark.parametrize("reads", ["replica", "session"])
def test_servers_without_a_replication_group_have_no_secondaries_to_read(
    first: SQLServer, second: SQLServer, reads: str
) -> None:
    dsn = f"mysql://root@127.0.0.1:{first.port},127.0.0.1:{second.port}/?reads={reads}"
    with closing(MySQLStore(parse(dsn, {}), profiles.load("kvref"), LOCK_WAIT)) as store:
        text = f"reads={reads} needs a MySQL replication group, and this MariaDB server is in none: leave reads out"
        with pytest.raises(ConfigError, match=text):
            store.read_directory()
