"""Up, status and down of real servers, as users do it: through the command line."""

from __future__ import annotations

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pymysql
import pytest
from helpers.live import nightly

from kvref_testbed import targets

if TYPE_CHECKING:
    from collections.abc import Callable

    Require = Callable[[str], None]
    Run = Callable[..., Any]

pytestmark = pytest.mark.live

FIELDS = {"name", "profile", "version", "address", "sql", "store", "pid", "log", "folder", "socket"}
PLUGINS = {"mysql-8.0-plugin": ("8.0.33", "mysql-8.0"), "mysql-5.6-plugin": ("5.6.14", "mysql-5.6")}


def say(address: str, line: bytes, last: bytes) -> bytes:
    """Send one line to a memcached address and read until the reply ends as given."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(line)
        reply = b""
        while not reply.endswith(last):
            more = connection.recv(4096)
            assert more, f"the server closed the connection after {reply!r}"
            reply += more
        return reply


def rows(dsn: str, query: str) -> tuple[tuple[Any, ...], ...]:
    """Query the SQL side of a target."""
    parts = urlsplit(dsn)
    path = parse_qs(parts.query)["unix_socket"][0]
    with closing(pymysql.connect(unix_socket=path, user=parts.username)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def exists(pid: int) -> bool:
    """Return whether a process of that number exists, zombies included."""
    return Path(f"/proc/{pid}").exists()


def state_of(status: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Pick one target from `status --json`."""
    return next(each for each in status if each["name"] == name)


def test_memcached_comes_and_goes(kvref: Run, kvref_json: Run, available: Require) -> None:
    available("memcached")
    up = kvref_json("up", "memcached")
    assert set(up) == FIELDS
    assert (up["name"], up["profile"]) == ("memcached", "memcached")
    assert up["sql"] is up["store"] is up["socket"] is None
    assert say(up["address"], b"version\r\n", b"\r\n") == f"VERSION {up['version']}\r\n".encode()

    again = kvref("up", "memcached", "--json")
    assert again.returncode == 0
    assert "already runs" in again.stderr
    assert f'"pid": {up["pid"]}' in again.stdout

    seen = state_of(kvref_json("status"), "memcached")
    assert {field: seen[field] for field in FIELDS} == up
    assert seen["state"] == "running"
    assert targets.find(up["address"]) == targets.find(up["address"].replace("127.0.0.1", "localhost")) is not None

    assert kvref_json("down", "memcached") == [{"name": "memcached", "was_running": True}]
    assert not exists(up["pid"])
    assert not Path(up["folder"]).exists()
    assert targets.find(up["address"]) is None
    assert state_of(kvref_json("status"), "memcached")["state"] == "stopped"

    once_more = kvref("down", "memcached")
    assert (once_more.returncode, once_more.stdout) == (0, "memcached: not running\n")


@pytest.mark.parametrize("name", [nightly(each) for each in PLUGINS])
def test_plugin_comes_and_goes(name: str, kvref_json: Run, available: Require) -> None:
    available(name)
    up = kvref_json("up", name, "--option=--daemon_memcached_w_batch_size=10")
    assert set(up) == FIELDS
    assert (up["version"], up["profile"]) == PLUGINS[name]
    assert say(up["address"], b"get AA\r\n", b"END\r\n") == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
    assert up["socket"] == parse_qs(urlsplit(up["sql"]).query)["unix_socket"][0]
    assert rows(up["sql"], "SELECT c2 FROM test.demo_test") == (("HELLO, HELLO",),)
    assert rows(up["sql"], "SELECT @@daemon_memcached_w_batch_size, VERSION()") == ((10, up["version"]),)
    assert "ready for connections" in Path(up["log"]).read_text()

    assert kvref_json("down", "--all")[list(targets.names()).index(name)] == {"name": name, "was_running": True}
    assert not exists(up["pid"])
    assert not Path(up["folder"]).exists()


def test_two_at_once_start_one(kvref: Run, available: Require) -> None:
    available("memcached")
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: kvref("up", "memcached", "--json"), range(2)))
    assert [each.returncode for each in both] == [0, 0]
    assert both[0].stdout == both[1].stdout
    assert sum("already runs" in each.stderr for each in both) == 1


def test_a_crash_is_reported_and_healed(kvref: Run, kvref_json: Run, available: Require) -> None:
    available("memcached")
    up = kvref_json("up", "memcached")
    os.kill(up["pid"], signal.SIGKILL)
    seen = state_of(kvref_json("status"), "memcached")
    assert (seen["state"], seen["exit_status"], seen["log"]) == ("crashed", -signal.SIGKILL, up["log"])
    assert "was killed by SIGKILL" in seen["reason"]
    assert "memcached crashed" in kvref("status").stdout

    anew = kvref("up", "memcached")
    assert anew.returncode == 0
    assert "had crashed" in anew.stderr
    seen = state_of(kvref_json("status"), "memcached")
    assert seen["state"] == "running"
    assert seen["pid"] != up["pid"]
    assert not Path(up["folder"]).exists()
