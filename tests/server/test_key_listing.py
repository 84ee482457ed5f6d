"""`lru_crawler metadump` over sockets and live databases: bounded memory, others have their turn, replies in order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8
from helpers.serving import ask, serving
from server.in_process import SECONDS, Client, InProcess, turns_until

from kvref.engine.steps import crawler
from kvref.server.connection import TURN_BYTES
from kvref_testbed.targets import SQLServer

ROWS = 60_000
FILL = (
    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {})"
    " INSERT INTO demo_test SELECT printf('%06d', i) || hex(zeroblob(100)), 'v', 0, 0, 0 FROM n"
)
HIT = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
DUMP = b"lru_crawler metadump all\r\n"


async def _until_paused(other: Client) -> None:
    """Wait until the other of two clients reads nothing of what it is sent."""
    async with asyncio.timeout(SECONDS):
        while b":state conn_mwrite\r\n" not in await other.ask(b"stats conns\r\n", lines=9):
            await asyncio.sleep(0)


def test_a_client_that_reads_nothing_takes_little_memory(tmp_path: Path) -> None:
    async def run() -> None:
        served = InProcess(tmp_path / "x.sqlite")
        served.store.run(FILL.format(ROWS), [])
        served.store.commit()
        async with served.clients(2) as (dumps, other):
            await dumps.send(DUMP + b"get AA\r\n")
            await _until_paused(other)
            counters = served.server.shared.counters
            written, said_to_other = counters.bytes_written, 100 * len(HIT)
            for _ in range(100):
                assert await other.ask(b"get AA\r\n", lines=3) == HIT
            assert counters.bytes_written == written + said_to_other, "the listing does not go on"
            waited = [each.waited_for() for each in served.server.connections]
            # One turn, the page that ended it, and the transport's buffer when it paused the writer.
            assert sum(each[0].get_write_buffer_size() for each in waited if each) < 4 * TURN_BYTES
            reply = bytearray()
            while not reply.endswith(HIT):
                reply += await asyncio.wait_for(dumps.some(), 60)
            assert len(re.findall(rb"^key=", reply, re.MULTILINE)) == ROWS + 1
            assert written < len(reply) / 2
            assert reply.endswith(b"\nEND\r\n" + HIT)

    asyncio.run(run())


def test_a_client_that_leaves_ends_its_listing(tmp_path: Path) -> None:
    async def run() -> None:
        served = InProcess(tmp_path / "x.sqlite")
        served.store.run(FILL.format(ROWS), [])
        served.store.commit()
        async with served.clients(2) as (dumps, other):
            await dumps.ask(DUMP, lines=0)
            await _until_paused(other)
            dumps.close()
            await turns_until(lambda: len(served.server.connections) == 1)
            assert await other.ask(b"get AA\r\n", lines=3) == HIT

    asyncio.run(run())


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


COLUMNS = {
    "VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": (
        lambda n: f"K\u00e4y{n}",
        lambda n: b"K%%C3%%A4y%d" % n,
    ),
    "VARCHAR(32) CHARACTER SET latin1 COLLATE latin1_bin": (lambda n: f"k\u00e9{n}", lambda n: b"k%%E9%d" % n),
    "CHAR(32)": (lambda n: f"k{n}", lambda n: b"k%d" % n),
    "INT": (lambda n: str(n - 50), lambda n: b"%d" % (n - 50)),
}


@pytest.mark.live
@pytest.mark.timeout(120)
@pytest.mark.parametrize("column", COLUMNS)
def test_all_keys_of_a_table_once(database: SQLServer, column: str) -> None:
    key, encoded = COLUMNS[column]
    count = 2 * crawler.PAGE + 1
    rows = ", ".join(f"('{key(n)}', REPEAT('v', {n % 7}), 1, {n}, 0)" for n in range(count))
    sql(
        database,
        "DROP TABLE IF EXISTS test.listed",
        f"CREATE TABLE test.listed (k {column} PRIMARY KEY, v VARCHAR(100), f INT, c BIGINT, e INT)",
        f"INSERT INTO test.listed VALUES {rows}",
        "REPLACE INTO innodb_memcache.containers VALUES ('listed', 'test', 'listed', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')",
    )
    with serving(database.dsn) as served, served.connect() as client:
        reply = ask(client, b"bind listed\r\n" + DUMP)
        assert reply.startswith(b"SUCCEED")
        found = re.findall(rb"key=(\S+) exp=-1 la=\d+ cas=(\d+) fetch=no cls=0 size=(\d+)\n", reply)
        assert len(found) == count
        assert {each for each, _, _ in found} == {encoded(n) for n in range(count)}
        for name, cas, size in found[:10]:
            length = len(re.sub(rb"%[0-9A-F]{2}", b"x", name))
            assert int(size) == length + int(cas) % 7, name
        assert reply.endswith(b"END\r\n")
