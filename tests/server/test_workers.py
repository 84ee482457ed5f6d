"""Several processes on one port: how connections spread, what they see of each other, and what happens when one dies."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from helpers.commands import kvref
from helpers.database import database_or_skip, sql
from helpers.serving import Served, ask, serving, sockets, stats, workers
from helpers.waiting import until
from server.listeners.talk import authority, trusting
from server.writers import SHARED, Writer, differences

TWO = ("--workers", "2")


@contextmanager
def clients(served: Served, number: int, tls: ssl.SSLContext | None = None) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        found = [stack.enter_context(served.connect()) for _ in range(number)]
        if tls is not None:
            found = [stack.enter_context(tls.wrap_socket(each, server_hostname="localhost")) for each in found]
        yield found


def ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "x.sqlite", *TWO) as served:
        yield served


def test_connections_spread_evenly_also_when_some_have_left(served: Served) -> None:
    before = [sockets(pid) for pid in workers(served)]
    with clients(served, 20) as many:
        for client in many:
            assert ask(client, b"get AA\r\n") == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
        assert [sockets(pid) - old for pid, old in zip(workers(served), before, strict=True)] == [10, 10]
        for client in many[::2]:  # all of one worker
            client.close()
        until(lambda: int(stats(many[1])["curr_connections"]) == 11)
        with clients(served, 10) as more:
            for client in more:
                ask(client, b"get AA\r\n")
            assert [sockets(pid) - old for pid, old in zip(workers(served), before, strict=True)] == [10, 10]


def test_start_and_what_is_served_are_logged_once(served: Served) -> None:
    assert [line for line in served.log if "default mapping" in line or "listening" in line] == [
        "kvref: profile kvref, default mapping aaa (test/demo_test), delimiter '.'\n",
        f"kvref: listening on 127.0.0.1:{served.port} with 2 workers\n",
    ]
    assert len(workers(served)) == 2


def test_a_write_is_seen_by_the_other_worker_at_once(served: Served) -> None:
    with clients(served, 2) as (a, b):
        for number in range(200):
            value = str(number).encode()
            assert ask(a, b"set k 0 0 %d\r\n%b\r\n" % (len(value), value)) == b"STORED\r\n"
            assert ask(b, b"get k\r\n") == b"VALUE k 0 %d\r\n%b\r\nEND\r\n" % (len(value), value)
        assert ask(a, b"flush_all\r\n") == b"OK\r\n"
        assert ask(b, b"get k\r\n") == b"END\r\n"


def test_stats_are_sums_and_a_reset_is_for_all(served: Served) -> None:
    with clients(served, 4) as (a, b, c, d):
        for client in (a, b, c, d):
            ask(client, b"get AA nothing\r\nset k 0 0 1\r\nx\r\n")
        reply = stats(d)
        assert {name: reply[name] for name in ("cmd_get", "get_hits", "get_misses", "cmd_set")} == {
            "cmd_get": "8", "get_hits": "4", "get_misses": "4", "cmd_set": "4",
        }  # fmt: skip
        assert (reply["pid"], reply["curr_connections"], reply["total_connections"]) == (
            str(served.process.pid),
            "5",
            "4",
        )
        assert int(reply["bytes_read"]) > 4 * len("get AA nothing\r\nset k 0 0 1\r\nx\r\n")
        assert ask(a, b"stats reset\r\n") == b"RESET\r\n"
        ask(b, b"get AA\r\n")
        reply = stats(a)
        assert (reply["cmd_get"], reply["cmd_set"], reply["total_connections"]) == ("1", "0", "0")


def test_lru_crawler_is_disabled_for_all(served: Served) -> None:
    with clients(served, 2) as (a, b):
        assert ask(a, b"lru_crawler disable\r\n") == b"OK\r\n"
        for client in (a, b):
            assert ask(client, b"lru_crawler metadump all\r\n") == b"CLIENT_ERROR lru crawler disabled\r\n"
        assert ask(b, b"lru_crawler enable\r\n") == b"OK\r\n"
        for client in (a, b):
            assert ask(client, b"lru_crawler metadump all\r\n").startswith(b"key=AA ")


def test_stats_by_prefix_are_sums(served: Served) -> None:
    with clients(served, 2) as (a, b):
        assert ask(a, b"stats detail on\r\n") == b"OK\r\n"
        ask(a, b"get one:1\r\nset two:1 0 0 1\r\nx\r\n")
        ask(b, b"get one:2 two:1\r\ndelete three:1\r\n")
        dump = ask(a, b"stats detail dump\r\n")
        assert sorted(dump.splitlines()) == [
            b"END",
            b"PREFIX one get 2 hit 0 set 0 del 0",
            b"PREFIX three get 0 hit 0 set 0 del 1",
            b"PREFIX two get 1 hit 1 set 1 del 0",
        ]
        assert ask(b, b"stats detail dump\r\n") == dump
        assert ask(b, b"stats reset\r\n") == b"RESET\r\n"
        assert ask(a, b"stats detail dump\r\n") == b"END\r\n"
        ask(a, b"get one:1\r\n")
        assert ask(b, b"stats detail dump\r\n") == b"PREFIX one get 1 hit 0 set 0 del 0\r\nEND\r\n"
        assert ask(b, b"stats detail off\r\n") == b"OK\r\n"
        ask(a, b"get one:1\r\n")
        assert ask(b, b"stats detail dump\r\n") == b"PREFIX one get 1 hit 0 set 0 del 0\r\nEND\r\n"


def test_meta_marks_and_vbuckets_are_shared(served: Served) -> None:
    with clients(served, 2) as (a, b):
        ask(a, b"set k 0 0 1\r\nx\r\n")
        assert ask(a, b"md k I T30\r\n") == b"HD\r\n"
        assert ask(b, b"mg k v\r\n") == b"VA 1 X W\r\nx\r\n"  # this client is to recache it
        assert ask(a, b"mg k v\r\n") == b"VA 1 Z X\r\nx\r\n"
        assert ask(b, b"mg k h\r\n").startswith(b"HD h1")
        with served.connect() as binary:
            key, state = b"7", b"active"
            frame = struct.pack(">BBHBBHIIQ", 0x80, 0x83, len(key), 0, 0, 0, len(key + state), 0, 0)
            binary.sendall(frame + key + state)
            assert binary.recv(100)[:8] == b"\x81\x83" + bytes(6)
        for client in (a, b):
            assert ask(client, b"stats vbucket\r\n") == b"STAT vb_0 active\r\nSTAT vb_7 active\r\nEND\r\n"


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0"])
def test_no_cas_number_is_given_twice(tmp_path: Path, profile: str) -> None:
    with serving(tmp_path / "x.sqlite", *TWO, "--profile", profile) as served, clients(served, 6) as many:
        found: list[list[bytes]] = [[] for _ in many]

        def take(client: socket.socket, mine: list[bytes], key: bytes) -> None:
            for _ in range(50):
                answer = ask(client, b"set %b 0 0 1\r\nx\r\ngets %b\r\n" % (key, key))
                mine.append(answer.splitlines()[1].split()[-1])

        threads = [
            threading.Thread(target=take, args=(client, mine, b"k%d" % number))
            for number, (client, mine) in enumerate(zip(many, found, strict=True))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        numbers = [int(each) for mine in found for each in mine]
        assert len(numbers) == len(set(numbers)) == 300
        if profile == "mysql-8.0":
            assert sorted(numbers) == list(range(1, 301))


def test_a_reload_reaches_every_connection(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("[settings]\ninnodb_api_trx_level = 0\n")
    with serving(tmp_path / "x.sqlite", *TWO, "--config", str(config)) as served, clients(served, 4) as many:
        for client in many:
            assert ask(client, b"get @@aaa.AA\r\n") == b"VALUE @@aaa.AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
        with sqlite3.connect(served.store) as database:
            database.execute("UPDATE config_options SET value = ':' WHERE name = 'table_map_delimiter'")
        database.close()
        config.write_text("[settings]\ninnodb_api_trx_level = 1\nitem_size_max = 2048\n")
        served.reload()
        assert sum("stays 1048576 until the server restarts" in line for line in served.log) == 1
        for client in many:
            assert ask(client, b"get @@aaa:AA\r\n") == b"VALUE @@aaa:AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


def test_a_mapping_stays_as_the_first_worker_read_it(served: Served) -> None:
    with sqlite3.connect(served.store, isolation_level=None) as database, clients(served, 2) as (a, b):
        database.execute("CREATE TABLE one (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))")
        database.execute("CREATE TABLE two (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))")
        database.execute("INSERT INTO one VALUES ('x', 'one')")
        database.execute("INSERT INTO two VALUES ('x', 'two')")
        database.execute("INSERT INTO containers VALUES ('new', 'test', 'one', 'k', 'v', '0', '0', '0', 'PRIMARY')")
        assert ask(a, b"get @@new.x\r\n") == b"VALUE @@new.x 0 3\r\none\r\nEND\r\n"
        database.execute("UPDATE containers SET db_table = 'two' WHERE name = 'new'")
        assert ask(b, b"get @@new.x\r\n") == b"VALUE @@new.x 0 3\r\none\r\nEND\r\n"
        served.reload()
        assert ask(b, b"get @@new.x\r\n") == b"VALUE @@new.x 0 3\r\ntwo\r\nEND\r\n"
        assert ask(a, b"get @@new.x\r\n") == b"VALUE @@new.x 0 3\r\ntwo\r\nEND\r\n"
        database.execute("DROP TABLE two")
        os.kill(workers(served)[0], signal.SIGKILL)
        served.wait_for("restarted")
        with clients(served, 1) as (new,):
            assert ask(new, b"get @@new.x\r\n").startswith(b"SERVER_ERROR")
    database.close()


REFUSED = [
    (["--set", "daemon_memcached_w_batch_size=2"], "--workers 2 and daemon_memcached_w_batch_size=2: over SQLite"),
    (
        ["--set", "daemon_memcached_r_batch_size=3", "--profile", "mysql-5.6"],
        "--workers 2 and batches of 3: in profile 'mysql-5.6', flush_all commits",
    ),
    (["--workers", "65"], "65 is not in the range 1<=x<=64"),
]


def kvref_serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    return kvref("serve", "--listen", "127.0.0.1:0", *arguments)


@pytest.mark.parametrize(("arguments", "text"), REFUSED)
def test_what_several_processes_cannot_serve_is_refused(tmp_path: Path, arguments: list[str], text: str) -> None:
    result = kvref_serve("--create", "--store", f"sqlite:///{tmp_path}/x.sqlite", *TWO, *arguments)
    assert result.returncode == 2
    assert text in result.stderr
    assert "listening" not in result.stderr


def policy(store: Path | str, word: str) -> None:
    with sqlite3.connect(store) as database:
        database.execute(f"UPDATE cache_policies SET get_policy = '{word}'")
    database.close()


def test_a_memory_cache_is_refused_at_the_start_and_by_a_reload(served: Served, tmp_path: Path) -> None:
    policy(served.store, "caching")
    served.reload()
    reported = "--workers 2 and cache_policies: get is 'caching': workers cannot share the memory cache"
    assert reported in "".join(served.log)
    with clients(served, 2) as many:
        for client in many:
            assert ask(client, b"get AA\r\n") == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
    other = kvref_serve("--store", f"sqlite:///{served.store}", *TWO)
    assert (other.returncode, reported in other.stderr) == (2, True)
    policy(served.store, "disabled")
    served.reload()
    with clients(served, 2) as many:
        for client in many:
            assert ask(client, b"get AA\r\n") == b"END\r\n"


@pytest.mark.parametrize("secured", [False, True])
def test_a_killed_worker_loses_no_acknowledged_write_and_is_replaced(tmp_path: Path, secured: bool) -> None:
    """With TLS both workers write, since such connections stay; without it the first one does."""
    options, tls = TWO, None
    if secured:
        certificate, key = authority(tmp_path)
        options, tls = (*TWO, "--tls-cert", str(certificate), "--tls-key", str(key)), trusting(certificate)
    left = 3 if secured else 0
    with (
        serving(tmp_path / "x.sqlite", *options) as served,
        closing(sqlite3.connect(served.store, isolation_level=None)) as database,
        clients(served, 6, tls) as many,
    ):
        database.execute("DELETE FROM demo_test")
        writers = [Writer(client, f"w{number}", number, SHARED) for number, client in enumerate(many)]
        ask(many[0], b"set all 0 0 1\r\n0\r\n")
        for writer in writers:
            writer.start()
        until(lambda: all(writer.acknowledged > 100 for writer in writers))
        dead, alive = workers(served)
        os.kill(dead, signal.SIGKILL)
        served.wait_for("was killed by SIGKILL: its connections are closed")
        served.wait_for("worker 1 restarted")
        until(lambda: sum(writer.is_alive() for writer in writers) == left)
        went_on = [writer.acknowledged for writer in writers]
        until(lambda: sum(w.acknowledged > before for w, before in zip(writers, went_on, strict=True)) == left)
        assert alive in workers(served)
        assert len(workers(served)) == 2
        with clients(served, 2, tls) as more:
            until(lambda: int(stats(more[0])["curr_connections"]) == left + 3)
            assert int(stats(more[1])["cmd_set"]) >= sum(len(writer.values) for writer in writers)
        for client in many:
            with suppress(OSError):  # those of the dead worker have no other end
                client.shutdown(socket.SHUT_RDWR)
        for writer in writers:
            writer.join(10)
        rows = dict(database.execute("SELECT c1, c2 FROM demo_test").fetchall())
        assert differences(writers, SHARED, rows) == []


def test_a_file_that_is_gone_is_not_made_anew(served: Served) -> None:
    Path(served.store).rename(Path(served.store).with_name("moved"))
    served.reload()
    reported = "was deleted or replaced: restart the server"
    assert reported in served.wait_for("configuration not reloaded")
    os.kill(workers(served)[0], signal.SIGKILL)
    assert reported in served.wait_for("a worker cannot start")
    assert not Path(served.store).exists()
    with clients(served, 1) as (client,):
        assert reported.encode() in ask(client, b"get AA\r\n")
        os.kill(workers(served)[0], signal.SIGKILL)
        assert client.recv(100) == b""
        until(lambda: "".join(served.log).count("was killed by SIGKILL") == 2)
    # No worker is left; a client that connects waits for a worker that can start.
    with served.connect() as client:
        client.sendall(b"get AA\r\n")
        Path(served.store).with_name("moved").rename(served.store)
        assert client.recv(100).startswith(b"VALUE AA")


def test_a_killed_parent_takes_its_workers_along(served: Served) -> None:
    with clients(served, 2) as many:
        for client in many:
            assert ask(client, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        children = workers(served)
        served.process.kill()
        served.process.wait(timeout=60)
        until(lambda: all(ended(pid) for pid in children))
        for client in many:
            assert client.recv(100) == b""
    with socket.create_server(("127.0.0.1", served.port)):
        pass  # nothing holds the port


def test_signals_to_all_processes_are_the_parents_to_decide(served: Served) -> None:
    before = workers(served)
    for pid in before:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
    with clients(served, 2) as many:
        for client in many:
            assert ask(client, b"get k\r\n") == b"END\r\n"
    assert workers(served) == before
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(timeout=60) == 0
    assert all(ended(pid) for pid in before)


@pytest.mark.nightly
def test_a_drain_answers_commits_open_batches_and_ends() -> None:
    settings = ("daemon_memcached_w_batch_size=10", "daemon_memcached_r_batch_size=10", "innodb_api_trx_level=0")
    batch = [word for each in settings for word in ("--set", each)]
    with database_or_skip("mysql-8.0") as database:
        with serving(f"{database.dsn}?connections=8", *TWO, *batch) as served, clients(served, 4) as many:
            for number, client in enumerate(many):
                assert ask(client, b"set k%d 0 0 1\r\nx\r\n" % number) == b"STORED\r\n"
                assert ask(many[-1 - number], b"get k%d\r\n" % number) == b"VALUE k%d 0 1\r\nx\r\nEND\r\n" % number
            assert sql(database, "SELECT COUNT(*) FROM test.demo_test WHERE c1 LIKE 'k_'") == [(0,)]
            served.process.send_signal(signal.SIGTERM)
            assert served.process.wait(timeout=60) == 0
            assert [client.recv(100) for client in many] == [b""] * 4
        assert sql(database, "SELECT COUNT(*) FROM test.demo_test WHERE c1 LIKE 'k_'") == [(4,)]
        with serving(database.dsn, *TWO) as served, clients(served, 4) as many:
            numbers = [ask(client, b"set c 0 0 1\r\nx\r\ngets c\r\n").split()[5] for client in many]
        assert len(set(numbers)) == 4
