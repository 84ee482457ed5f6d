"""`/metrics` and `/healthz` of a running server."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from helpers.database import database_or_skip, stopped
from helpers.http_client import AT, fetch, metrics, port_of, wait_for_health
from helpers.live import MYSQL_8
from helpers.serving import Served, ask, serving
from helpers.waiting import until

from kvref.server.telemetry.http import is_known_host
from kvref.server.telemetry.metrics import MEMCACHED_METRICS, METRICS

SQL_SERVERS = (MYSQL_8, "mariadb")


@pytest.fixture(params=["1", "2"], ids=["one process", "two workers"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "s.sqlite", *AT, "--workers", request.param) as server:
        wait_for_health(server, 200, "ok")
        yield server


def test_the_table_of_the_reference_is_what_is_exposed(served: Served) -> None:
    with served.connect() as client:
        ask(client, b"get AA\r\n")  # a histogram by command shows the commands that it has
    text = fetch(served, "/metrics")[1]
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    labels = dict(re.findall(r"^(\w+?)(?:_count)?\{(\w+)=", text, re.MULTILINE)) | {"kvref_info": "…"}
    assert {name: (kinds[name], labels.get(name, ""), helps[name]) for name in kinds} == {
        row.name: (row.kind, row.label, row.help) for row in (*METRICS.values(), *MEMCACHED_METRICS.values())
    }


def test_what_clients_do_is_counted(served: Served) -> None:
    before = metrics(served)
    with served.connect() as client, served.connect() as other:
        ask(client, b"set a 0 0 1\r\n1\r\nget a AA nope\r\nincr a 1\r\nincr nope 1\r\ndelete a\r\n")
        ask(other, b"gets AA\r\ncas AA 0 0 1 999\r\nx\r\ntouch nope 0\r\n")
        assert ask(other, b"set t 0 0 2000000\r\n" + b"x" * 2_000_000 + b"\r\n").startswith(b"SERVER_ERROR")
        assert ask(other, b"append AA 0 0 1020\r\n" + b"x" * 1020 + b"\r\n").startswith(
            b"SERVER_ERROR object too large"
        )
        during = metrics(served)
        assert during["kvref_connections"] == 2
    made = {name: value - before.get(name, 0) for name, value in during.items()}
    commands = {
        name: made[f'kvref_commands_total{{command="{name}"}}']
        for name in ("get", "set", "cas", "delete", "incr", "decr", "touch", "flush")
    }
    # The set that was too large is none, as in `stats`; the append whose result is too large is one.
    assert commands == {"get": 4, "set": 2, "cas": 1, "delete": 1, "incr": 2, "decr": 0, "touch": 1, "flush": 0}
    assert (made['kvref_hits_total{command="get"}'], made['kvref_misses_total{command="get"}']) == (3, 1)
    assert (made['kvref_hits_total{command="incr"}'], made['kvref_misses_total{command="touch"}']) == (1, 1)
    assert made["kvref_cas_badval_total"] == 1
    assert made["kvref_server_errors_total"] == 0  # nor did the store refuse it
    assert made["kvref_connections_total"] == 2
    assert made["kvref_read_bytes_total"] > 2_000_000
    assert made["kvref_written_bytes_total"] > 50
    assert made["kvref_commit_seconds_count"] >= 1
    assert made['kvref_commit_seconds_bucket{le="+Inf"}'] == made["kvref_commit_seconds_count"]
    assert made["kvref_commit_seconds_sum"] > 0
    assert during["process_resident_memory_bytes"] > 10e6
    assert abs(during["kvref_start_time_seconds"] - time.time()) < 60


@pytest.mark.parametrize("served", ["1"], indirect=True)
def test_commands_have_the_names_of_memcached_exporter(served: Served) -> None:
    with served.connect() as client:
        ask(client, b"set a 0 0 1\r\n1\r\nget a nope\r\nincr a 1\r\ndelete nope\r\n")
        ask(client, b"gets a\r\ncas a 0 0 1 999\r\n1\r\ntouch a 0\r\nflush_all\r\n")
        found = metrics(served)
    counted = {
        re.sub(r'.*command="(\w+)",status="(\w+)".*', r"\1 \2", name): value
        for name, value in found.items()
        if name.startswith("memcached_commands_total") and value
    }
    assert counted == {
        "set hit": 1, "get hit": 2, "get miss": 1, "incr hit": 1, "delete miss": 1, "cas badval": 1, "touch hit": 1,
        "flush hit": 1,
    }  # fmt: skip
    assert found["memcached_up"] == found["memcached_current_connections"] == found["memcached_items_total"] == 1


def test_durations_of_commands_are_counted_by_command(served: Served) -> None:
    with served.connect() as client:
        ask(client, b"set a 0 0 1\r\n1\r\n")
        ask(client, b"get a\r\n")
        # Fast path and slow path, with and without a commit, several lines in one packet, an error.
        ask(client, b"add a 5 100 1\r\n1\r\nreplace a 5 0 1\r\n7\r\nincr a 1\r\nget a nope\r\nmg a v\r\ndelete a\r\n")
        ask(
            client,
            b"append a 0 0 1\r\n1\r\ncas a 0 0 1 9\r\n1\r\ndecr nope 1\r\nget  a\r\ngat 0 a\r\nset a 0 0 x\r\nmn\r\n",
        )
        ask(client, b"set a 0 0 1 noreply\r\n1\r\n")  # without a reply
        found = {
            re.search(r'command="(\w+)"', name)[1]: value  # type: ignore[index]
            for name, value in metrics(served).items()
            if name.startswith("kvref_command_seconds_count")
        }
    assert found == {
        "set": 4, "get": 3, "incr": 1, "mg": 1, "delete": 1, "cas": 1, "decr": 1, "gat": 1, "mn": 1, "other": 1,
        "version": found["version"],
    }  # fmt: skip


def test_a_duration_contains_the_wait_for_the_commit(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *AT) as served, closing(sqlite3.connect(served.store)) as database:
        with served.connect() as client:
            database.execute("BEGIN IMMEDIATE")
            client.sendall(b"set a 0 0 1\r\n1\r\n")
            until(lambda: metrics(served)["kvref_read_bytes_total"])
            received = time.monotonic()
            metrics(served)  # takes longer than a set that does not wait
            waited = time.monotonic() - received
            database.rollback()
            assert client.recv(100) == b"STORED\r\n"
        sums = metrics(served)
    assert sums['kvref_command_seconds_sum{command="set"}'] >= waited


@pytest.mark.parametrize("served", ["1"], indirect=True)
def test_what_the_store_cannot_do_is_counted(served: Served) -> None:
    with closing(sqlite3.connect(served.store)) as database, served.connect() as client:
        database.execute("DROP TABLE demo_test")
        assert ask(client, b"get AA\r\nset k 0 0 1\r\n1\r\n").count(b"SERVER_ERROR") == 2
    assert metrics(served)["kvref_server_errors_total"] == 2


@pytest.mark.parametrize("served", ["2"], indirect=True)
def test_reloads_are_counted(served: Served) -> None:
    served.reload()
    wanted = {'kvref_reloads_total{result="taken"}': 1, 'kvref_reloads_total{result="refused"}': 0}
    assert wanted.items() <= metrics(served).items()


def test_open_batches_are_shown(tmp_path: Path) -> None:
    options = (*AT, "--set", "daemon_memcached_w_batch_size=9", "--set", "innodb_api_bk_commit_interval=100")
    with serving(tmp_path / "s.sqlite", *options) as served, served.connect() as client:
        assert ask(client, b"set a 0 0 1\r\n1\r\n") == b"STORED\r\n"
        until(lambda: metrics(served)["kvref_batches_open"] == 1)  # counted once a second


@pytest.mark.parametrize("served", ["2"], indirect=True)
def test_openmetrics(served: Served) -> None:
    text = fetch(served, "/metrics", Accept="application/openmetrics-text; version=1.0.0")[1]
    assert text.endswith("# EOF\n")


QUESTIONS = (
    ("GET", "/", 404), ("GET", "/metrics/", 404), ("GET", "/healthz?verbose", 200), ("HEAD", "/healthz", 200),
    ("POST", "/metrics", 405), ("BREW", "/healthz", 405), ("DELETE", "/no", 405), ("GET", "/" + "x" * 70_000, 414),
)  # fmt: skip


def test_other_questions(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *AT) as served:
        wait_for_health(served, 200, "ok")
        for method, path, status in QUESTIONS:
            found, text = fetch(served, path, method)
            assert (found, text == "") == (status, method == "HEAD"), (method, path[:20])


@pytest.mark.parametrize("served", ["1"], indirect=True)
def test_slow_clients_hold_up_nobody(served: Served) -> None:
    port = port_of(served)
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(30)]
        for each in slow:
            each.sendall(b"GET /metrics HT")
        assert fetch(served, "/healthz")[0] == 200
        more = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(30)]
        for each in slow:
            each.sendall(b"TP/1.1\r\nX: ")
        # Those that find no place are closed at once, the others when their time is over, whatever they send.
        for each in (*more, *slow):
            assert each.recv(100) == b""
        with served.connect() as client:
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")
    assert fetch(served, "/healthz")[0] == 200


def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *AT) as served:
        deadline = time.monotonic() + 20
        with socket.create_connection(("127.0.0.1", port_of(served)), timeout=0.2) as slow:
            slow.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            while True:
                assert time.monotonic() < deadline
                try:
                    slow.sendall(b"x")
                    if not slow.recv(10):
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(AssertionError) as refused:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        with serving(tmp_path / "s.sqlite", "--metrics", at):
            pass
    assert f"cannot listen on {at}: Address already in use: choose another --metrics" in str(refused.value)


@pytest.mark.live
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("name", SQL_SERVERS)
def test_health_follows_the_database(name: str, workers: str) -> None:
    with (
        database_or_skip(name) as database,
        serving(f"{database.dsn}?timeout=4", *AT, "--workers", workers) as served,
    ):
        wait_for_health(served, 200, "ok")
        database.kill()
        assert wait_for_health(served, 503, "the store cannot be used: store mysql://").count("\n") == 1
        # One process is enough for 503; the other one sees it at its own next query.
        until(lambda: not any(up for name, up in metrics(served).items() if name.startswith("kvref_store_up")))
        database.start()
        wait_for_health(served, 200, "ok")
        with stopped(database):
            wait_for_health(served, 503, "the store has not answered for")
            assert fetch(served, "/metrics")[0] == 200
        wait_for_health(served, 200, "ok")
        with served.connect() as client:
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")


def test_health_follows_the_file(served: Served) -> None:
    path = Path(served.store)
    path.rename(path.with_suffix(".gone"))
    wait_for_health(served, 503, "the store cannot be used")
    path.with_suffix(".gone").rename(path)
    wait_for_health(served, 200, "ok")


def test_health_while_clients_are_waited_for(served: Served) -> None:
    with served.connect() as client:
        assert ask(client, b"set big 0 0 1000\r\n" + b"v" * 1000 + b"\r\n") == b"STORED\r\n"
        client.sendall(b"get " + b"big " * 30_000 + b"\r\n")
        client.recv(1, socket.MSG_PEEK)  # the reply has begun, and is never read
        until(lambda: metrics(served)["kvref_read_bytes_total"] > 120_000)
        served.process.send_signal(signal.SIGTERM)
        wait_for_health(served, 503, "the server is stopping")
        assert metrics(served)["kvref_up"] == 0
    assert served.process.wait(timeout=60) == 0


def children(pid: int) -> dict[int, str]:
    """Return the children of a process, each with its command line's last word or the names of its threads."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(each): " ".join(_threads(int(each))) for each in found}


