# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""Mappings in two databases compared with one in one database: CPU time of the servers for each operation.

    python bench/two_groups.py                                   # two MySQL replication groups of three members
    python bench/two_groups.py --server-cpu 0.06                 # each server has 6 % of a processor; needs root
    python bench/two_groups.py --server mariadb --keys 2000 --seconds 5 --json two_groups.json

Three processes of kvref are measured in turns: `one` has a mapping in the first database, `sharded` the same mapping
sharded by key over both, `apart` two mappings, each in a database; the last two with twice the connections.

With `--server-cpu`, each server of a database has that share of a processor to itself, little enough that kvref and
the generator do not limit the throughput. `gain` is then the throughput divided by that of `one`. Without it, all
share the machine, and statements and commits serve fewer commands each than they would; `gain` is the CPU time of the
primary for each operation of `one`, divided by that of the busier primary. CPU time is that of the processes, so that
it counts also while others use the machine.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
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
from kvref_bench.peers.cpu_quota import limited
from kvref_bench.peers.processes import process_at
from kvref_testbed.targets import mysql_group, sql_server
from kvref_testbed.targets.ports import ask_version, free_port
from kvref_testbed.targets.run import Run

GROUP: Final = "mysql-group"
SERVERS: Final = (GROUP, "mysql-9.7", "mysql-8.0", "mariadb")
VALUES: Final = Values()
FILLING: Final = 64  # connections that fill the table
WARMUP: Final = 1.0  # seconds
START_SECONDS: Final = 20.0
STORES: Final = ("first", "second")
MAPPINGS: Final = ("cache", "other")


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
class Layout:
    """A process of kvref.

    Args:
        name: `one`, `sharded` or `apart`.
        server: the process with those of its databases.
        databases: 1 or 2.
        mappings: those that clients use.
    """

    name: str
    server: Server
    databases: list[Database]
    mappings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement.

    Args:
        layout: see `Layout`.
        share: sets of all operations.
        per_second: operations.
        kvref, primary, servers: microseconds of CPU time for each operation: of kvref, of the busier primary, and of
            all servers of the databases.
    """

    layout: str
    share: float
    per_second: float
    kvref: float
    primary: float
    servers: float


def opened(stack: ExitStack, kind: str, name: str) -> Database:
    """Boot a database with two cache tables; it ends with the stack."""
    if kind == GROUP:
        group = stack.enter_context(mysql_group())
        dsn, ports = group.dsn, {each.name: each.port for each in group.members}
    else:
        server = stack.enter_context(sql_server(kind))
        dsn, ports = server.dsn, {"server": server.port}
    for mapping in MAPPINGS:
        command = [sys.executable, "-m", "kvref", "init", "--store", dsn, "--cache", mapping]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Database(dsn, {f"{name} {each}": process_at(f"127.0.0.1:{port}") for each, port in ports.items()})


def serving(stack: ExitStack, databases: list[Database], mapping: str) -> Server:
    """Start kvref over databases with `[[mapping]]` as given; raises TargetError if it ends."""
    run = Run.create()
    stack.callback(run.stop, 0)
    each = zip(STORES, databases, strict=False)
    stores = [f'[[store]]\nname = "{name}"\ndsn = "{database.dsn}"\n' for name, database in each]
    file = run.folder / "kvref.toml"
    file.write_text("".join(stores) + mapping, encoding="utf-8")
    port = free_port()
    address = f"127.0.0.1:{port}"
    process = run.start("kvref", [sys.executable, "-m", "kvref", "serve", "--config", str(file), "--listen", address])
    version = run.wait_for(f"kvref serve at {address}", lambda: ask_version(port), START_SECONDS)
    pids = {"kvref": process.pid, **{name: pid for of in databases for name, pid in of.pids.items()}}
    return Server("kvref-mysql", address, None, pids, {"version": version})


def loads(layout: Layout, work: Work) -> list[Generated]:
    """Return a load for each mapping of a layout."""
    return [Generated(replace(work, route="switch", mapping=mapping)) for mapping in layout.mappings]


def point(clients: list[Clients], layout: Layout, share: float, sessions: int) -> Point:
    """Measure one point; raises BenchError for a wrong reply."""
    verbs = {verb: weight for verb, weight in (("get", 1 - share), ("set", share)) if weight}
    of_each = sessions * len(layout.databases) // len(layout.mappings)
    work = Work(clients[0].keys, VALUES, verbs, sessions=of_each)
    with ThreadPoolExecutor() as pool:
        at_once = zip(clients, loads(layout, work), strict=False)
        running = [pool.submit(each.measure, layout.server, load) for each, load in at_once]
    done = [each.result() for each in running]
    rate = sum(each.per_second for each in done)
    # Each mapping's measurement has the CPU time of all processes.
    used = {
        name: sum(each.server[name] * each.per_second for each in done) / len(done) / rate for name in done[0].server
    }
    of_kvref = used.pop("kvref")
    primary = max(used[next(iter(each.pids))] for each in layout.databases)
    return Point(layout.name, share, rate, of_kvref, primary, sum(used.values()))


def table_of(points: list[Point], *, of_rates: bool) -> Table:
    """Return the medians of each layout and share, and the gains within the turns.

    Args:
        points: the measurements.
        of_rates: the gain is that of operations each second, not of the primary's CPU time.
    """
    table = Table("layout", "sets", "operations/s", "kvref µs", "busier primary µs", "all servers µs", "gain", "range")
    series: dict[tuple[str, float], list[Point]] = {}
    for each in points:
        series.setdefault((each.layout, each.share), []).append(each)
    for (layout, share), of in sorted(series.items(), key=lambda each: each[0][1]):
        gains = [gain(each, one, of_rates=of_rates) for each, one in zip(of, series["one", share], strict=True)]
        rate, *costs = [statistics.median(column) for column in zip(*map(_costs, of), strict=True)]
        table.add_row(
            layout, f"{share:.0%}", f"{rate:.0f}", *[f"{cost:.1f}" for cost in costs],
            f"{statistics.median(gains):.2f}", f"{min(gains):.2f} to {max(gains):.2f}",
        )  # fmt: skip
    return table


def gain(of: Point, one: Point, *, of_rates: bool) -> float:
    """Return how much more one layout serves than another in the same turn, see `table_of`."""
    return of.per_second / one.per_second if of_rates else one.primary / of.primary


def _costs(point: Point) -> tuple[float, ...]:
    return point.per_second, point.kvref, point.primary, point.servers


@click.command(help=__doc__ and __doc__.partition("\n")[0])
@click.option("--server", type=click.Choice(SERVERS), default=GROUP, show_default=True, help="Each of the databases.")
@click.option("--shares", default="0,0.1,1", show_default=True, help="Shares of sets.")
@click.option("--seconds", default=3.0, show_default=True, help="Of each measurement.")
@click.option("--turns", default=3, show_default=True, help="Measurements of each point.")
@click.option("--sessions", default=64, show_default=True, help="Connections for each database.")
@click.option("--keys", "count", default=10_000, show_default=True, help="In the table.")
@click.option("--server-cpu", type=float, help="Share of a processor that each server of a database may use.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write all points there.")
def main(  # noqa: PLR0913, PLR0917 - an argument for each option
    server: str,
    shares: str,
    seconds: float,
    turns: int,
    sessions: int,
    count: int,
    server_cpu: float | None,
    file: Path | None,
) -> None:
    """Measure, and print a table."""
    points: list[Point] = []
    keys = Keys(count)
    with ExitStack() as stack:
        both = [opened(stack, server, name) for name in STORES]
        cache, other = MAPPINGS
        sharded = f'[[mapping]]\nname = "{cache}"\nstores = {json.dumps(STORES)}\n'
        apart = f'[[mapping]]\nname = "{other}"\nstore = "{STORES[1]}"\n'
        layouts = [
            Layout(name, serving(stack, databases, mapping), databases, mappings)
            for name, databases, mapping, mappings in (
                ("one", both[:1], "", (cache,)), ("sharded", both, sharded, (cache,)), ("apart", both, apart, MAPPINGS),
            )
        ]  # fmt: skip
        nowhere = Split(frozenset(), frozenset())
        clients = [Clients(stack.enter_context(local(1)), nowhere, keys, WARMUP, seconds) for _ in MAPPINGS]
        each_once = replace(keys, distribution="sequential", apart=True)
        filling = Work(each_once, VALUES, {"set": 1.0}, sessions=FILLING, operations=-(-count // FILLING))
        for layout in layouts:
            for load in loads(layout, filling):
                coordinator.measure(
                    layout.server.address or "", load.work, Clock(0, 600), clients[0].engine, Onlooker()
                )
        if server_cpu is not None:
            for pid in [each for database in both for each in database.pids.values()]:
                stack.enter_context(limited(pid, server_cpu))
        for turn in range(turns):
            for share in map(float, shares.split(",")):
                in_turn = layouts[:: 1 if turn % 2 == 0 else -1]
                points += [point(clients, layout, share, sessions) for layout in in_turn]
    Console(width=120).print(table_of(points, of_rates=server_cpu is not None))
    if file is not None:
        measured = {"server": server, "server_cpu": server_cpu, "points": [asdict(each) for each in points]}
        file.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(f"two_groups: {error}")
