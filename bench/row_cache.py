# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""Gets through the row cache over a database server while SQL writes: CPU time, hits and staleness.

    python bench/row_cache.py                                          # boots MariaDB
    python bench/row_cache.py --server mysql-8.0 --shares 0,0.1 --seconds 5 --json row_cache.json

One server and four processes of kvref over it, which are measured in turns: `off` without a cache, `strong`, `local`,
which is strong too, but connects by the Unix socket, so that it reads the end of the log instead of a query, and
`fast` with `--set row_cache_staleness=10`. Sessions send one get after the other; between them, threads update rows by
SQL. A get is stale if it returns a value that an update, acknowledged before the get was sent, had replaced; its
staleness is the time since that acknowledgement. CPU time is that of the processes of kvref and of the server, so that
it counts also while others use the machine.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click
from pymemcache.client.base import Client
from rich.console import Console
from rich.table import Table

from kvref_bench.peers.processes import process_at
from kvref_bench.turns.readings import Readings
from kvref_testbed.targets import SQLServer, kvref_server, sql_server

LOGGED: Final = ("--server-id=1", "--log-bin=binlog")
OPTIONS: Final = {
    "mariadb": (*LOGGED, "--binlog-format=ROW", "--log-slave-updates=ON"),
    "mysql-8.0": (*LOGGED, "--gtid-mode=ON", "--enforce-gtid-consistency=ON"),
    "mysql-9.7": (*LOGGED, "--gtid-mode=ON", "--enforce-gtid-consistency=ON"),
}
CACHED: Final = ("--set", "row_cache_binlog=1")
LOCAL: Final = "local"
MODES: Final = {
    "off": (), "strong": CACHED, LOCAL: CACHED, "fast": (*CACHED, "--set", "row_cache_staleness=10"),
}  # fmt: skip
WRITERS: Final = 4
PADDING: Final = "x" * 90
AHEAD: Final = 64  # updates that may be due before gets wait
SHARES: Final = "0,0.01,0.05,0.1,0.2,0.5"


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement.

    Args:
        mode: of MODES.
        share: SQL updates of all operations.
        gets, writes: how many.
        kvref, database: microseconds of CPU time for each get; the database's has the updates too.
        hits: share of the gets that cached rows answered.
        stale: how many gets were.
        stale_p99, stale_max: milliseconds, of the stale gets; 0 without any.
    """

    mode: str
    share: float
    gets: int
    writes: int
    kvref: float
    database: float
    hits: float
    stale: int
    stale_p99: float
    stale_max: float


class Rows:
    """The rows and when each of their updates was acknowledged.

    Args:
        count: of rows.
    """

    def __init__(self, count: int) -> None:
        self.times = [[0.0] for _ in range(count)]
        self.due = 0.0
        self.written = 0
        self.over = threading.Event()

    def write(self, server: SQLServer, number: int) -> None:
        """Update rows whenever updates are due, until it is over."""
        with closing(server.connect(60)) as connection, connection.cursor() as cursor:
            while not self.over.is_set():
                if self.due < number + 1:
                    time.sleep(0.0002)
                    continue
                self.due -= 1
                key = random.randrange(number, len(self.times), WRITERS)  # noqa: S311 - no secret
                value = f"{len(self.times[key])} {PADDING}"
                cursor.execute(f"UPDATE test.cached SET v = '{value}' WHERE k = 'key{key}'")  # noqa: S608 - constants
                self.times[key].append(time.monotonic())
                self.written += 1


class Session:
    """One connection that gets rows.

    Args:
        rows: which.
        share: of updates, which become due with each get.
        deadline: monotonic time.
    """

    def __init__(self, rows: Rows, share: float, deadline: float) -> None:
        self._rows = rows
        self._each = share / (1 - share)
        self._deadline = deadline
        self.gets = 0
        self.stale: list[float] = []

    async def run(self, host: str, port: int) -> None:
        """Get rows until the deadline; raises ClickException for another reply than a row."""
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"get @@cached\r\n")
        await reader.readuntil(b"END\r\n")
        times = self._rows.times
        while time.monotonic() < self._deadline:
            if self._rows.due > AHEAD:
                await asyncio.sleep(0.001)
                continue
            key = random.randrange(len(times))  # noqa: S311 - no secret
            began, known = time.monotonic(), len(times[key]) - 1
            writer.write(b"get key%d\r\n" % key)
            reply = await reader.readuntil(b"END\r\n")
            if not reply.startswith(b"VALUE "):
                raise click.ClickException(f"kvref replies {reply!r}")
            version = int(reply.split(b"\r\n")[1].split(b" ")[0])
            if version < known:
                self.stale.append(began - times[key][version + 1])
            self._rows.due += self._each
            self.gets += 1
        writer.close()


def measured(
    mode: str, share: float, server: SQLServer, kvref: Any, rows: Rows, sessions: int, seconds: float
) -> Point:
    """Measure one point.

    Args:
        mode, share: see `Point`.
        server: where the rows are.
        kvref: of the testbed, running.
        rows: which.
        sessions: connections that get rows.
        seconds: of the measurement.

    Raises:
        ClickException: kvref replies something else than a row.
    """
    rows.due, rows.written = 0.0, 0
    rows.over.clear()
    threads = [threading.Thread(target=rows.write, args=(server, number)) for number in range(WRITERS)]
    for each in threads:
        each.start()
    ports = {"kvref": kvref.address[1], "database": server.port}
    cpu, hits = Readings({name: process_at(f"127.0.0.1:{port}") for name, port in ports.items()}), _hits(kvref.address)
    cpu.begin()
    deadline = time.monotonic() + seconds
    running = [Session(rows, share, deadline) for _ in range(sessions)]

    async def all_of_them() -> None:
        await asyncio.gather(*[each.run(*kvref.address) for each in running])

    try:
        asyncio.run(all_of_them())
    finally:
        rows.over.set()
        for each in threads:
            each.join()
    cpu.end()
    used = {name: seconds * 1e6 for name, seconds in cpu.used().items()}
    gets = sum(each.gets for each in running)
    stale = sorted(1000 * each for session in running for each in session.stale)
    p99 = stale[int(len(stale) * 0.99)] if stale else 0.0
    found = (_hits(kvref.address) - hits) / gets
    longest = stale[-1] if stale else 0.0
    costs = used["kvref"] / gets, used["database"] / gets
    return Point(mode, share, gets, rows.written, *costs, found, len(stale), p99, longest)


def _hits(address: tuple[str, int]) -> int:
    with closing(Client(address)) as client:
        return int(client.stats().get(b"row_cache_hits", 0))


def _fill(server: SQLServer, count: int) -> None:
    with closing(server.connect(60)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE test.cached (k VARCHAR(30) PRIMARY KEY, v VARCHAR(200)) ENGINE = InnoDB")
        row = "'cached', 'test', 'cached', 'k', 'v', '0', '0', '0', 'PRIMARY'"
        cursor.execute(f"INSERT INTO innodb_memcache.containers VALUES ({row})")  # noqa: S608 - a constant
        values = ", ".join(f"('key{key}', '0 {PADDING}')" for key in range(count))
        cursor.execute(f"INSERT INTO test.cached VALUES {values}")  # noqa: S608 - constants


def _shown(points: list[Point]) -> Table:
    columns = ("mode", "SQL writes", "gets", "kvref µs", "database µs", "hits", "stale", "p99 ms", "max ms")
    table = Table(*columns)
    for mode, share in dict.fromkeys((point.mode, point.share) for point in points):
        same = [point for point in points if (point.mode, point.share) == (mode, share)]
        middle = {
            name: statistics.median(getattr(each, name) for each in same) for name in ("kvref", "database", "hits")
        }
        table.add_row(
            mode, f"{share:.0%}", str(sum(each.gets for each in same)), f"{middle['kvref']:.1f}",
            f"{middle['database']:.1f}", f"{middle['hits']:.1%}", str(sum(each.stale for each in same)),
            f"{max(each.stale_p99 for each in same):.1f}", f"{max(each.stale_max for each in same):.1f}",
        )  # fmt: skip
    return table


@click.command(help=__doc__ and __doc__.partition("\n")[0])
@click.option(
    "--server", default="mariadb", show_default=True, type=click.Choice(list(OPTIONS)), help="Database to boot."
)
@click.option("--shares", default=SHARES, show_default=True, help="Shares of SQL updates, below 1.")
@click.option("--seconds", default=3.0, show_default=True, help="Of each measurement.")
@click.option("--turns", default=3, show_default=True, help="Measurements of each point.")
@click.option("--sessions", default=64, show_default=True, help="Connections that get rows.")
@click.option("--keys", default=2000, show_default=True, help="Rows of the table.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write all points there.")
def main(server: str, shares: str, seconds: float, turns: int, sessions: int, keys: int, file: Path | None) -> None:
    """Measure, and print a table."""
    points: list[Point] = []
    with ExitStack() as stack:
        database = stack.enter_context(sql_server(server, OPTIONS[server]))
        dsns = dict.fromkeys(MODES, database.dsn) | {LOCAL: f"mysql://root@localhost/?unix_socket={database.socket}"}
        started = {
            mode: stack.enter_context(kvref_server("kvref", options, dsns[mode])) for mode, options in MODES.items()
        }
        subprocess.run([sys.executable, "-m", "kvref", "init", "--demo", "--store", database.dsn], check=True)
        _fill(database, keys)
        for each in started.values():
            each.start()
        rows = Rows(keys)
        for turn in range(-1, turns):
            for share in map(float, shares.split(",")):
                for mode, kvref in started.items():
                    length = seconds if turn >= 0 else 1.0  # a warm-up
                    point = measured(mode, share, database, kvref, rows, sessions, length)
                    points += [point] if turn >= 0 else []
        version = database.version
    Console(width=120).print(_shown(points))
    if file is not None:
        file.write_text(json.dumps({"server": version, "points": [asdict(each) for each in points]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
