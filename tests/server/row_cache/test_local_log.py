"""Cached rows on the machine of the database: the files of its log replace the query of its position."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.database import pid, sql
from helpers.row_cache_checker import FILL, SERVE, local_dsn, statistics
from helpers.serving import Served, ask, ask_gets, command, running, serving
from helpers.waiting import until_equal
from server.conversations import Peer
from server.row_cache import defects
from server.row_cache.checks import fill

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
KEYS = [f"key{number}" for number in range(20)]


@pytest.fixture
def local(database: SQLServer) -> Iterator[Served]:
    with serving(local_dsn(database), *SERVE) as served:
        served.wait_for("following the binary log")
        yield served


def queries(database: SQLServer) -> int:
    """Return how many statements that read the server has carried out; 2 more with each call."""
    counted = [sql(database, f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1] for name in ("Com_select", "Com_show_status")]
    return sum(map(int, counted))


def until_nothing_is_queried(database: SQLServer, client: socket.socket, line: bytes, reply: bytes) -> None:
    """Send a line until its replies come from cached rows alone."""

    def get() -> None:
        assert ask_gets(client, line) == reply

    until_cached(database, client, get, reply.count(b"VALUE"))


def until_cached(database: SQLServer, client: socket.socket, get: Callable[[], None], hits: int) -> None:
    """Call what gets rows until all come from the cache."""

    def queried() -> tuple[int, int, int]:
        counted, before = statistics(client), queries(database)
        for _ in range(10):
            get()
        number = queries(database) - before - 2
        found = statistics(client)
        return number, found["misses"] - counted["misses"], found["hits"] - counted["hits"]

    until_equal(queried, (0, 0, 10 * hits), pause=FILL)


def filled(database: SQLServer, client: socket.socket) -> None:
    ask(client, b"bind raced\r\n")
    sql(database, *[f"REPLACE INTO test.raced VALUES ('{key}', '{key}')" for key in KEYS])
    fill(client, *KEYS)


def replies(*keys: str) -> bytes:
    return b"".join(f"VALUE {key} 0 {len(key)}\r\n{key}\r\n".encode() for key in keys)


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        (b"get key1\r\n", replies("key1") + b"END\r\n"),
        (b"get %b\r\n" % " ".join(KEYS).encode(), replies(*KEYS) + b"END\r\n"),
        (b"get key1 key1\r\n", replies("key1", "key1") + b"END\r\n"),
        (b"get key1\r\nget key2\r\nget key1\r\n", b"".join(replies(f"key{n}") + b"END\r\n" for n in (1, 2, 1))),
        (b"get @@raced.key1\r\n", b"VALUE @@raced.key1 0 4\r\nkey1\r\nEND\r\n"),
        (b"get key1 @@raced.key2\r\n", replies("key1") + b"VALUE @@raced.key2 0 4\r\nkey2\r\nEND\r\n"),
        (b"gets key1 key2\r\n", replies("key1", "key2").replace(b" 0 4\r", b" 0 4 0\r") + b"END\r\n"),
    ],
)
def test_gets_of_cached_rows_query_nothing(database: SQLServer, local: Served, line: bytes, reply: bytes) -> None:
    with local.connect() as client:
        filled(database, client)
        until_nothing_is_queried(database, client, line, reply)


def test_binary_gets_of_cached_rows_query_nothing(database: SQLServer, local: Served) -> None:
    gets = [(0x0C, b"key1", b"", b""), (0x0D, b"key2", b"", b""), (0x00, b"key1", b"", b""), (0x0A, b"", b"", b"")]
    with local.connect() as client, ExitStack() as stack:
        filled(database, client)
        peer = Peer(local, stack)
        peer.exchange_frames([(0x00, b"@@raced", b"", b"")], 0)

        def bodies() -> list[object]:
            return [body for *_, body in peer.exchange_frames(gets, 0)]

        def get() -> None:
            assert bodies() == [bytes(4) + b"key1" * 2, bytes(4) + b"key2" * 2, bytes(4) + b"key1", b""]

        until_cached(database, client, get, 3)
        before = counted(client)
        get()
        assert counted(client) == [number + 3 for number in before[:2]] + before[2:]
        sql(database, "UPDATE test.raced SET v = 'new' WHERE k = 'key1'", "DELETE FROM test.raced WHERE k = 'key2'")
        assert bodies() == [bytes(4) + b"key1new", bytes(4) + b"new", b""]


def test_what_is_counted_is_the_same_with_and_without_a_query(database: SQLServer, local: Served) -> None:
    lines = [b"get key1\r\n", b"get key1 key2 key3\r\n", b"get key1\r\nget key2\r\n"]
    with local.connect() as client:
        filled(database, client)
        before = counted(client)
        for line in lines:
            ask_gets(client, line)
        assert counted(client) == [number + 6 for number in before[:2]] + before[2:]


def counted(client: socket.socket) -> list[int]:
    lines = dict(line.split()[1:3] for line in ask(client, b"stats\r\n").split(b"\r\n")[:-2])
    return [int(lines[name]) for name in (b"cmd_get", b"get_hits", b"get_misses", b"cmd_set")]


def test_the_next_file_of_the_log_is_read_too(database: SQLServer, local: Served) -> None:
    with local.connect() as client:
        filled(database, client)
        for value in "abc":
            sql(database, "FLUSH BINARY LOGS")
            sql(database, f"UPDATE test.raced SET v = '{value}' WHERE k = 'key1'")
            assert ask(client, b"get key1\r\n") == b"VALUE key1 0 1\r\n%b\r\nEND\r\n" % value.encode()
            until_nothing_is_queried(
                database, client, b"get key1\r\n", b"VALUE key1 0 1\r\n%b\r\nEND\r\n" % value.encode()
            )


def test_no_get_is_older_after_a_crash_that_kvref_did_not_notice(database: SQLServer, local: Served) -> None:
    with local.connect() as client:
        filled(database, client)
        for value in ("one", "two", "six"):
            os.kill(local.process.pid, signal.SIGSTOP)
            try:
                database.kill()
                database.start()
                sql(database, f"UPDATE test.raced SET v = '{value}' WHERE k = 'key1'")
                client.sendall(b"get key1\r\n")
            finally:
                os.kill(local.process.pid, signal.SIGCONT)
            assert client.recv(100) == b"VALUE key1 0 3\r\n%b\r\nEND\r\n" % value.encode()
            fill(client, "key1")


def nothing(directory: Path, _: Path) -> None:
    """Leave it out."""


def no_files(directory: Path, _: Path) -> None:
    directory.mkdir()


def files_of_another_server(directory: Path, log: Path) -> None:
    directory.mkdir()
    for each in log.parent.glob(f"{log.name}.0*"):
        content = bytearray(each.read_bytes())
        content[9] ^= 1  # the server's id
        (directory / each.name).write_bytes(content)


@pytest.mark.parametrize(
    ("there", "problem"),
    [(nothing, "No such file"), (no_files, "No such file"), (files_of_another_server, "of another server")],
)
def test_without_the_files_of_the_log_the_position_is_queried(
    database: SQLServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: Callable[[Path, Path], None],
    problem: str,
) -> None:
    ((log,),) = sql(database, "SELECT @@log_bin_basename")
    directory = tmp_path / "log"
    there(directory, Path(f"/proc/{pid(database)}/root{log}"))
    monkeypatch.setenv(defects.DIRECTORY, str(directory))
    serve = [*command(local_dsn(database))[3:], "--listen", "127.0.0.1:0", *SERVE, "--log-level", "info"]
    words = [sys.executable, defects.__file__, "log_elsewhere", *serve]
    with running(words, local_dsn(database)) as served, served.connect() as client:
        assert problem in served.wait_for("gets of cached rows query the position of the server")
        filled(database, client)
        sql(database, "UPDATE test.raced SET v = 'new' WHERE k = 'key1'")
        assert ask(client, b"get key1\r\n") == b"VALUE key1 0 3\r\nnew\r\nEND\r\n"
