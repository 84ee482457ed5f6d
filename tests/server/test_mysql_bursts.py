"""Kill -9 of the database and of kvref in the middle of bursts of writes: what was acknowledged is there afterwards.

KVREF_BURSTS=100 holds so many of each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from database import database_or_skip, sql
from server.writers import Writer, differences
from serving import Served, serving

from kvref.targets import SQLServer

BURSTS = int(os.environ.get("KVREF_BURSTS", "5"))
CLIENTS = 4

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(120 + 30 * BURSTS)]


@pytest.fixture(scope="module", params=["mysql-8.0", "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, "DELETE FROM test.demo_test")
        yield server


def rows(database: SQLServer) -> dict[str, str]:
    return dict(sql(database, "SELECT c1, c2 FROM test.demo_test"))


def tell(database: SQLServer, victim: str, acknowledged: int, unknown: int) -> None:
    figures = f"{acknowledged} writes acknowledged, none lost, {unknown} unknown"
    print(f"{database.version}: {BURSTS} kills of {victim}, {figures}")  # noqa: T201 - for `pytest -rP`


def burst(stack: ExitStack, served: Served, number: int) -> list[Writer]:
    """Begin to write on several connections; return when some writes, another number each time, are acknowledged."""
    shared = f"{number}.all"
    writers = []
    for who in range(CLIENTS):
        client = stack.enter_context(served.connect())
        client.settimeout(30)
        writers.append(Writer(client, f"{number}.{who}", number * CLIENTS + who, shared))
    for writer in writers:
        writer.start()
    while sum(writer.acknowledged for writer in writers) < 5 + number * 37 % 300:
        assert any(writer.is_alive() for writer in writers), "every write failed"
        time.sleep(0.001)
    return writers


def test_the_database_is_killed(database: SQLServer) -> None:
    acknowledged = unknown = 0
    with serving(f"{database.dsn}?timeout=5", "--set", "innodb_lock_wait_timeout=1") as served:
        for number in range(BURSTS):
            shared = f"{number}.all"
            with ExitStack() as stack:
                control = stack.enter_context(served.connect())
                control.sendall(b"set %s 0 0 1\r\n0\r\n" % shared.encode())
                assert control.recv(100) == b"STORED\r\n"
                writers = burst(stack, served, number)
                database.kill()
                for writer in writers:
                    writer.join(timeout=60)
                    assert not writer.is_alive()
                database.start()
                found = rows(database)
                assert differences(writers, shared, found) == []
                # The same kvref goes on where the database is again.
                control.sendall(b"get %s\r\n" % shared.encode())
                value = found[shared].encode()
                assert control.recv(100) == b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (shared.encode(), len(value), value)
            acknowledged += sum(writer.acknowledged for writer in writers)
            unknown += sum(writer.unknown is not None for writer in writers)
            sql(database, "DELETE FROM test.demo_test")
    tell(database, "the database", acknowledged, unknown)


def test_kvref_is_killed(database: SQLServer) -> None:
    acknowledged = unknown = 0
    for number in range(BURSTS):
        shared = f"{number}.all"
        sql(database, f"INSERT INTO test.demo_test VALUES ('{shared}', '0', 0, 0, 0)")
        with ExitStack() as stack:
            served = stack.enter_context(serving(database.dsn))
            writers = burst(stack, served, number)
            served.process.kill()
            for writer in writers:
                writer.join(timeout=60)
                assert not writer.is_alive()
            assert differences(writers, shared, rows(database)) == []
        acknowledged += sum(writer.acknowledged for writer in writers)
        unknown += sum(writer.unknown is not None for writer in writers)
        sql(database, "DELETE FROM test.demo_test")
    tell(database, "kvref", acknowledged, unknown)
