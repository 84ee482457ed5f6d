"""SIGTERM, SIGINT and SIGHUP while clients are at it: what is acknowledged is there, what has arrived is answered."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8, nightly
from helpers.serving import Served, ask, serving, until_read, until_state
from helpers.waiting import until, until_risen
from server.listeners.talk import authority, trusting

from kvref.server.server import DRAIN_SECONDS

CLIENTS = 6
AT_ONCE = 20  # commands of one write
BEFORE_STOP = 10 * AT_ONCE  # commands of each client that are answered before the server is stopped
MANY = 1500  # that take more than a turn
NEVER_IDLE = ("--set", "innodb_api_bk_commit_interval=1000")
BATCHES = ("--set", "daemon_memcached_w_batch_size=1000000", *NEVER_IDLE)
CASES = {"single": (), "batches": BATCHES, "workers": ("--workers", "2")}
EACH_STOP = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


class Writer(threading.Thread):
    """Sets a row of its own to 1, 2, 3 and so on until the server closes, and counts what is acknowledged."""

    def __init__(self, served: Served, key: str) -> None:
        super().__init__()
        self.key = key
        self.acknowledged = 0
        self.left_over = b""  # of a reply that did not come whole
        self._socket = served.connect()

    def run(self) -> None:
        with self._socket:
            sent = 0
            try:
                while True:
                    numbers = [str(sent + each).encode() for each in range(1, AT_ONCE + 1)]
                    sent += AT_ONCE
                    lines = (b"set %b 0 0 %d\r\n%b\r\n" % (self.key.encode(), len(each), each) for each in numbers)
                    self._socket.sendall(b"".join(lines))
                    self._read(sent)
            except (EOFError, ConnectionError):
                return

    def _read(self, sent: int) -> None:
        while self.acknowledged < sent:
            came = self._socket.recv(65536)
            if not came:
                raise EOFError
            *lines, self.left_over = (self.left_over + came).split(b"\r\n")
            assert set(lines) == {b"STORED"}
            self.acknowledged += len(lines)


def stop_under_load(served: Served, number: signal.Signals) -> list[Writer]:
    """Let clients write, and stop the server meanwhile; returns what they saw."""
    writers = [Writer(served, f"w{each}") for each in range(CLIENTS)]
    for each in writers:
        each.start()
    until(lambda: all(each.acknowledged >= BEFORE_STOP for each in writers), pause=0.005)
    served.process.send_signal(number)
    assert served.process.wait(timeout=60) == 0
    for each in writers:
        each.join(20)
        assert not each.is_alive()
        assert each.acknowledged > 0
        assert each.left_over == b""
    return writers


@EACH_STOP
@pytest.mark.parametrize("case", CASES)
def test_over_sqlite_what_is_acknowledged_is_there(tmp_path: Path, case: str, number: signal.Signals) -> None:
    with serving(tmp_path / "s.sqlite", *CASES[case]) as served:
        writers = stop_under_load(served, number)
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as file:
        found = dict(file.execute("SELECT c1, c2 FROM demo_test").fetchall())
    # The last ones that were carried out may have lost their reply.
    assert [each.key for each in writers if int(found[each.key]) < each.acknowledged] == []


@pytest.mark.live
@pytest.mark.parametrize("name", [MYSQL_8, "mariadb"])
def test_over_a_database_what_is_acknowledged_is_there(name: str) -> None:
    with database_or_skip(name) as database:
        for case, options in CASES.items():
            with serving(database.dsn, *options) as served:
                writers = stop_under_load(served, signal.SIGTERM)
            found = dict(sql(database, "SELECT c1, c2 FROM test.demo_test"))
            assert [each.key for each in writers if int(found[each.key]) < each.acknowledged] == [], case
            sql(database, "DELETE FROM test.demo_test WHERE c1 LIKE 'w%'")


@WORKERS
def test_what_has_arrived_is_answered(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path / "s.sqlite", "--workers", workers) as served, served.connect() as client:
        assert ask(client, b"get AA\r\n").startswith(b"VALUE")
        processes = [served.process.pid, *_children(served.process.pid)]
        for each in processes:
            os.kill(each, signal.SIGSTOP)
        client.sendall(b"get AA\r\nset k 0 0 1\r\n1\r\n" * MANY + b"get nope\r\nset half 0 0")
        served.process.send_signal(signal.SIGTERM)
        for each in processes:
            os.kill(each, signal.SIGCONT)
        received = _all(client)
    assert (received.count(b"HELLO, HELLO\r\nEND\r\n"), received.count(b"STORED\r\n")) == (MANY, MANY)
    assert received.endswith(b"STORED\r\nEND\r\n")
    assert served.process.wait(timeout=60) == 0


def _all(client: socket.socket) -> bytes:
    data = b""
    while chunk := client.recv(1 << 20):
        data += chunk
    return data


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def deaf(workers: str, tmp_path: Path) -> Iterator[tuple[Served, socket.socket]]:
    """Serve a client that reads nothing of what it is owed, which is more than its pipe holds."""
    with serving(tmp_path / "s.sqlite", "--workers", workers) as served, served.connect() as client:
        assert ask(client, b"set big 0 0 1000\r\n" + b"v" * 1000 + b"\r\nset k 0 0 1\r\n1\r\n") == b"STORED\r\n" * 2
        client.sendall(b"get " + b"big " * 30_000 + b"\r\n")
        client.sendall(b"incr k 1\r\n")
        client.settimeout(60)  # a get of so many keys takes seconds where the machine does other work
        client.recv(1, socket.MSG_PEEK)
        served.until_state("conn_mwrite")
        yield served, client


@pytest.mark.parametrize("workers", ["1", nightly("2")])  # it takes the whole time of the drain
def test_a_client_that_never_reads(deaf: tuple[Served, socket.socket]) -> None:
    served, _ = deaf
    served.process.send_signal(signal.SIGTERM)
    served.wait_for("stopping")
    until(lambda: _is_refused(served))
    assert served.process.wait(timeout=DRAIN_SECONDS + 10) == 0


def _is_refused(served: Served) -> bool:
    try:
        served.connect().close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it was in the queue of the listener that closed
        return False
    return False


@WORKERS
def test_a_client_that_reads_late_gets_everything(deaf: tuple[Served, socket.socket]) -> None:
    served, client = deaf
    with ExitStack() as stack:
        idle = [stack.enter_context(served.connect()) for _ in range(4)]
        assert [ask(each, b"") for each in idle] == [b""] * len(idle)
        served.process.send_signal(signal.SIGTERM)
        client.sendall(b"get AA\r\n" * 100)  # comes too late, and must not cost what is on its way
        assert [_all(each) for each in idle] == [b""] * len(idle)  # all connections end at once
    received = _all(client)
    client.close()
    assert received.count(b"VALUE big 0 1000\r\n") == 30_000
    assert received.endswith(b"END\r\n2\r\n")
    assert served.process.wait(timeout=60) == 0


@pytest.mark.parametrize("protected", [[], ["TLS"]], ids=["plain", "TLS"])
def test_a_client_that_sends_on_while_its_write_waits(tmp_path: Path, protected: list[str]) -> None:
    options: list[str] = []
    if protected:
        cert, key = authority(tmp_path)
        options = ["--tls-cert", str(cert), "--tls-key", str(key)]
    with serving(tmp_path / "s.sqlite", *options) as served, ExitStack() as stack:

        def connect() -> socket.socket:
            return (
                trusting(cert).wrap_socket(served.connect(), server_hostname="localhost")
                if protected
                else served.connect()
            )

        client = stack.enter_context(connect())
        assert ask(client, b"get AA\r\n").startswith(b"VALUE")
        with closing(sqlite3.connect(served.store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            client.sendall(b"set k 0 0 1\r\n1\r\n")
            until_state(connect, "conn_io_queue")
            with connect() as idle:
                assert ask(idle, b"") == b""
                served.process.send_signal(signal.SIGTERM)
                assert _all(idle) == b""  # nothing more is read
            client.sendall(b"set late 0 0 1\r\n1\r\n")
            until_read(client)
            other.execute("COMMIT")
        assert _all(client) == b"STORED\r\n"
        client.close()
        assert served.process.wait(timeout=DRAIN_SECONDS - 1) == 0


@WORKERS
@EACH_STOP
def test_a_second_signal_waits_for_no_client(deaf: tuple[Served, socket.socket], number: signal.Signals) -> None:
    served, _ = deaf
    with served.connect() as writer:
        assert ask(writer, b"set last 0 0 1\r\n1\r\n") == b"STORED\r\n"
        served.process.send_signal(number)
        served.wait_for("stopping")
        served.process.send_signal(number)
        served.wait_for("stopping at once")
        assert served.process.wait(timeout=DRAIN_SECONDS - 1) == 0
    with closing(sqlite3.connect(served.store)) as file:
        assert file.execute("SELECT c2 FROM demo_test WHERE c1 = 'last'").fetchall() == [("1",)]


@WORKERS
def test_reloads_while_clients_write(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path / "s.sqlite", "--workers", workers) as served:
        writers = [Writer(served, f"w{each}") for each in range(CLIENTS)]
        for each in writers:
            each.start()
        with closing(sqlite3.connect(served.store, isolation_level=None, timeout=60)) as file:
            for round_ in range(10):
                # Every second configuration cannot be used.
                file.execute(f"UPDATE containers SET db_table = '{'none' if round_ % 2 else 'demo_test'}'")
                served.reload()
                refused = served.wait_for("reloaded").startswith("kvref: configuration not reloaded")
                assert refused is bool(round_ % 2)
            file.execute("UPDATE containers SET db_table = 'demo_test'")
            for _ in range(50):
                served.process.send_signal(signal.SIGHUP)
        until_risen(lambda: [each.acknowledged for each in writers])
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(timeout=60) == 0
        for each in writers:
            each.join(20)
    assert re.search(r"configuration reloaded", "".join(served.log))
