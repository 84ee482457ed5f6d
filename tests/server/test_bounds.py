"""Data that clients can make the server keep is limited, and exceeding a limit is reported."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from helpers.serving import STEPS, ask, serving

BATCH = (
    "daemon_memcached_w_batch_size=1000",
    "daemon_memcached_r_batch_size=1000",
    "innodb_api_bk_commit_interval=1000",
)
OPTIONS = [word for pair in (*BATCH, "uncommitted_size_max=65536") for word in ("--set", pair)]
REPORTED = (
    b"SERVER_ERROR out of memory: the batch has 39 pending writes, and uncommitted_size_max lets them hold 65536 bytes"
)


def put(number: int, size: int) -> bytes:
    return b"set k%d 0 0 %d\r\n%b\r\n" % (number, size, b"x" * size)


def test_a_batch_that_holds_too_much_refuses_writes_and_keeps_what_it_has(tmp_path: Path) -> None:
    with serving(tmp_path / "x.sqlite", *OPTIONS) as served, served.connect() as a, served.connect() as b:
        assert [ask(a, put(number, 1000)) for number in range(10, 49)] == [b"STORED\r\n"] * 39
        assert ask(a, put(49, 1000)) == REPORTED + b"\r\n"
        assert ask(b, put(50, 1000)) == b"STORED\r\n"  # another batch
        assert ask(a, b"get k49\r\n") == b"END\r\n"
        assert ask(a, b"get k48\r\n").startswith(b"VALUE k48 0 1000\r\n")
        assert ask(a, b"get @@aaa.AA\r\nquit\r\n").endswith(b"<EOF>")
    with serving(tmp_path / "x.sqlite") as served, served.connect() as a:
        found = [number for number in range(10, 51) if ask(a, b"get k%d\r\n" % number) != b"END\r\n"]
        assert found == [*range(10, 49), 50]


def test_short_writes_count_too(tmp_path: Path) -> None:
    with serving(tmp_path / "x.sqlite", *OPTIONS) as served, served.connect() as a:
        answers = ask(a, b"".join(put(number, 1) for number in range(200))).splitlines()
        assert answers.count(b"STORED") == 65536 // (640 + len("k99x")) == 101
        assert answers[101].startswith(b"SERVER_ERROR out of memory: the batch has 101 pending writes")


TOO_LARGE = b"SERVER_ERROR object too large for cache\r\n"
LENGTH = (64 << 20) + 1000


def test_a_value_of_any_announced_length_is_waited_for_and_not_kept_without_end(tmp_path: Path) -> None:
    with serving(tmp_path / "x.sqlite", "--profile", "mysql-8.0") as served, served.connect() as a:
        a.sendall(b"set k 0 0 2147483000\r\n" + b"x" * (64 << 20))
        a.settimeout(0.3)
        with pytest.raises(TimeoutError):
            a.recv(100)
        a.settimeout(10)
        a.sendall(b"x" * 1000)
        assert a.recv(100) == TOO_LARGE
    with serving(tmp_path / "x.sqlite", "--profile", "mysql-8.0") as served, served.connect() as a:
        data = b"set k 0 0 %d\r\n%b\r\nget k\r\n" % (2 * LENGTH, bytes(2 * LENGTH))
        assert ask(a, data) == TOO_LARGE + b"END\r\n"
        frame = struct.pack(">BBHBBHIIQ", 0x80, 0x01, 1, 8, 0, 0, 9 + 2 * LENGTH, 0, 0) + bytes(8) + b"k"
        with served.connect() as binary:
            binary.sendall(frame + bytes(2 * LENGTH) + struct.pack(">BBHBBHIIQ", 0x80, 0x0A, 0, 0, 0, 0, 0, 7, 0))
            answer = b""
            while not answer.endswith(struct.pack(">IQ", 7, 0)):
                answer += binary.recv(100)
        assert answer[:8] == struct.pack(">BBHBBH", 0x81, 0x01, 0, 0, 0, 3)
        assert answer.count(b"\x81\x0a") == 1


def test_few_connections_are_kept_for_snapshots(tmp_path: Path) -> None:
    def opened(pid: int) -> int:
        # Of the file itself SQLite keeps descriptors for later, as closing one would free the locks of all.
        return sum(each.readlink().name == "x.sqlite-wal" for each in Path(f"/proc/{pid}/fd").iterdir())

    level = ("--set", "innodb_api_trx_level=2", "--set", "daemon_memcached_r_batch_size=2")
    with serving(tmp_path / "x.sqlite", *level) as served, ExitStack() as stack:
        few = opened(served.process.pid)
        clients = [stack.enter_context(served.connect()) for _ in range(40)]
        for client in clients:
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")
        assert opened(served.process.pid) == few + 40
        for client in clients:  # each batch is full
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")
        assert opened(served.process.pid) == few + 16


@pytest.mark.parametrize("program", [STEPS, "kvref"])
def test_each_get_of_a_value_above_the_limit_of_replies_is_refused(tmp_path: Path, program: str) -> None:
    """Also the second one of the same row, which the row cache could show."""
    file, refused = tmp_path / "file", b"SERVER_ERROR out of memory writing get response: more than 1048576 bytes\r\n"
    with serving(file, "--set", "reply_size_max=1048576", program=program) as served, served.connect() as client:
        assert ask(client, put(1, 1) + put(2, 1)) == b"STORED\r\n" * 2
        with closing(sqlite3.connect(file)) as database, database:
            database.execute("UPDATE demo_test SET c2 = hex(zeroblob(524285)) WHERE c1 = 'k2'")
        for request in (b"get k2\r\n", b"get k2\r\n", b"gets k2\r\n", b"get k1 k2\r\n"):
            assert ask(client, request) == refused, request
        assert ask(client, b"get k1\r\nget k2\r\n") == b"VALUE k1 0 1\r\nx\r\nEND\r\n" + refused
