# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""A mapping sharded over two databases compared with one database: CPU time of the servers for each operation.

    python bench/two_groups.py                                   # two MySQL replication groups of three members
    python bench/two_groups.py --server mariadb --keys 2000 --seconds 5 --json two_groups.json

Two processes of kvref are measured in turns: one has the mapping in the first database, the other one sharded by key
over both, with twice the connections. Where each server has a processor of its own, the one that is busy first limits
the throughput. `gain` is therefore the CPU time of the primary for each operation with one database, divided by that of
the busier primary with two. CPU time is that of the processes, so that it counts also while others use the machine.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from kvref_bench.errors import BenchError
from kvref_bench.load import coordinator
from kvref_bench.load.engine import local
from kvref_bench.load.work import Clock, Keys, Values, Work
from kvref_bench.pairs.clients import Clients
from kvref_bench.pairs.cpus import Split
from kvref_bench.pairs.readings import Onlooker
from kvref_bench.pairs.rows import Generated
from kvref_bench.pairs.servers import Server
from kvref_bench.peers import wire
from kvref_bench.peers.processes import process_at
from kvref_testbed.targets import mysql_group, sql_server
from kvref_testbed.targets.ports import free_port

GROUP: Final = "mysql-group"
SERVERS: Final = (GROUP, "mysql-9.7", "mysql-8.0", "mariadb")
VALUES: Final = Values()
FILLING: Final = 64  # connections that fill the table
WARMUP: Final = 1.0  # seconds
START_SECONDS: Final = 20.0
STORES: Final = ("first", "second")


@dataclass(frozen=True, slots=True)
class Database:
    """A database that runs.

    Args:
        dsn: of all its servers.
        pids: its processes by name, the primary first.
    """

    dsn: str
    pids: dict[str, int]


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement.

    Args:
        databases: 1 or 2.
        share: sets of all operations.
        per_second: operations.
        kvref, primary, servers: microseconds of CPU time for each operation: of kvref, of the busier primary, and of
            all servers of the databases.
    """

    databases: int
    share: float
    per_second: float
    kvref: float
    primary: float
    servers: float


def opened(stack: ExitStack, kind: str, name: str) -> Database:
    """Boot a database with a cache table; it ends with the stack."""
    if kind == GROUP:
        group = stack.enter_context(mysql_group())
        dsn, ports = group.dsn, {each.name: each.port for each in group.members}
    else:
        server = stack.enter_context(sql_server(kind))
        dsn, ports = server.dsn, {"server": server.port}
    subprocess.run([sys.executable, "-m", "kvref", "init", "--store", dsn], check=True, stdout=subprocess.DEVNULL)
    return Database(dsn, {f"{name} {each}": process_at(f"127.0.0.1:{port}") for each, port in ports.items()})


def serving(stack: ExitStack, folder: Path, databases: list[Database]) -> Server:
    """Start kvref over databases, whose mapping is sharded over all of them; raises ClickException if it ends."""
    names = STORES[: len(databases)]
    stores = [f'[[store]]\nname = "{name}"\ndsn = "{each.dsn}"\n' for name, each in zip(names, databases, strict=True)]
    file = folder / f"{len(databases)}.toml"
    sharded = f'[[mapping]]\nname = "cache"\nstores = {json.dumps(names)}\n' if len(databases) > 1 else ""
    file.write_text("".join(stores) + sharded, encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen([sys.executable, "-m", "kvref", "serve", "--config", file, "--listen", address])
    stack.callback(process.wait)
    stack.callback(process.terminate)
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            version = wire.version(address)
        except BenchError:
            time.sleep(0.1)
        else:
            pids = {"kvref": process.pid, **{name: pid for each in databases for name, pid in each.pids.items()}}
            return Server("kvref-mysql", address, None, pids, {"version": version})
    raise click.ClickException("kvref serve does not listen: see its log")


def point(clients: Clients, server: Server, databases: list[Database], share: float, sessions: int) -> Point:
    """Measure one point; raises BenchError for a wrong reply."""
    verbs = {verb: weight for verb, weight in (("get", 1 - share), ("set", share)) if weight}
    load = Generated(Work(clients.keys, VALUES, verbs, sessions=sessions * len(databases)))
    done = clients.measure(server, load)
    used = dict(done.server)
    of_kvref = used.pop("kvref")
    primary = max(used[next(iter(each.pids))] for each in databases)
    return Point(len(databases), share, done.per_second, of_kvref, primary, sum(used.values()))


def table_of(points: list[Point]) -> Table:
    """Return the medians of each number of databases and share."""
    table = Table("databases", "sets", "operations/s", "kvref µs", "busier primary µs", "all servers µs", "gain")
    middle = {
        key: {
            name: statistics.median(getattr(each, name) for each in points if (each.databases, each.share) == key)
            for name in ("per_second", "kvref", "primary", "servers")
        }
        for key in dict.fromkeys((each.databases, each.share) for each in points)
    }
    for (databases, share), of in sorted(middle.items(), key=lambda each: (each[0][1], each[0][0])):
        table.add_row(
            str(databases), f"{share:.0%}", f"{of['per_second']:.0f}", f"{of['kvref']:.1f}", f"{of['primary']:.1f}",
            f"{of['servers']:.1f}", f"{middle[1, share]['primary'] / of['primary']:.2f}",
        )  # fmt: skip
    return table


@click.command(help=__doc__ and __doc__.partition("\n")[0])
@click.option("--server", type=click.Choice(SERVERS), default=GROUP, show_default=True, help="Each of the databases.")
@click.option("--shares", default="0,0.1,1", show_default=True, help="Shares of sets.")
@click.option("--seconds", default=3.0, show_default=True, help="Of each measurement.")
@click.option("--turns", default=3, show_default=True, help="Measurements of each point.")
@click.option("--sessions", default=64, show_default=True, help="Connections for each database.")
@click.option("--keys", "count", default=10_000, show_default=True, help="In the table.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write all points there.")
def main(server: str, shares: str, seconds: float, turns: int, sessions: int, count: int, file: Path | None) -> None:
    """Measure, and print a table."""
    points: list[Point] = []
    keys = Keys(count)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        both = [opened(stack, server, name) for name in STORES]
        served = [(serving(stack, folder, each), each) for each in (both[:1], both)]
        engine = stack.enter_context(local(1))
        clients = Clients(engine, Split(frozenset(), frozenset()), keys, WARMUP, seconds)
        each_once = replace(keys, distribution="sequential", apart=True)
        filling = Work(each_once, VALUES, {"set": 1.0}, sessions=FILLING, operations=-(-count // FILLING))
        for each, _ in served:
            coordinator.measure(each.address or "", filling, Clock(0, 600), engine, Onlooker())
        for turn in range(turns):
            for share in map(float, shares.split(",")):
                for each, databases in served[:: 1 if turn % 2 == 0 else -1]:
                    points.append(point(clients, each, databases, share, sessions))
    Console(width=120).print(table_of(points))
    if file is not None:
        file.write_text(json.dumps({"points": [asdict(each) for each in points]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
