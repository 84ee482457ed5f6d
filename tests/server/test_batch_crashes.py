"""Kill -9 in the middle of batches: what was committed is there, an open batch is gone whole, nothing is torn.

KVREF_BURSTS=100 holds so many of each.
"""

from __future__ import annotations

import os
import random
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from database import database_or_skip, sql
from server.writers import ask_line
from serving import serving

from kvref import collations

BURSTS = int(os.environ.get("KVREF_BURSTS", "3"))
CLIENTS = 3
KEYS = 7  # of each client: few, so that every verb meets rows and gaps

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(120 + 30 * BURSTS)]

Rows = dict[str, str]


@dataclass
class Store:
    """What is served: its DSN, what SQL sees of it, and how to empty it."""

    dsn: str
    rows: Callable[[], Rows]
    clear: Callable[[], object]


@pytest.fixture(scope="module", params=["sqlite", "mysql-8.0", "mariadb"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("crashes") / "kvref.sqlite"
        with serving(file):
            pass  # makes the tables
        ask = partial(of_file, file)
        rows = "SELECT c1, c2 FROM demo_test"
        yield Store(f"sqlite:///{file}", lambda: dict(ask(rows)), lambda: ask("DELETE FROM demo_test"))
        return
    with database_or_skip(request.param) as server:
        query = partial(sql, server)
        yield Store(
            server.dsn,
            lambda: dict(query("SELECT c1, c2 FROM test.demo_test")),
            lambda: query("DELETE FROM test.demo_test"),
        )


def of_file(file: Path, statement: str) -> list[tuple[str, str]]:
    """Run a statement on a SQLite file."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=10)) as connection:
        collations.register(connection)
        return connection.execute(statement).fetchall()


class Client(threading.Thread):
    """One connection whose every write succeeds, so that what so many of them have made is known."""

    def __init__(self, client: socket.socket, name: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self._socket = client
        self._random = random.Random(seed)
        self.states: list[Rows] = [{}]
        """Its rows after so many writes; of the last one nobody may know whether it was carried out."""
        self.acknowledged = 0

    def run(self) -> None:
        """Write until no answer comes."""
        with self._socket:
            while self._write():
                self.acknowledged += 1

    def _write(self) -> bool:
        rows = dict(self.states[-1])
        key = f"{self.name}.{self._random.randrange(KEYS)}"
        value = str(self._random.randrange(1000))
        verb = self._random.choice(["set", "set", "append", "incr", "delete"] if key in rows else ["set", "add"])
        if verb == "incr":
            answer = rows[key] = str(int(rows[key]) + int(value))
            line = f"incr {key} {value}\r\n"
        elif verb == "delete":
            line, answer = f"delete {key}\r\n", "DELETED"
            del rows[key]
        else:
            value = value if verb != "append" else value[:1]
            line, answer = f"{verb} {key} 0 0 {len(value)}\r\n{value}\r\n", "STORED"
            rows[key] = rows.get(key, "") + value if verb == "append" else value
            if len(rows[key]) > 15:  # incr counts up to 2^64
                return self._write()
        self.states.append(rows)
        got = ask_line(self._socket, line.encode())
        assert got in (None, answer.encode()), f"{line!r}: {got!r} instead of {answer}"
        return got is not None

    def allowed(self, batch: int) -> list[Rows]:
        """Return what may be there: all full batches that were acknowledged, or one more that was asked for."""
        full = {acknowledged - acknowledged % batch for acknowledged in (self.acknowledged, len(self.states) - 1)}
        return [self.states[count] for count in sorted(full)]


def torn(clients: list[Client], batch: int, rows: Rows) -> list[str]:
    """Return what is there and may not be."""
    found = []
    for client in clients:
        own = {key: value for key, value in rows.items() if key.startswith(f"{client.name}.")}
        if own not in client.allowed(batch):
            found.append(f"{client.name}: {own} after {client.acknowledged} writes, allowed: {client.allowed(batch)}")
    return found


@pytest.mark.parametrize("batch", [1, 32])
def test_kvref_is_killed(store: Store, batch: int) -> None:
    acknowledged = 0
    settings = (f"daemon_memcached_w_batch_size={batch}", "innodb_api_bk_commit_interval=100000")
    for number in range(BURSTS):
        store.clear()
        with ExitStack() as stack:
            served = stack.enter_context(serving(store.dsn, *(word for each in settings for word in ("--set", each))))
            clients = [Client(served.connect(), f"c{who}", number * CLIENTS + who) for who in range(CLIENTS)]
            for client in clients:
                client.start()
            while sum(client.acknowledged for client in clients) < 5 + number * 61 % 400:
                assert any(client.is_alive() for client in clients), "every write failed"
                time.sleep(0.001)
            served.process.kill()
            for client in clients:
                client.join(timeout=30)
                assert not client.is_alive()
        acknowledged += sum(client.acknowledged for client in clients)
        # A server notices a moment later that the client of an open transaction is gone.
        deadline = time.monotonic() + 20
        while (found := torn(clients, batch, store.rows())) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found == []
    print(f"{store.dsn[:6]}, batches of {batch}: {BURSTS} kills, {acknowledged} writes acknowledged")  # noqa: T201 - for -rP
