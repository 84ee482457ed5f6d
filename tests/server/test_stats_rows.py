"""`stats conns`: a row for what each connection does."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path

import pytest
from helpers.serving import ask, serving
from server.in_process import SECONDS, InProcess

from kvref.server.stats_rows import SocketStats, State, rows_of

ADDRESS = ("127.0.0.1", 1)


@pytest.mark.parametrize(
    ("family", "peer", "own", "shown"),
    [
        (socket.AF_INET, ADDRESS, ("127.0.0.1", 2), ("tcp:127.0.0.1:1", "tcp:127.0.0.1:2")),
        (socket.AF_INET6, ("::1", 1, 0, 0), ("::1", 2, 0, 0), ("tcp6:[::1]:1", "tcp6:[::1]:2")),
        (socket.AF_UNIX, "", "/run/x", ("unix:<unnamed>", "unix:/run/x")),
        (socket.AF_UNIX, b"\0name", b"/run/x", ("unix:\0name", "unix:/run/x")),
    ],
)
def test_addresses(family: int, peer: object, own: object, shown: tuple[str, str]) -> None:
    assert SocketStats(7, peer, own, family, State.IDLE, 3.9).rows() == [  # [clients-001]
        ("7:addr", shown[0]),
        ("7:listen_addr", shown[1]),
        ("7:state", "conn_read"),
        ("7:secs_since_last_cmd", "3"),
    ]


def test_a_socket_that_is_listened_on_has_one_address() -> None:
    listening = SocketStats(9, None, ADDRESS, socket.AF_INET, State.LISTENING, 0.0)
    client = SocketStats(10, ADDRESS, ADDRESS, socket.AF_INET, State.IDLE, -0.1)
    found = rows_of([client, listening])
    assert found[:3] == [
        ("9:addr", "tcp:127.0.0.1:1"),
        ("9:state", "conn_listening"),
        ("9:secs_since_last_cmd", "0"),
    ]
    assert [name for name, _ in found[3:]] == ["10:addr", "10:listen_addr", "10:state", "10:secs_since_last_cmd"]
    assert found[-1][1] == "0"


def test_what_connections_do(tmp_path: Path) -> None:
    async def run() -> None:
        served = InProcess(tmp_path / "x.sqlite")
        async with served.clients(4) as (asks, idle, half, reads_nothing):
            for client in (asks, idle, half):
                await client.ask(b"version\r\n")
            assert await asks.ask(b"set big 0 0 1000\r\n" + b"x" * 1000 + b"\r\n") == b"STORED\r\n"
            await half.send(b"set a 0 0 5\r\nab")
            wanted, states = ["conn_mwrite", "conn_nread", "conn_parse_cmd", "conn_read"], [""]
            async with asyncio.timeout(SECONDS):
                while states != wanted:
                    if "conn_mwrite" not in states:
                        await reads_nothing.send(b"get" + b" big" * 1000 + b"\r\n")
                    reply = (await asks.ask(b"stats conns\r\n", lines=17)).decode()
                    states = sorted(re.findall(r":state (\w+)\r\n", reply))
            reads_nothing.close()
            assert len(re.findall(r":addr tcp:127\.0\.0\.1:\d+\r\n", reply)) == 4

    asyncio.run(run())


def test_sockets_that_are_listened_on_are_shown(tmp_path: Path) -> None:
    with serving(tmp_path / "x.sqlite") as served, served.connect() as client:
        own = f"tcp:127.0.0.1:{client.getsockname()[1]}"
        reply = ask(client, b"stats conns\r\n").decode()
        descriptor = re.search(rf"STAT (\d+):addr {own}\r\n", reply)
        assert descriptor is not None
        assert f"STAT {descriptor[1]}:listen_addr tcp:127.0.0.1:{served.port}\r\n" in reply
        assert f"STAT {descriptor[1]}:state conn_parse_cmd\r\n" in reply
        listening = re.search(
            rf"STAT (\d+):addr tcp:127.0.0.1:{served.port}\r\nSTAT \1:state conn_listening\r\n", reply
        )
        assert listening is not None
        assert reply.count(":addr ") == 2