def _threads(pid: int) -> list[str]:
    """Return the names of the threads of a process, without those that end meanwhile."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/comm"):
        with suppress(ProcessLookupError, FileNotFoundError):
            found.append(path.read_text().strip())
    return found


def test_a_worker_that_hangs_is_noticed(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *AT, "--workers", "2") as served:
        wait_for_health(served, 200, "ok")
        worker = min(children(served.process.pid))
        os.kill(worker, signal.SIGSTOP)
        try:
            wait_for_health(served, 503, f"process {worker} has been unresponsive for")
        finally:
            os.kill(worker, signal.SIGCONT)
        wait_for_health(served, 200, "ok")
        os.kill(worker, signal.SIGKILL)
        served.wait_for("restarted (pid")
        assert metrics(served)["kvref_worker_restarts_total"] == 1


def test_what_serves_metrics_of_workers_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *AT, "--workers", "2") as served:
        wait_for_health(served, 200, "ok")
        exporter = max(children(served.process.pid))
        os.kill(exporter, signal.SIGKILL)
        served.wait_for("the metrics process ended unexpectedly")
        until(lambda: max(children(served.process.pid)) != exporter)
        wait_for_health(served, 200, "ok")
        served.process.kill()
        served.process.wait(timeout=60)
        until(lambda: not listens(port_of(served)))


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9150", 200), ("[::1]:9150", 200), ("[::1]", 200), ("LocalHost.", 200), ("a.localhost:1", 200),
        ("Scraper.Example:80", 200), ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 421),
        ("localhost@evil.example", 421), ("[evil.example]", 421), ("localhost:x", 421),
    ],
)  # fmt: skip
def test_hosts(host: str, status: int) -> None:
    assert is_known_host(host, {"scraper.example"}) == (status == 200)


def test_a_page_of_another_name_reads_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite", *AT, "--metrics-host", "Scraper.example") as served:
        wait_for_health(served, 200, "ok")
        for path in ("/metrics", "/healthz", "/other"):
            status, text = fetch(served, path, Host="evil.example")
            assert (status, text) == (421, "unknown Host: add it with --metrics-host\n")
        assert fetch(served, "/healthz", Host="scraper.EXAMPLE:9150")[0] == 200
        assert fetch(served, "/healthz", Host=socket.gethostname())[0] == 200
        assert fetch(served, "/metrics", "POST", Host="evil.example")[0] == 421
