"""What others do to the file while it is served: locks, DDL, its loss, a reload."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from helpers.serving import Served, ask, serving

from kvref import collations


def sql(served: Served) -> sqlite3.Connection:
    connection = sqlite3.connect(served.store, isolation_level=None, timeout=60)
    collations.register(connection)
    return connection


WRITES = [b"set AA 0 0 1\r\nx\r\n", b"add z 0 0 1\r\nx\r\n", b"cas AA 0 0 1 0\r\nx\r\n", b"delete AA\r\n", b"incr AA 1\r\n", b"flush_all\r\n"]  # fmt: skip
STORED_NOT = [b"NOT_STORED\r\n"] * 3 + [b"NOT_FOUND\r\n", b"SERVER_ERROR failed to store item\r\n"]


@pytest.mark.parametrize(
    ("profile", "answers"),
    [
        ("kvref", [b"SERVER_ERROR lock wait timeout\r\n"] * 6),
        ("mysql-8.0", [*STORED_NOT, b"SERVER_ERROR failed to flush cache\r\n"]),
        ("mysql-5.6", [*STORED_NOT, b"OK\r\n"]),
    ],
)
def test_a_write_that_gets_no_lock_in_time(tmp_path: Path, profile: str, answers: list[bytes]) -> None:
    # [side-005, side-006, side-007, side-032]; 5.6 gives up after a second whatever is set.
    wait = "50" if profile == "mysql-5.6" else "1"
    store = tmp_path / "s.sqlite"
    with serving(store, "--profile", profile, "--set", f"innodb_lock_wait_timeout={wait}") as served:
        database = sql(served)
        database.execute("BEGIN IMMEDIATE")
        clients = [served.connect() for _ in WRITES]
        begun = time.monotonic()
        for client, write in zip(clients, WRITES, strict=True):
            client.sendall(write)
        assert [client.recv(100) for client in clients] == answers
        assert time.monotonic() - begun > 0.8
        database.execute("ROLLBACK")
        assert ask(clients[0], b"get AA\r\n") == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
        for client in clients:
            client.close()
        database.close()


def test_connections_open_at_a_reload_are_served_by_kvref(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite") as served, served.connect() as old:
        assert ask(old, b"get zz\r\n") == b"END\r\n"
        served.reload()
        with served.connect() as new:
            assert ask(new, b"get zz\r\n") == b"END\r\n"
        assert ask(old, b"get zz\r\n") == b"END\r\n"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_or_another_one_is_noticed(tmp_path: Path, replaced: bool) -> None:
    with serving(tmp_path / "s.sqlite") as served, served.connect() as client:
        assert ask(client, b"get AA\r\n").startswith(b"VALUE AA")
        served.store.unlink()
        if replaced:
            sqlite3.connect(served.store).close()
        cause = f"SERVER_ERROR store {served.store} was deleted or replaced: restart the server\r\n".encode()
        while ask(client, b"get AA\r\n").startswith(b"VALUE AA"):
            pass  # the file is looked for once a millisecond
        assert ask(client, b"get AA\r\nset AA 0 0 1\r\nx\r\ndelete AA\r\nflush_all\r\nbind nope\r\n") == cause * 5


def test_ddl_counts_from_the_next_command_on(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite") as served, served.connect() as client:
        database = sql(served)
        assert ask(client, b"set k 0 0 3\r\nabc\r\n") == b"STORED\r\n"
        database.execute("ALTER TABLE demo_test RENAME COLUMN c2 TO value")
        assert ask(client, b"get k\r\n").startswith(
            b"SERVER_ERROR container 'aaa': table demo_test has no value column"
        )
        database.execute("ALTER TABLE demo_test RENAME COLUMN value TO c2")
        assert ask(client, b"get k\r\n") == b"VALUE k 0 3\r\nabc\r\nEND\r\n"
        database.close()
