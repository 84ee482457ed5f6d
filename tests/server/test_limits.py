"""Limits of connections, lines, keys, replies and input: each with its setting and what it answers."""

from __future__ import annotations

import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from helpers.serving import Served, ask, serving, until_read
from helpers.waiting import until

END = b"END\r\n"


TOO_MANY = b"ERROR Too many open connections\r\n"
NOOP = struct.pack(">BBHBBHIIQ", 0x80, 0x0A, 0, 0, 0, 0, 0, 7, 0)
LONG_LINE = b"CLIENT_ERROR line of more than %d bytes (line_size_max)\r\n"


def settings(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


def rest(client: socket.socket) -> bytes:
    """Return everything up to the end of a connection."""
    reply = b""
    while True:
        try:
            chunk = client.recv(1 << 16)
        except ConnectionResetError:
            return reply
        if not chunk:
            return reply
        reply += chunk


def rows(client: socket.socket) -> dict[str, str]:
    lines = [line.split(" ", 2) for line in ask(client, b"stats\r\n").decode().splitlines()]
    return {line[1]: line[2] for line in lines if line[0] == "STAT"}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_connections_beyond_maxconns_are_reported_so_and_the_others_go_on(tmp_path: Path, workers: str) -> None:
    """As memcached 1.6.18 does, in either protocol."""
    options = ("--workers", workers, *settings("maxconns=6"))
    with serving(tmp_path / "x.sqlite", *options) as served, ExitStack() as stack:
        assert "at most 6 connections (maxconns)" in served.wait_for("at most")
        few = [stack.enter_context(served.connect()) for _ in range(6)]
        for client in few:
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")
        for reply in (b"", b"get AA\r\n", NOOP):
            with served.connect() as further:
                further.sendall(reply)
                assert rest(further) == TOO_MANY
        assert rows(few[0])["rejected_conns"] == "3"
        assert rows(few[0])["curr_connections"] == "7"
        for client in few:
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")
        few[5].close()
        until(lambda: rows(few[0])["curr_connections"] == "6")
        assert ask(stack.enter_context(served.connect()), b"get AA\r\n").startswith(b"VALUE")
        assert ask(few[0], b"stats reset\r\n") == b"RESET\r\n"
        assert rows(few[0])["rejected_conns"] == "0"


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0"])
def test_only_the_default_profile_has_rows_that_the_plugin_has_not(tmp_path: Path, profile: str) -> None:
    options = ("--profile", profile, *settings("idle_timeout=50", "maxconns=60"))
    with serving(tmp_path / "x.sqlite", *options) as served, served.connect() as a:
        shown = [line for line in ask(a, b"stats settings\r\n").splitlines() if b"maxconns" in line or b"idle" in line]
        limits = [b"STAT maxconns 60", b"STAT maxconns_fast yes", b"STAT idle_timeout 50"]
        assert shown == (limits if profile == "kvref" else [])
        newer = {b"verbosity", b"domain_socket", b"ssl_enabled"}
        names = {line.split()[1] for line in ask(a, b"stats settings\r\n").splitlines()[:-1]}
        assert names & newer == (newer if profile == "kvref" else set())
        assert (b"STAT evictions off\r\n" in ask(a, b"stats settings\r\n")) is (profile == "kvref")
        assert ("idle_kicks" in rows(a)) is (profile == "kvref")
        assert "rejected_conns" in rows(a)  # the plugin's own


@pytest.mark.parametrize("workers", ["1", "2"])
def test_maxconns_is_reloaded(tmp_path: Path, workers: str) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text("[settings]\nmaxconns = 1\n")
    options = ("--workers", workers, "--config", str(file))
    with serving(tmp_path / "x.sqlite", *options) as served, served.connect() as a:
        assert ask(a, b"get AA\r\n").startswith(b"VALUE")
        with served.connect() as b:
            assert rest(b) == TOO_MANY
        file.write_text("[settings]\nmaxconns = 2\n")
        served.reload()
        with served.connect() as b:
            assert ask(b, b"get AA\r\n").startswith(b"VALUE")


@contextmanager
def descriptors(most: int) -> Iterator[None]:
    """Limit the file descriptors of processes started in the block, without a way to raise the limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_few_descriptors_are_no_end(tmp_path: Path, workers: str) -> None:
    """Of what the system allows some are kept for the store; what holds is said, and kept."""
    most = int(workers) * 60
    with ExitStack() as stack:
        served = stack.enter_context(limited(tmp_path / "x.sqlite", 120, "--workers", workers))
        assert f"at most {most} connections instead of maxconns=10000: `ulimit -n` is 120" in served.wait_for("at most")
        clients = [stack.enter_context(served.connect()) for _ in range(most)]
        for client in clients:
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")
        for _ in range(200):
            with served.connect() as further:
                assert rest(further) == TOO_MANY
        for client in clients:
            assert ask(client, b"set k 0 0 1\r\nx\r\nget k\r\n") == b"STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n"
        assert rows(clients[0])["rejected_conns"] == "200"


def test_each_worker_gets_its_share_of_connections_that_come_at_once(tmp_path: Path) -> None:
    """What a worker is still accepting is part of its load: beyond 60 connections it would have to reject some."""
    with limited(tmp_path / "x.sqlite", 120, "--workers", "2") as served:
        for _ in range(12):
            with ExitStack() as stack:
                # 120 are possible; the one that read `stats` in the last round may still be open.
                clients = [stack.enter_context(socket.socket()) for _ in range(119)]
                for client in clients:
                    client.settimeout(0)
                    client.connect_ex(("127.0.0.1", served.port))
                for client in clients:
                    client.settimeout(60)
                    assert ask(client, b"get AA\r\n").startswith(b"VALUE")
            with served.connect() as client:
                # This client, and one for the listening socket.
                until(lambda client=client: rows(client)["curr_connections"] == "2")


@contextmanager
def limited(store: Path, most: int, *options: str) -> Iterator[Served]:
    """Serve with so many descriptors, beyond which the process cannot go by itself."""
    with serving(store, *options, first=("prlimit", f"--nofile={most}:{most}")) as served:
        yield served


def test_a_process_asks_for_the_descriptors_that_it_needs(tmp_path: Path) -> None:
    with descriptors(200), serving(tmp_path / "x.sqlite", *settings("maxconns=1000")) as served:
        assert "at most 1000 connections (maxconns)" in served.wait_for("at most")
        limits = Path(f"/proc/{served.process.pid}/limits").read_text()
        assert [line.split()[3] for line in limits.splitlines() if line.startswith("Max open files")] == ["1096"]


@pytest.mark.parametrize(("size", "line"), [(2048, b"get " + b"a " * 1022), (1 << 20, b"get " + b"a " * 524_286)])
def test_a_get_line_has_a_limit(tmp_path: Path, size: int, line: bytes) -> None:
    reported = LONG_LINE % size
    with serving(tmp_path / "x.sqlite", *settings(f"line_size_max={size}")) as served:
        for end in (b"\r\n", b"b \r\n"):
            for pieces in ((line[:2000], line[2000:] + end), (line + end,)):
                with served.connect() as client:
                    for piece in pieces:
                        client.sendall(piece)
                        until_read(client)
                    fits = len(line + end) - 1 <= size
                    client.sendall(b"quit\r\n")
                    assert rest(client) == (END if fits else reported)


def test_a_lower_limit_of_keys(tmp_path: Path) -> None:
    bad = b"CLIENT_ERROR bad command line format\r\n"
    with serving(tmp_path / "x.sqlite", *settings("key_size_max=3")) as served, served.connect() as a:
        assert ask(a, b"set abc 0 0 1\r\nx\r\nget abc\r\n") == b"STORED\r\nVALUE abc 0 1\r\nx\r\nEND\r\n"
        for line in (
            b"get abcd",
            b"delete abcd",
            b"incr abcd 1",
            b"touch abcd 0",
            b"gat 0 abcd",
            b"bind abcd",
            b"mg abcd v",
        ):
            assert ask(a, line + b"\r\n") == bad, line
        assert ask(a, b"set abcd 0 0 1\r\nx\r\nms abcd 1\r\nx\r\n") == bad * 2
        with served.connect() as b:
            b.sendall(struct.pack(">BBHBBHIIQ", 0x80, 0, 4, 0, 0, 0, 4, 7, 0) + b"abcd")
            assert rest(b)[6:8] == b"\0\4"


def test_a_reply_has_a_limit(tmp_path: Path) -> None:
    reported = b"SERVER_ERROR out of memory writing get response: more than 1048576 bytes\r\n"
    words = [b"k%d" % number for number in range(1100)]
    with serving(tmp_path / "x.sqlite", *settings("reply_size_max=1048576")) as served, served.connect() as a:
        stores = b"".join(b"set %b 0 0 1000 noreply\r\n%b\r\n" % (word, bytes(1000)) for word in words)
        assert ask(a, stores) == b""
        assert len(ask(a, b"get " + b" ".join(words[:1000]) + b"\r\n")) > 1_000_000
        assert ask(a, b"get " + b" ".join(words) + b"\r\n") == reported


def test_no_more_is_read_than_may_wait(tmp_path: Path) -> None:
    """A write that waits for another's row holds up what comes behind it."""
    options = settings(
        "pipelined_size_max=4096", "daemon_memcached_w_batch_size=100", "innodb_api_bk_commit_interval=100"
    )
    with serving(tmp_path / "x.sqlite", *options) as served, served.connect() as a, served.connect() as b:
        assert ask(a, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        few = memory(served)
        b.sendall(b"set k 0 0 1\r\ny\r\n")
        b.settimeout(0.5)
        sent, line = 0, b"get " + b"a" * 200 + b"\r\n"
        with pytest.raises(TimeoutError):
            while sent < 64 << 20:
                sent += b.send(line * 1000)
        assert memory(served) - few < 4 << 20
        assert ask(a, b"get AA\r\nquit\r\n").endswith(b"<EOF>")  # it commits
        b.settimeout(10)
        answer = b""
        while answer.count(END) < sent // len(line):
            answer += b.recv(1 << 16)
        assert answer == b"STORED\r\n" + END * (sent // len(line))


def memory(served: Served) -> int:
    """Return the bytes that a server has in memory."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))
