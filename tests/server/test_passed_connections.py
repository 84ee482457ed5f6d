"""A connection that writes goes to the first worker, which goes on where the other one stopped."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.serving import Served, ask, serving, sockets, until_read, workers
from helpers.waiting import until
from server.in_process import InProcess, turns_until
from server.listeners.talk import authority, frame, trusting

from kvref.server.connection_state import Passed
from kvref.server.listeners.listener import Listener

TWO = ("--workers", "2")
ROW = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "x.sqlite", *TWO) as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[socket.socket]:
    """Return a connection that the second worker serves."""
    with served.connect() as first, of_second(served) as second:
        assert ask(first, b"get AA\r\n") == ROW  # it stays, so that the next connection is the second worker's
        yield second


def of_second(served: Served) -> socket.socket:
    before = sockets(workers(served)[1])
    client = served.connect()
    until(lambda: sockets(workers(served)[1]) == before + 1)
    return client


def both(served: Served) -> tuple[int, ...]:
    return tuple(map(sockets, workers(served)))


def numbers(client: socket.socket) -> tuple[int, ...]:
    rows = dict(re.findall(rb"STAT (\S+) (\d+)\r\n", ask(client, b"stats\r\n")))
    return tuple(int(rows[name]) for name in (b"curr_connections", b"total_connections"))


def exchange(client: socket.socket, data: bytes, answer: bytes) -> None:
    client.sendall(data)
    reply = b""
    while len(reply) < len(answer):
        piece = client.recv(1 << 16)
        assert piece, reply
        reply += piece
    assert reply == answer


def test_a_connection_moves_with_its_first_write(served: Served, client: socket.socket) -> None:
    first, second = both(served)
    assert ask(client, b"get AA\r\n") == ROW
    assert both(served) == (first, second)
    before = numbers(client)
    exchange(client, b"set k 1 0 3\r\nabc\r\n", b"STORED\r\n")
    until(lambda: both(served) == (first + 1, second - 1))
    exchange(client, b"get k\r\n", b"VALUE k 1 3\r\nabc\r\nEND\r\n")
    assert numbers(client) == before


@pytest.mark.parametrize(
    "data",
    [
        b"get AA\r\nset k 0 0 1\r\na\r\nget k\r\nappend k 0 0 1\r\nb\r\nget k\r\n",
        b"set k 0 0 1\r\na\r\nget k\r\nappend k 0 0 1\r\nb\r\nget k\r\nget AA\r\n",
        b"set k 0 0 1 noreply\r\na\r\nget k\r\n",
        b"mg AA v t\r\nms k 2\r\nab\r\nmg k v t f\r\nincr AA 1\r\ndelete k\r\nget k\r\n",
        b"touch AA 100\r\nset k 0 0 1\r\nlonger\r\nget k\r\n",
    ],
)
@pytest.mark.parametrize("cut", [0, 3, 14, 15])
def test_commands_around_the_first_write_are_answered_in_order(
    served: Served, client: socket.socket, tmp_path: Path, data: bytes, cut: int
) -> None:
    with serving(tmp_path / "one.sqlite") as alone, alone.connect() as other:
        expected = ask(other, data)
    first, _ = both(served)
    if cut:
        client.sendall(data[:cut])
        until_read(client)
    assert ask(client, data[cut:]) == expected
    ask(client, b"set again 0 0 1\r\na\r\n")
    until(lambda: sockets(workers(served)[0]) > first)
    assert ask(client, b"get again\r\n") == b"VALUE again 0 1\r\na\r\nEND\r\n"


def test_the_binary_protocol_goes_on(served: Served, client: socket.socket) -> None:
    first, second = both(served)
    write = frame(0x01, b"k", b"value", bytes(8))
    client.sendall(write[:30])
    until_read(client)
    client.sendall(write[30:] + frame(0x00, b"k"))
    reply = b""
    while not reply.endswith(b"value"):
        reply += client.recv(4096)
    until(lambda: both(served) == (first + 1, second - 1))
    client.sendall(frame(0x00, b"AA"))
    assert client.recv(4096).endswith(b"HELLO, HELLO")


def test_connections_without_a_batch_stay_when_a_flush_commits_those_of_others(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "x.sqlite", *TWO, "--profile", "mysql-5.6") as served,
        served.connect(),
        of_second(served) as client,
        served.connect(),
        of_second(served) as silent,
        served.connect(),
        of_second(served) as reader,
    ):
        first, second = both(served)
        exchange(reader, b"get AA\r\n", ROW)
        exchange(client, b"get AA\r\nflush_all\r\n", ROW + b"OK\r\n")  # a flush in front would move before it
        until(lambda: both(served)[0] > first)
        silent.sendall(frame(0x00, b"AA"))
        assert silent.recv(4096).endswith(b"Not found")
        exchange(reader, b"get AA\r\n", b"END\r\n")
        assert both(served) == (first + 1, second - 1)


@pytest.mark.parametrize(("profile", "openings"), [("kvref", (b"SS", b"PROX", b"*1")), ("mysql-5.6", ())])
def test_a_connection_stays_until_its_first_bytes_decide_the_protocol(
    tmp_path: Path, profile: str, openings: tuple[bytes, ...]
) -> None:
    moved: list[bytes] = []

    def pass_on(_: int, __: Listener, passed: Passed) -> bool:
        moved.append(passed.pending)
        return False

    async def play() -> None:
        process = InProcess(tmp_path / "file", profile)
        process.server.pass_on = pass_on
        async with process.clients(5) as (writer, silent, *others):
            await turns_until(lambda: len(process.server.connections) == 5)
            process.disk.clear()
            for each, opening in zip(others, openings, strict=False):
                await each.deliver(opening)
            await writer.deliver(b"get k\r\nset k 0 0 1\r\nv\r\nge")
            await turns_until(lambda: process.syncs)
            for each in process.server.connections:
                each.resume_writing()  # as any event, it lets a connection wait for the commit of another one
            process.disk.set()
            await turns_until(lambda: moved)
            assert await writer.heard(2) == b"END\r\nSTORED\r\n"
            await silent.send(frame(0x00, b"AA"))
            assert (await silent.some()).endswith(b"HELLO, HELLO")

    asyncio.run(play())
    assert moved == [b"ge"]


def test_the_mapping_stays_bound_unless_it_is_gone(served: Served, client: socket.socket) -> None:
    with sqlite3.connect(served.store, isolation_level=None) as database:
        database.execute("CREATE TABLE one (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))")
        database.execute("INSERT INTO containers VALUES ('new', 'test', 'one', 'k', 'v', '0', '0', '0', 'PRIMARY')")
        with served.connect(), of_second(served) as other:
            for each in (client, other):
                assert ask(each, b"get @@new\r\n").startswith(b"VALUE @@new")
            exchange(client, b"set k 0 0 3\r\nabc\r\n", b"STORED\r\n")
            exchange(client, b"get k\r\n", b"VALUE k 0 3\r\nabc\r\nEND\r\n")
            assert database.execute("SELECT k, v FROM one").fetchall() == [("k", "abc")]
            database.execute("DELETE FROM containers WHERE name = 'new'")
            served.reload()
            reply = b"SERVER_ERROR mapping new is no longer in containers: bind another\r\n"
            exchange(other, b"set k 0 0 3\r\nabc\r\n", reply)
    database.close()


def test_a_user_stays_known(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice:secret\n")
    options = (*TWO, "--auth-file", str(users))
    with serving(tmp_path / "x.sqlite", *options) as served, served.connect(), of_second(served) as client:
        exchange(client, b"set a 0 0 12\r\nalice secret\r\n", b"STORED\r\n")
        first, second = both(served)
        exchange(client, b"set k 0 0 3\r\nabc\r\n", b"STORED\r\n")
        until(lambda: both(served) == (first + 1, second - 1))
        exchange(client, b"get k\r\n", b"VALUE k 0 3\r\nabc\r\nEND\r\n")


def test_a_connection_with_tls_stays(tmp_path: Path) -> None:
    certificate, key = authority(tmp_path)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with (
        serving(tmp_path / "x.sqlite", *TWO, *options) as served,
        served.connect(),
        of_second(served) as plain,
        trusting(certificate).wrap_socket(plain, server_hostname="localhost") as client,
    ):
        before = both(served)
        exchange(client, b"set k 0 0 3\r\nabc\r\n", b"STORED\r\n")
        exchange(client, b"get k\r\n", b"VALUE k 0 3\r\nabc\r\nEND\r\n")
        assert both(served) == before


def test_a_write_is_carried_out_also_while_the_first_worker_is_replaced(served: Served, client: socket.socket) -> None:
    os.kill(workers(served)[0], signal.SIGKILL)
    served.wait_for("was killed by SIGKILL")
    for number in range(300):
        exchange(client, b"set k 0 0 3\r\n%03d\r\n" % number, b"STORED\r\n")
    served.wait_for("worker 1 restarted")
    exchange(client, b"get k\r\n", b"VALUE k 0 3\r\n299\r\nEND\r\n")


def test_a_reader_stays_while_others_write(served: Served, client: socket.socket) -> None:
    with served.connect() as writer:
        for number in range(50):
            exchange(writer, b"set k 0 0 2\r\n%02d\r\n" % number, b"STORED\r\n")
            exchange(client, b"get k\r\n", b"VALUE k 0 2\r\n%02d\r\nEND\r\n" % number)
    assert sockets(workers(served)[1]) >= 1


def test_many_connections_move_at_once_with_much_input(served: Served) -> None:
    many, sets = 160, 850  # more than the channels between the processes hold
    data = b"".join(b"set k%d 0 0 50\r\n%050d\r\n" % (number, number) for number in range(sets))
    with ExitStack() as stack:
        clients = [stack.enter_context(served.connect()) for _ in range(many)]
        for each in clients:
            assert ask(each, b"get AA\r\n") == ROW
        for each in clients:
            each.sendall(data)
        for each in clients:
            exchange(each, b"", b"STORED\r\n" * sets)
        until(lambda: sockets(workers(served)[0]) > many)  # those that found the channel full follow
    assert not any("closed" in line for line in served.log)


def test_a_connection_moves_once_also_if_a_write_comes_while_it_moves(served: Served) -> None:
    chance = random.Random(5)
    with served.connect() as first:
        assert ask(first, b"get AA\r\n") == ROW
        before = both(served)
        for _ in range(150):
            with of_second(served) as client:
                client.sendall(b"get AA\r\nset a 0 0 1\r\na\r\n")
                time.sleep(chance.uniform(0, 0.003))
                for piece in (b"set b 0", b" 0 1\r\nb\r\nget", b" b\r\n"):
                    client.sendall(piece)
                exchange(client, b"", ROW + b"STORED\r\n" * 2 + b"VALUE b 0 1\r\nb\r\nEND\r\n")
            until(lambda: both(served) == before, pause=0.001)


def test_a_connection_that_moves_counts_once(tmp_path: Path) -> None:
    with serving(tmp_path / "x.sqlite", *TWO, "--set", "maxconns=3") as served, served.connect() as first:
        exchange(first, b"get AA\r\n", ROW)
        before = both(served)
        for number in range(100):
            with of_second(served) as second:
                second.sendall(b"set k 0 0 3\r\n%03d\r\n" % number)
                with served.connect() as third:
                    exchange(third, b"get AA\r\n", ROW)
                exchange(second, b"", b"STORED\r\n")
            until(lambda: both(served) == before, pause=0.001)


def test_verbosity_is_of_all_workers(served: Served, client: socket.socket) -> None:
    with served.connect(), of_second(served) as other:
        assert ask(client, b"verbosity 2\r\n") == b"OK\r\n"
        for each in (client, other):
            assert b"STAT verbosity 2\r\n" in ask(each, b"stats settings\r\n")
