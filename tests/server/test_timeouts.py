"""Timeouts disconnect idle clients, clients with half a command, and clients that do not read; other clients stay."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from helpers.clocked import Clocked, clocked
from helpers.database import database_or_skip
from helpers.live import MYSQL_8, nightly
from helpers.serving import Served, ask, serving

from kvref.server.timeouts import AT_ONCE
from kvref_testbed.targets import SQLServer

END = b"END\r\n"

NOT_WHOLE = b"CLIENT_ERROR no whole command within 1 s (command_timeout)"
LATEST = 8.0  # seconds from a limit of one
BATCH = ("daemon_memcached_w_batch_size=100", "innodb_api_bk_commit_interval=1000")
Serve = Callable[..., AbstractContextManager[Served | Clocked]]


@pytest.fixture(scope="module")
def database() -> Iterator[SQLServer]:
    """Return a database server for all tests here."""
    with database_or_skip("mysql-8.0") as running:
        yield running


@pytest.fixture(params=["sqlite", MYSQL_8, nightly("mysql-8.0, 2 workers")])
def serve(request: pytest.FixtureRequest, tmp_path: Path) -> Serve:
    """Return what serves with settings: a file, or a database by one process or two; only two have the real clock."""

    @contextmanager
    def started(*pairs: str) -> Iterator[Served | Clocked]:
        store = tmp_path / "x.sqlite" if request.param == "sqlite" else request.getfixturevalue("database").dsn
        with (
            serving(store, "--workers", "2", *(word for pair in pairs for word in ("--set", pair)))
            if "2 workers" in request.param
            else clocked(store, *pairs)
        ) as served:
            yield served

    return started


def pass_by(served: Served | Clocked, seconds: float) -> None:
    """Let so much time pass for the server."""
    if isinstance(served, Clocked):
        served.advance(seconds)
    else:
        time.sleep(seconds)  # two workers have the real clock


def rest(client: socket.socket) -> bytes:
    """Return everything up to the end of a connection, which must come soon."""
    client.settimeout(LATEST)
    received = b""
    while chunk := client.recv(1 << 16):
        received += chunk
    return received


def test_a_silent_connection_is_closed_and_its_batch_committed(serve: Serve) -> None:
    with serve("idle_timeout=1", "maxconns=9", *BATCH) as served, served.connect() as busy, served.connect() as writer:
        assert ask(writer, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        with served.connect() as never, served.connect() as binary:
            binary.sendall(struct.pack(">BBHBBHIIQ", 0x80, 0x0A, 0, 0, 0, 0, 0, 7, 0))
            for _ in range(20):  # four seconds, of limits of one
                assert ask(busy, b"get AA\r\n").startswith(b"VALUE")
                pass_by(served, 0.2)
            assert rest(never) == b""
            assert len(rest(binary)) == 24
        assert rest(writer) == b""
        assert b"STAT idle_kicks 3\r\n" in ask(busy, b"stats\r\n")
        # Another batch's row would have to be waited for.
        assert ask(busy, b"set k 0 0 1\r\ny\r\n") == b"STORED\r\n"


def test_more_silent_connections_than_are_looked_at_at_once(tmp_path: Path) -> None:
    # Busy clients have a minute for their commands between two moves of the clock.
    with clocked(tmp_path / "x.sqlite", "idle_timeout=120") as served, ExitStack() as stack:
        busy = [stack.enter_context(served.connect()) for _ in range(AT_ONCE + 10)]
        silent = [stack.enter_context(served.connect()) for _ in range(AT_ONCE)]
        for _ in range(4):
            for client in busy:
                assert ask(client, b"") == b""
            served.advance(60)
        assert {rest(client) for client in silent} == {b""}


@pytest.mark.parametrize(
    "half", [b"get", b"set k 0 0 5\r\n", b"set k 0 0 5\r\nabc", b"set k 0 0 9000000\r\nabc", b"get AA\r\nincr A"]
)
def test_half_a_command_is_reported_and_closed(half: bytes, tmp_path: Path) -> None:
    with (
        clocked(tmp_path / "x.sqlite", "command_timeout=1") as served,
        served.connect() as quiet,
        served.connect() as client,
    ):
        client.sendall(half)
        served.advance(3)
        answers = rest(client)
        assert answers.endswith(NOT_WHOLE + b"\r\n")
        assert answers.count(b"\r\n") == 1 + half.count(b"get AA\r\n") * 3 + half.count(b"9000000")
        assert ask(quiet, b"get k\r\n") == END  # a whole command was never missing here


def test_bytes_that_trickle_do_not_help(serve: Serve) -> None:
    with serve("command_timeout=1", *BATCH) as served, served.connect() as client, served.connect() as other:
        assert ask(client, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        for _ in range(int(LATEST * 10)):
            client.sendall(b"x")
            pass_by(served, 0.1)
            if select.select([client], [], [], 0)[0]:
                break
        answer = client.recv(1000)
        assert answer == NOT_WHOLE + b"\r\n"
        # Committed, so that no client has to wait.
        assert ask(other, b"set k 0 0 1\r\ny\r\n") == b"STORED\r\n"


@pytest.mark.parametrize(("half", "opcode", "opaque"), [(24, 1, b"\0\0\0\7"), (30, 1, b"\0\0\0\7"), (10, 0, bytes(4))])
def test_half_a_frame_is_reported_in_a_frame(tmp_path: Path, half: int, opcode: int, opaque: bytes) -> None:
    frame = struct.pack(">BBHBBHIIQ", 0x80, 1, 1, 8, 0, 0, 19, 7, 0) + bytes(8) + b"k0123456789"
    with clocked(tmp_path / "x.sqlite", "command_timeout=1") as served, served.connect() as client:
        client.sendall(frame[:half])
        served.advance(3)
        answer = rest(client)
        text = NOT_WHOLE.removeprefix(b"CLIENT_ERROR ")
        assert answer == struct.pack(">BBHBBHI4sQ", 0x81, opcode, 0, 0, 0, 4, len(text), opaque, 0) + text


def test_who_does_not_read_is_dropped_and_his_batch_committed(serve: Serve) -> None:
    with serve("send_timeout=1", *BATCH) as served, served.connect() as client, served.connect() as other:
        value = b"x" * 1000
        assert ask(client, b"set k 0 0 1000\r\n" + value + b"\r\n") == b"STORED\r\n"
        client.settimeout(0)
        ends = time.monotonic() + LATEST * 4
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            while time.monotonic() < ends:
                with suppress(BlockingIOError):
                    while True:
                        client.send(b"get k k k k k k k k k k k k k k k k\r\n" * 1000)
                if not select.select([], [client], [], 0.2)[1]:  # the server takes no more
                    pass_by(served, 0.5)
        served.wait_for("connection closed: the client read no reply for 1 s (send_timeout)")
        assert ask(other, b"set k 0 0 1\r\ny\r\n") == b"STORED\r\n"


def test_who_reads_slowly_is_not(tmp_path: Path) -> None:
    with clocked(tmp_path / "x.sqlite", "send_timeout=2") as served, served.connect() as client:
        value = b"x" * 1000
        assert ask(client, b"set k 0 0 1000\r\n" + value + b"\r\n") == b"STORED\r\n"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.sendall(b"get k\r\n" * 10_000)
        size, answer = 10_000 * (len(b"VALUE k 0 1000\r\n" + value + b"\r\n") + len(END)), 0
        for _ in range(20):
            answer += len(client.recv(200_000))
            served.advance(0.25)
        while answer < size:
            chunk = client.recv(1 << 16)
            assert chunk
            answer += len(chunk)
        assert ask(client, b"get none\r\n") == END


def test_a_command_that_waits_for_a_lock_is_no_idle_client(tmp_path: Path) -> None:
    pairs = ("idle_timeout=1", "command_timeout=1", "innodb_lock_wait_timeout=4", *BATCH)
    with clocked(tmp_path / "x.sqlite", *pairs) as served, served.connect() as a, served.connect() as b:
        assert ask(a, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        b.sendall(b"set k 0 0 1\r\ny\r\n")
        for _ in range(15):
            served.advance(0.25)
            assert ask(a, b"") == b""
        assert select.select([b], [], [], 0)[0] == []
        served.advance(1)
        assert b.recv(1000) == b"SERVER_ERROR lock wait timeout\r\n"
        assert ask(b, b"get none\r\n") == END
