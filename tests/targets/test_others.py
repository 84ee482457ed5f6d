"""Other servers and proxies of memcached's protocol: twemproxy, yrmcds, nodecached, Hazelcast, and newer memcached."""

from __future__ import annotations

import json
import os
import signal
import socket
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from helpers.live import nightly, target_or_skip
from helpers.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Require = Callable[[str], None]
    Run = Callable[..., Any]

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("state")]

# What runs, the main one last, and what the last one or the one behind it says of itself.
SERVERS = {
    "memcached-newer": (["memcached"], "1.6."),
    "memcached-proxy": (["memcached", "memcached-proxy"], "1.6."),
    "twemproxy": (["mysqld", "nutcracker"], "8.0.33"),
    "twemproxy-memcached": (["memcached", "nutcracker"], "1."),
    "yrmcds": (["yrmcdsd"], "yrmcds version "),
    "nodecached": (["nodecached"], "nodecached-0.2.0"),
    "hazelcast": (["hazelcast"], "Hazelcast"),
}
# They need Maven and Java, Node, or a tree of another Debian release.
NIGHTLY = ("twemproxy", "hazelcast", "nodecached", "memcached-newer", "memcached-proxy")
EVERY = pytest.mark.parametrize("name", [nightly(each) if each in NIGHTLY else each for each in SERVERS])


def talk(address: str, *requests: bytes) -> list[bytes]:
    """Send requests on one connection, each after the answer to the one before; an answer that is cut ends them."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        answers = []
        for request in requests:
            connection.sendall(request)
            answer = b""
            # yrmcds sends an answer in pieces now and then.
            while not answer.endswith(b"END\r\n" if answer.startswith((b"VALUE ", b"STATS ")) else b"\r\n"):
                more = connection.recv(4096)
                if not more:
                    return [*answers, answer]
                answer += more
            answers.append(answer)
        return answers


def until_ended(folder: Path, processes: Sequence[int]) -> None:
    """Wait until the processes and their folder are gone."""
    until(lambda: not folder.exists() and not any(psutil.pid_exists(each) for each in processes))


@EVERY
def test_it_comes_and_goes(name: str, state: Path, kvref_json: Run, available: Require) -> None:
    available(name)
    up = kvref_json("up", name)
    programs, version = SERVERS[name]
    profile = "mysql-8.0" if name == "twemproxy" else "memcached"
    assert (up["profile"], up["sql"], up["store"], up["socket"]) == (profile, None, None, None)
    assert up["version"].startswith(version)
    sent = talk(up["address"], b"version\r\n", b"set k 7 0 1\r\nx\r\n", b"get k\r\n", b"delete k\r\n")
    message = f"VERSION {up['version']}\r\n".encode()
    assert sent == [message, b"STORED\r\n", b"VALUE k 7 1\r\nx\r\nEND\r\n", b"DELETED\r\n"]

    processes = json.loads((state / f"{name}.json").read_text())["processes"]
    assert [each["name"] for each in processes] == programs
    assert processes[-1]["pid"] == up["pid"]
    found = [psutil.Process(each["pid"]).net_connections("inet") for each in processes]
    listening = [each.laddr.ip for each in chain(*found) if each.status == psutil.CONN_LISTEN]
    assert len(listening) >= len(programs)
    assert all(each.startswith("127.") for each in listening), listening

    assert kvref_json("down", name) == [{"name": name, "was_running": True}]
    until_ended(Path(up["folder"]), [each["pid"] for each in processes])


@EVERY
def test_two_at_once_do_not_meet(name: str) -> None:
    with target_or_skip(name) as one, target_or_skip(name) as other:
        assert one.address != other.address
        assert talk(one.memcached(), b"set k 0 0 1\r\nx\r\n") == [b"STORED\r\n"]
        assert talk(other.memcached(), b"get k\r\n") == [b"END\r\n"]
    for each in (one, other):
        until_ended(each.folder, [each.pid])


@pytest.mark.nightly
def test_twemproxy_passes_on_what_the_plugin_answers() -> None:
    with target_or_skip("twemproxy") as target:
        demo = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
        assert talk(target.memcached(), b"get AA\r\n") == [demo]
        # Why the suite cannot use its SQL side: no client can choose a mapping for itself.
        assert talk(target.memcached(), b"bind aaa\r\n") == [b""]
        mapped = b"VALUE @@aaa 0 14\r\ntest/demo_test\r\nEND\r\n"
        assert talk(target.memcached(), b"get @@aaa\r\n", b"get AA\r\n") == [mapped, demo]


def test_an_option_reaches_the_server_behind_twemproxy_or_twemproxy() -> None:
    value = b"x" * 1_500_000
    store = b"set k 0 0 %d\r\n%b\r\n" % (len(value), value)
    with target_or_skip("twemproxy-memcached") as target:
        assert talk(target.memcached(), store) == [b"SERVER_ERROR object too large for cache\r\n"]
    with target_or_skip("twemproxy-memcached", ["--server=--max-item-size=2m", "--mbuf-size=512"]) as target:
        assert talk(target.memcached(), store) == [b"STORED\r\n"]
        assert "--mbuf-size=512" in psutil.Process(target.pid).cmdline()


def test_the_end_of_the_server_behind_twemproxy_is_a_crash(state: Path, kvref_json: Run, available: Require) -> None:
    available("twemproxy-memcached")
    up = kvref_json("up", "twemproxy-memcached")
    behind = json.loads((state / "twemproxy-memcached.json").read_text())["processes"][0]
    os.kill(behind["pid"], signal.SIGKILL)
    seen = next(each for each in kvref_json("status") if each["name"] == "twemproxy-memcached")
    assert (seen["state"], seen["exit_status"]) == ("crashed", -signal.SIGKILL)
    assert "memcached" in seen["reason"]
    kvref_json("down", "twemproxy-memcached")
    until_ended(Path(up["folder"]), [up["pid"], behind["pid"]])
