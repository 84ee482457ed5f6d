# /// script
# requires-python = ">=3.11"
# dependencies = ["PyMySQL==1.*", "aiomysql==0.3.2", "uvloop", "rich", "click"]
# ///
"""PyMySQL in threads against its asyncio sibling aiomysql, both under uvloop, with the statements of a get and a set.

    kvref target up mysql-8.0
    python bench/threads_or_asyncio.py SOCKET

Rounds of both alternate; what is shown is the ratio of threads to asyncio within a pair: median and range.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

import aiomysql  # type: ignore[import-not-found]
import click
import pymysql
import uvloop
from rich.console import Console
from rich.table import Table

ROWS: Final = 1000
SETUP: Final = (
    "DROP DATABASE IF EXISTS kvref_bench", "CREATE DATABASE kvref_bench",
    "CREATE TABLE kvref_bench.t (k VARCHAR(32) PRIMARY KEY, v VARCHAR(100), f INT, c BIGINT UNSIGNED, e INT)",
    *(f"INSERT INTO kvref_bench.t VALUES ('key{n}', '{'x' * 50}', 0, 1, 0)" for n in range(ROWS)),  # noqa: S608 - numbers
)  # fmt: skip
READ: Final = "SELECT k, v, f, c, e FROM kvref_bench.t FORCE INDEX (PRIMARY) WHERE k = 'key{}'"
# What a command does, in the groups that `PooledDriver` hands to a thread at once.
GET: Final = ((READ,),)
SET: Final = (
    ("START TRANSACTION", READ + " FOR UPDATE"),
    ("UPDATE kvref_bench.t SET v = 'y', f = 0, c = c + 1, e = 0 WHERE k = 'key{}'",),
    ("COMMIT",),
)

Say = Callable[[list[str]], Coroutine[Any, Any, None]]


@asynccontextmanager
async def threads(socket: str, connections: int) -> AsyncIterator[list[Say]]:
    """Yield connections of PyMySQL, each group a hop into a thread as in `PooledDriver`."""
    loop = asyncio.get_running_loop()
    opened = [pymysql.connect(unix_socket=socket, user="root", autocommit=True) for _ in range(connections)]
    pool = ThreadPoolExecutor(connections)

    def say(connection: Any) -> Say:
        def run(statements: list[str]) -> None:
            for sql in statements:
                with connection.cursor() as cursor:
                    cursor.execute(sql)
                    cursor.fetchall()

        async def hop(statements: list[str]) -> None:
            await loop.run_in_executor(pool, run, statements)

        return hop

    yield [say(connection) for connection in opened]
    pool.shutdown()
    for connection in opened:
        connection.close()


@asynccontextmanager
async def siblings(socket: str, connections: int) -> AsyncIterator[list[Say]]:
    """Yield connections of aiomysql."""
    opened = [await aiomysql.connect(unix_socket=socket, user="root", autocommit=True) for _ in range(connections)]

    def say(connection: Any) -> Say:
        async def run(statements: list[str]) -> None:
            for sql in statements:
                async with connection.cursor() as cursor:
                    await cursor.execute(sql)
                    await cursor.fetchall()

        return run

    yield [say(connection) for connection in opened]
    for connection in opened:
        connection.close()


async def rate(opened: list[Say], groups: tuple[tuple[str, ...], ...], seconds: float) -> float:
    """Return commands a second that all connections carry out together."""
    done = 0
    end = time.monotonic() + seconds

    async def client(say: Say, number: int) -> None:
        nonlocal done
        while time.monotonic() < end:
            number = (number * 31 + 7) % ROWS
            for group in groups:
                await say([sql.format(number) for sql in group])
            done += 1

    began = time.monotonic()
    await asyncio.gather(*(client(say, number) for number, say in enumerate(opened)))
    return done / (time.monotonic() - began)


async def measure(socket: str, pairs: int, seconds: float) -> Table:
    """Return the table of ratios."""
    with pymysql.connect(unix_socket=socket, user="root", autocommit=True) as connection, connection.cursor() as cursor:
        for sql in SETUP:
            cursor.execute(sql)
    table = Table("command", "connections", "threads, 1/s", "asyncio, 1/s", "threads : asyncio", "range")
    for name, groups in (("get", GET), ("set", SET)):
        for connections in (1, 4, 16):
            async with threads(socket, connections) as ours, siblings(socket, connections) as theirs:
                rounds = []
                for turn in range(pairs):
                    order = [ours, theirs] if turn % 2 else [theirs, ours]
                    rates = {id(opened): await rate(opened, groups, seconds) for opened in order}
                    rounds.append((rates[id(ours)], rates[id(theirs)]))
            ratios = sorted(mine / other for mine, other in rounds)
            table.add_row(
                name,
                str(connections),
                *(f"{statistics.median(column):.0f}" for column in zip(*rounds, strict=True)),
                f"{statistics.median(ratios):.2f}",
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
            )
    return table


@click.command()
@click.argument("socket")
@click.option("--pairs", default=8, show_default=True, help="Rounds of each.")
@click.option("--seconds", default=1.0, show_default=True, help="Of a round.")
def main(socket: str, pairs: int, seconds: float) -> None:
    """Compare on the MySQL or MariaDB server at SOCKET, as root without a password."""
    Console().print(uvloop.run(measure(socket, pairs, seconds)))


if __name__ == "__main__":
    main()
