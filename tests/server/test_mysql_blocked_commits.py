"""Commits that a backup blocks: writes wait as for a row lock, and none that was answered is lost."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8
from helpers.serving import ask, serving
from helpers.waiting import until

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]
STAGES = ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT")
# Statements that block commits, and what ends that.
BLOCKS = {
    "backup-stage": (tuple(f"BACKUP STAGE {stage}" for stage in STAGES), "BACKUP STAGE END"),
    "read-lock": (("FLUSH TABLES WITH READ LOCK",), "UNLOCK TABLES"),
}
WAITING = "SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for %' AND time >= {}"
COMMANDS = (  # of clients that write at the same time, each with what is stored and what it is answered
    (b"set c0 0 0 3\r\nnew\r\n", b"STORED\r\n"),
    (b"set c1 0 0 3\r\nnew\r\nset c1b 0 0 3\r\nnew\r\n", b"STORED\r\n" * 2),
    (b"add c2 0 0 3\r\nnew\r\n", b"STORED\r\n"),
    (b"append AA 0 0 1\r\n!\r\n", b"STORED\r\n"),
    (b"incr number 1\r\n", b"6\r\n"),
    (b"delete gone\r\n", b"DELETED\r\n"),
    (b"set @@aaa.c6 0 0 3\r\nnew\r\n", b"STORED\r\n"),
)
SEEDED = b"set number 0 0 1\r\n5\r\nset gone 0 0 1\r\nx\r\n"


@pytest.fixture(scope="module", params=["mariadb", MYSQL_8])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


@pytest.fixture(params=BLOCKS)
def block(request: pytest.FixtureRequest, database: SQLServer) -> str:
    """Give a way to block commits that the server has."""
    ((version,),) = sql(database, "SELECT VERSION()")
    if request.param == "backup-stage" and "MariaDB" not in str(version):
        return "read-lock"
    return str(request.param)


@contextmanager
def blocked(database: SQLServer, block: str) -> Iterator[None]:
    statements, end = BLOCKS[block]
    with closing(database.connect()) as connection, connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)
        yield
        cursor.execute(end)


def waiting(database: SQLServer, seconds: int = 0) -> int:
    ((count,),) = sql(database, WAITING.format(seconds))
    return int(count)


def receive(client: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size and not received.startswith(b"SERVER_ERROR"):
        received += client.recv(4096)
    return received


def test_writes_wait_for_the_end_of_a_backup_and_are_stored(database: SQLServer, block: str) -> None:
    with serving(database.dsn) as served, ExitStack() as stack:
        clients = [stack.enter_context(served.connect()) for _ in COMMANDS]
        ask(clients[0], SEEDED)
        ask(clients[0], b"delete c2\r\n")
        for client in clients:
            ask(client, b"get AA\r\n")
        with blocked(database, block):
            for client, (command, _) in zip(clients, COMMANDS, strict=True):
                client.sendall(command)
            # Longer than what combined writes wait for a lock, and as many connections as commands that go one by one.
            until(lambda: waiting(database, 2) >= len(COMMANDS) - 1, seconds=60)
        for client, (_, reply) in zip(clients, COMMANDS, strict=True):
            assert receive(client, len(reply)) == reply
        rows = dict(sql(database, "SELECT c1, c2 FROM test.demo_test"))
        assert [rows.get(key) for key in ("c0", "c1", "c1b", "c2", "c6", "gone")] == ["new"] * 5 + [None]
        assert (rows["number"], rows["AA"].endswith("!")) == ("6", True)
        assert ask(clients[0], b"set c0 0 0 1\r\nx\r\n") == b"STORED\r\n"


def test_a_wait_that_ends_is_a_lock_wait_and_nothing_is_written(database: SQLServer, block: str) -> None:
    with serving(database.dsn, "--set", "innodb_lock_wait_timeout=1") as served, served.connect() as client:
        assert ask(client, b"set w 0 0 3\r\nold\r\n") == b"STORED\r\n"
        with blocked(database, block):
            assert ask(client, b"set w 0 0 3\r\nnew\r\n") == b"SERVER_ERROR lock wait timeout\r\n"
        assert ask(client, b"get w\r\nset w 0 0 3\r\nnew\r\n") == b"VALUE w 0 3\r\nold\r\nEND\r\nSTORED\r\n"


def test_a_batch_whose_commit_waits_too_long_is_lost_with_its_number_of_writes(database: SQLServer) -> None:
    options = "--set", "innodb_lock_wait_timeout=1", "--set", "daemon_memcached_w_batch_size=3"
    with serving(database.dsn, *options) as served, served.connect() as client:
        assert ask(client, b"set b 0 0 3\r\nold\r\nset b 0 0 3\r\nold\r\nset b 0 0 3\r\nold\r\n").count(b"STORED") == 3
        assert ask(client, b"set b 0 0 1\r\n1\r\nset b2 0 0 1\r\n2\r\n").count(b"STORED") == 2
        with blocked_commits_only(database):
            lost = b"SERVER_ERROR lock wait timeout: 3 pending writes are lost\r\n"
            assert ask(client, b"set b3 0 0 1\r\n3\r\n") == lost
        assert ask(client, b"get b b2 b3\r\n") == b"VALUE b 0 3\r\nold\r\nEND\r\n"


@contextmanager
def blocked_commits_only(database: SQLServer) -> Iterator[None]:
    """Block commits, and of MySQL, which has no such backup lock, the last statement of the batch with them."""
    ((version,),) = sql(database, "SELECT VERSION()")
    if "MariaDB" not in str(version):
        pytest.skip("only MariaDB blocks commits and no other statements")
    with blocked(database, "backup-stage"):
        yield
