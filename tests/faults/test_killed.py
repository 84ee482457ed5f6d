"""Kill -9 of kvref at any moment of a load, and its start on the same store."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

import pytest
from faults.description import Fault, of
from faults.load import Client, Mix, Numbers, differences, fetch
from faults.processes import children
from faults.stores import Store
from helpers.serving import Served, ask, serving
from helpers.waiting import until, until_risen

CLIENTS = 4
LONGEST_LOAD = 0.12  # seconds between the first answers and the kill
SETTLED = 20.0  # seconds in which a database must have noticed that the client of an open transaction is gone
WORKERS = ("--workers", "2")

pytestmark = pytest.mark.live


class Kills:
    """One kill after another on one store; each round has its own keys, which all stay to the end."""

    def __init__(self, fault: Fault, store: Store, mix: Mix | None = None, batch: int = 1) -> None:
        self._fault = fault
        self._store = store
        self._mix = mix or Mix()
        self._batch = batch
        self._random = random.Random(fault.id)
        self._numbers = Numbers()
        self._rounds: list[list[Client]] = []

    def play(self, *options: str) -> None:
        """Kill the server and start it again, as often as the run's length says; options are of `kvref serve`."""
        with ExitStack() as stack:
            served = stack.enter_context(serving(self._store.dsn, *options))
            for _ in range(self._fault.size):
                clients = self.begin(served)
                served.process.kill()
                self.ended(clients)
                stack.close()
                served = stack.enter_context(serving(self._store.dsn, *options))
                self.check(served)
        self.check_all()

    def begin(self, served: Served) -> list[Client]:
        """Begin to write on several connections; returns some moment after the first answers."""
        number = len(self._rounds)
        if self._mix.counts:
            with served.connect() as client:
                assert ask(client, b"set %d.all 0 0 1\r\n0\r\n" % number) == b"STORED\r\n"
        clients = [
            Client(served.connect(), f"{number}.{who}", number * CLIENTS + who, self._numbers, self._mix)
            for who in range(CLIENTS)
        ]
        self._rounds.append(clients)
        for client in clients:
            client.start()
        until_risen(lambda: [client.acknowledged for client in clients])
        time.sleep(self._random.uniform(0, LONGEST_LOAD))  # the kill comes at any moment
        return clients

    def ended(self, clients: Sequence[Client]) -> None:
        """Wait for the end of connections whose server is gone."""
        for client in clients:
            client.join(timeout=30)
            assert not client.is_alive(), "a connection outlived its server"

    def check(self, served: Served) -> None:
        """Hold what the server has now of the last round against what was acknowledged."""
        clients = self._rounds[-1]
        found: list[str] = []

        def right() -> bool:
            keys = [key for each in clients for key in each.keys]
            found[:] = differences(clients, fetch(client, [*keys, clients[0].shared]), self._batch)
            return not found

        with served.connect() as client, suppress(AssertionError):
            until(right, seconds=SETTLED)
        self._fault.cycles += 1
        self._fault.acknowledged += sum(each.written for each in clients)
        self._fault.add("unanswered", sum(len(each.steps) - each.acknowledged for each in clients))
        self._fault.lost += len(found)
        assert found == []

    def check_all(self) -> None:
        """Hold what SQL sees of all rounds against what was acknowledged."""
        rows = self._store.rows()
        found = [text for clients in self._rounds for text in differences(clients, rows, self._batch)]
        self._fault.lost += len(found)
        assert found == []


@of("kill-sqlite", "kill-mysql-8.0", "kill-mariadb", "kill-parent")
def test_kvref_is_killed(fault: Fault, store: Store) -> None:
    Kills(fault, store).play(*(WORKERS if fault.id == "kill-parent" else ()))


def go_on(clients: Sequence[Client]) -> None:
    """Wait until each connection that has not ended was answered since."""
    before = {client: client.acknowledged for client in clients}
    until(lambda: all(each.acknowledged > count or not each.is_alive() for each, count in before.items()))


def is_answered(reader: socket.socket) -> bool:
    try:
        reader.sendall(b"get nothing\r\n")
        return reader.recv(100) == b"END\r\n"
    except OSError:
        return False


def until_restarted(served: Served, times: int) -> None:
    until(lambda: "".join(served.log).count("restarted (pid") >= times)


@of("kill-worker")
def test_a_worker_is_killed(fault: Fault, store: Store) -> None:
    kills = Kills(fault, store)
    with serving(store.dsn, *WORKERS) as served:
        for number in range(fault.size):
            with ExitStack() as stack:
                readers = [stack.enter_context(served.connect()) for _ in range(CLIENTS)]
                assert all(map(is_answered, readers))
                clients = kills.begin(served)
                os.kill(children(served.process.pid)[number % 2], signal.SIGKILL)
                until_restarted(served, number + 1)
                assert list(map(is_answered, readers)).count(True) == CLIENTS // 2
            go_on(clients)
            for client in clients:
                client.stop()
            kills.ended(clients)
            kills.check(served)
    kills.check_all()


@of("kill-batches-sqlite", "kill-batches-mysql-8.0", "kill-batches-mariadb")
def test_kvref_is_killed_in_batches(fault: Fault, store: Store) -> None:
    batch = 32
    kills = Kills(fault, store, Mix(counts=False, asks=False), batch)
    options = ("--set", f"daemon_memcached_w_batch_size={batch}", "--set", "innodb_api_bk_commit_interval=100000")
    kills.play(*options)
    # What is idle for the interval is committed, full or not.
    interval = ("--set", "innodb_api_bk_commit_interval=1")
    with serving(store.dsn, *options[:2], *interval) as served, served.connect() as client:
        assert ask(client, b"set idle 0 0 1\r\n1\r\nset idle 0 0 1\r\n2\r\n") == b"STORED\r\n" * 2
        until(lambda: store.rows().get("idle") == "2")
        assert ask(client, b"set idle 0 0 1\r\n3\r\n") == b"STORED\r\n"
        served.process.kill()
    assert store.rows()["idle"] == "2"
    fault.acknowledged += 2
