"""SQL servers without the plugin: what they answer, what outlives a kill, what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pymysql
import pytest
from helpers.live import MYSQL_8, sql_server_or_skip
from helpers.waiting import until

from kvref.errors import TargetError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_testbed.targets import SQLServer

    Run = Callable[..., Any]

pytestmark = pytest.mark.live

VERSIONS = {"mariadb": "MariaDB", "mysql-8.0": "8.0.33", "mysql-9.7": "9.7."}
EVERY = pytest.mark.parametrize("name", [MYSQL_8, "mariadb", "mysql-9.7"])


def rows(server: SQLServer, query: str) -> tuple[tuple[Any, ...], ...]:
    """Query over TCP, as a client with the DSN does."""
    parts = urlsplit(server.dsn)
    assert parts.hostname is not None
    where = pymysql.connect(host=parts.hostname, port=parts.port or 0, user=parts.username, autocommit=True)
    with closing(where) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


@EVERY
def test_it_answers_sql_over_tcp_and_its_socket(name: str) -> None:
    with sql_server_or_skip(name, ["--max-connections=17"]) as server:
        assert server.dsn == f"mysql://root@{server.host}:{server.port}/"
        assert rows(server, "SELECT VERSION(), @@port") == ((server.version, server.port),)
        assert VERSIONS[name] in server.version
        requests = (
            "SELECT @@default_storage_engine, @@innodb_flush_log_at_trx_commit, @@max_connections, @@bind_address"
        )
        assert rows(server, requests) == (("InnoDB", 1, 17, "127.0.0.1"),)
        assert rows(server, "SELECT CURRENT_USER()") == (("root@localhost",),)
        with closing(pymysql.connect(unix_socket=str(server.socket), user="root")) as connection:
            assert connection.get_server_info().endswith(server.version)
        with pytest.raises(TargetError, match=f"{name} runs already, pid .*: stop or kill it first"):
            server.start()


@EVERY
def test_what_was_committed_outlives_a_kill(name: str) -> None:
    with sql_server_or_skip(name, ["--max-connections=17"]) as server, sql_server_or_skip(name) as other:
        assert (server.port, server.socket) != (other.port, other.socket)
        for each in ("CREATE DATABASE shop", "CREATE TABLE shop.items (k INT PRIMARY KEY)"):
            rows(server, each)
        rows(server, "INSERT INTO shop.items VALUES (1)")
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO shop.items VALUES (2)")
            server.kill()
        assert not server.running()
        with pytest.raises(pymysql.err.OperationalError):
            pymysql.connect(host=server.host, port=server.port, user="root", defer_connect=True).connect()
        server.start()
        assert rows(server, "SELECT k FROM shop.items") == ((1,),)
        assert rows(server, "SELECT @@port, @@max_connections") == ((server.port, 17),)
        assert rows(other, "SHOW DATABASES LIKE 'shop'") == ()


def number_of(folder: Path) -> tuple[int, int]:
    """Return what a folder is known by, wherever it is mounted: device and inode."""
    found = folder.stat()
    return found.st_dev, found.st_ino


def processes_in(number: tuple[int, int]) -> list[int]:
    """Find the processes whose working directory is that folder, which is a server's data folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, PermissionError, ProcessLookupError):
            if number_of(process / "cwd") == number:
                found.append(int(process.name))
    return found


OWNER = """
import signal, sys
from kvref_testbed import targets
with targets.sql_server(sys.argv[1]) as server:
    print(server.socket.parent, flush=True)
    signal.pause()
"""


@EVERY
def test_nothing_is_left_of_it(name: str, tmp_path: Path) -> None:
    with sql_server_or_skip(name) as server:
        folder, number = server.socket.parent, number_of(server.socket.parent / "data")
        assert len(processes_in(number)) == 1
    assert not folder.exists()
    assert not processes_in(number)

    with subprocess.Popen([sys.executable, "-c", OWNER, name], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        number = number_of(folder / "data")
        assert len(processes_in(number)) == 1
        # What is mounted for one server is not seen by others.
        assert str(folder) not in Path("/proc/self/mountinfo").read_text()
        os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not folder.exists() and not processes_in(number))
