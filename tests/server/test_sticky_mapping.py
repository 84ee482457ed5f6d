"""The setting sticky_mapping on a server: with pipelined commands, fast paths, workers, several stores and the log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.database import database_or_skip, map_table
from helpers.serving import Served, ask, serving
from helpers.waiting import until
from server.test_several_stores import serving as serving_two
from server.test_several_stores import sqlite_database

OFF = ("--set", "sticky_mapping=0")
CHANGED = "named the mapping other"
OTHER = (
    "CREATE TABLE o (k VARCHAR(32) COLLATE NOCASE PRIMARY KEY, v VARCHAR(1024), f INT, c BIGINT, e INT)",
    "INSERT INTO containers VALUES ('other', 'test', 'o', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')",
)


def lines(served: Served) -> list[str]:
    return [line for line in served.log if CHANGED in line]


def pipelined(served: Served, *, sticky: bool) -> None:
    """Send plain commands with and without a mapping in one packet, often enough for the fast paths."""
    turn = b"".join(
        b"set k%d 0 0 1\r\nd\r\nset @@other.k%d 0 0 1\r\no\r\nget k%d\r\nget @@other.k%d k%d\r\nget k%d\r\n"
        % ((n,) * 6)
        for n in range(20)
    )
    own = b"o" if sticky else b"d"
    with served.connect() as client:
        first = True
        for command in (b"get AA\r\n" + turn, turn, turn * 5):
            reply = ask(client, command)
            values = [line for line in reply.split(b"\r\n") if line in (b"d", b"o")]
            wanted = [own, b"o", b"o", own] * (len(values) // 4)
            if first and sticky:
                wanted[0] = b"o"
            assert values == wanted
            first = False


def test_a_key_switches_its_connection_once_in_the_log(tmp_path: Path) -> None:
    sqlite_database(tmp_path / "s.sqlite", *OTHER)
    with serving(tmp_path / "s.sqlite") as served:
        pipelined(served, sticky=True)
        with served.connect() as client:
            ask(client, b"bind other\r\nget @@other.k\r\nget @@aaa\r\nget @@aaa.AA\r\n")
            ask(client, b"get @@none.k\r\n")
        with served.connect() as client:
            ask(client, b"get @@other.k\r\nget @@aaa.AA\r\nget @@other.k\r\n")
        until(lambda: len(lines(served)) >= 2)
        before = lines(served)
        assert [("127.0.0.1" in line, "sticky_mapping=0" in line) for line in before] == [(True, True)] * 2


def test_a_key_switches_nothing_where_that_is_set_and_a_reload_changes_it(tmp_path: Path) -> None:
    sqlite_database(tmp_path / "s.sqlite", *OTHER)
    file = tmp_path / "kvref.toml"
    file.write_text("[settings]\nsticky_mapping = 0\n")
    with serving(tmp_path / "s.sqlite", "--config", str(file)) as served:
        pipelined(served, sticky=False)
        file.write_text("[settings]\nsticky_mapping = 1\n")
        served.reload()
        assert lines(served) == []
        pipelined(served, sticky=True)
        served.wait_for(CHANGED)


def test_so_it_is_with_workers_and_batches(tmp_path: Path) -> None:
    sqlite_database(tmp_path / "s.sqlite", *OTHER)
    with serving(tmp_path / "s.sqlite", *OFF, "--workers", "2") as served:
        for _ in range(4):
            pipelined(served, sticky=False)
    with serving(tmp_path / "s.sqlite", *OFF, "--set", "daemon_memcached_w_batch_size=100") as served:
        with served.connect() as client, closing(sqlite3.connect(tmp_path / "s.sqlite")) as file:
            assert (
                ask(client, b"set n 0 0 1\r\nx\r\nset @@other.n 0 0 1\r\nx\r\nset m 0 0 1\r\nx\r\n").count(b"STORED")
                == 3
            )
            assert file.execute("SELECT k FROM o WHERE k = 'n'").fetchall() == [("n",)]
            assert file.execute("SELECT c1 FROM demo_test WHERE c1 IN ('n', 'm')").fetchall() == [("n",)]
        pipelined(served, sticky=False)


def test_so_it_is_over_two_stores(tmp_path: Path) -> None:
    first = sqlite_database(tmp_path / "1.sqlite")
    second = sqlite_database(tmp_path / "2.sqlite", "UPDATE containers SET name = 'other'")
    with serving_two(tmp_path, first, second, *OFF, name="other") as served:
        pipelined(served, sticky=False)
    with serving_two(tmp_path, first, second, name="other") as served:
        pipelined(served, sticky=True)


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with database_or_skip("mariadb") as server:
        map_table(server, "other", "v", "k VARCHAR(32) PRIMARY KEY", "v VARCHAR(1024)")
        yield server.dsn


@pytest.mark.live
@pytest.mark.parametrize(
    "options", [(), ("--set", "daemon_memcached_w_batch_size=7"), ("--set", "innodb_api_trx_level=2")]
)
def test_so_it_is_over_a_database_server(dsn: str, options: tuple[str, ...]) -> None:
    for sticky in (False, True):
        with serving(dsn, *([] if sticky else OFF), *options) as served:
            pipelined(served, sticky=sticky)
