# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""How the cost of a get and of a set grows with rows, size of values, connections, mappings, columns, batches, workers.

    python bench/growth.py                                             # all axes: half an hour
    python bench/growth.py --axes rows,values --turns 1 --json growth.json
    python bench/growth.py show growth.json --into docs/explanation/growth.md

At each point of an axis, the servers that have it are booted on one processor and measured in turns by the generator on
another, after each key was read once: CPU time of the server, with its database, for each operation, and the 99th
percentile of the time until the reply. An exponent of 0 means that the cost does not grow along the axis, 1 that it is
proportional.
"""

from __future__ import annotations

import itertools
import math
import resource
import statistics
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kvref.errors import KvrefError
from kvref_bench import peers
from kvref_bench.errors import BenchError
from kvref_bench.load import coordinator
from kvref_bench.load.engine import local
from kvref_bench.load.work import Clock, Keys, Values, Work
from kvref_bench.pairs.clients import answered
from kvref_bench.pairs.document import insert_table, read, write
from kvref_bench.peers import PeerSpec
from kvref_bench.peers.mysql_tables import CONTAINERS, MySQLTables
from kvref_bench.peers.rows import DATABASE
from kvref_bench.peers.sqlite_tables import SQLiteTables
from kvref_bench.runs import machine
from kvref_bench.runs.merge import percentile
from kvref_bench.scenario.records import Table
from kvref_bench.sql import login
from kvref_bench.turns import cpus
from kvref_bench.turns.readings import Onlooker, Readings, Timed
from kvref_testbed.targets import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kvref_bench.load.coordinator import Engine
    from kvref_bench.peers import OpenPeer

SQLITE: Final = "kvref-sqlite"
MYSQL: Final = "kvref-mysql-8.0"
PLUGIN: Final = "mysql-8.0-plugin"
MEMCACHED: Final = "memcached"
ALL: Final = (SQLITE, MYSQL, PLUGIN, MEMCACHED)
WITH_TABLES: Final = ALL[:3]
TITLES: Final = {
    SQLITE: "kvref over SQLite", MYSQL: "kvref over MySQL 8.0", PLUGIN: "plugin 8.0.33", MEMCACHED: "memcached 1.6.18",
}  # fmt: skip
VERBS: Final = ("get", "set")
MAPPING: Final = "default"
TABLE: Final = "demo"
KEY_BYTES: Final = 16
FILLED: Final = 64 << 20  # bytes of values in a table, and in the requests that the generator makes before its clock
POOL: Final = 1 << 18  # requests, more than a server of a large table answers in one measurement
BATCHES: Final = ("daemon_memcached_r_batch_size", "daemon_memcached_w_batch_size")
SWEEP: Final = 100  # keys in each get of a sweep, of no more than SWEEP_BYTES
SWEEP_BYTES: Final = 1 << 18
SWEEP_SECONDS: Final = 300.0
MIN_POINTS: Final = 2
VERSION: Final = 1
PATH: Final = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Place:
    """What is measured at a point.

    Args:
        keys: rows of the table.
        value: bytes of each value.
        sessions: connections.
        mappings: rows of `containers`, all of the same table; each command names the last one; 0: none, it is bound.
        columns: of the table in addition to those that the mapping names.
        settings: of the server, by the plugin's names.
        options: further ones of `kvref serve`.
    """

    keys: int = 10_000
    value: int = 100
    sessions: int = 16
    mappings: int = 0
    columns: int = 0
    settings: dict[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """Return the table of its servers."""
        return Table(TABLE, MAPPING, self._keys, self._values)

    @property
    def _keys(self) -> Keys:
        # With a write batch, sessions with the same keys would wait for each other.
        return Keys(self.keys, length=KEY_BYTES, apart=bool(self.settings))

    @property
    def _values(self) -> Values:
        return Values((self.value, self.value))

    def work(self, verb: str, turn: int = 0) -> Work:
        """Return the requests of one verb, others in each turn."""
        pool = max(16, min(POOL, FILLED // self.value))
        work = Work(self._keys, self._values, {verb: 1.0}, sessions=self.sessions, pool=pool, seed=turn)
        return replace(work, route="each", mapping=_name(self.mappings - 1)) if self.mappings else work


@dataclass(frozen=True, slots=True)
class Axis:
    """What grows.

    Args:
        what: in the table's words.
        points: its values, from 1 on.
        place: returns what is measured at one of them.
        servers: that have it.
    """

    what: str
    points: tuple[int, ...]
    place: Callable[[int], Place]
    servers: tuple[str, ...] = ALL


AXES: Final = {
    "rows": Axis("rows of the table", (10_000, 100_000, 1_000_000, 10_000_000), lambda at: Place(keys=at)),
    "values": Axis(
        "bytes of a value",
        (10, 100, 1_000, 10_000, 100_000, 1_000_000),
        lambda at: Place(value=at, keys=max(16, min(10_000, FILLED // at))),
    ),
    "connections": Axis("connections", (1, 10, 100, 1_000, 10_000), lambda at: Place(sessions=at)),
    "mappings": Axis("mappings", (1, 10, 100, 1_000, 10_000), lambda at: Place(mappings=at), WITH_TABLES),
    "columns": Axis("columns of the table", (1, 10, 50), lambda at: Place(columns=at - 1), WITH_TABLES),
    "batches": Axis(
        "operations in a batch",
        (1, 10, 100, 1_000, 10_000),
        lambda at: Place(settings=dict.fromkeys(BATCHES, at)),
        WITH_TABLES,
    ),
    "workers": Axis("worker processes", (1, 2, 4), lambda at: Place(options=("--workers", str(at))), (SQLITE, MYSQL)),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement.

    Args:
        axis, at: where.
        server: a target.
        verb: get or set.
        cpu: microseconds of the server, with its database, for each operation.
        p99: microseconds until the reply.
        per_second: operations.
    """

    axis: str
    at: int
    server: str
    verb: str
    cpu: float
    p99: float
    per_second: float


def _name(number: int) -> str:
    return f"m{number}" if number else MAPPING


def opened(stack: ExitStack, target: str, place: Place) -> OpenPeer:
    """Boot a server with the table of a place; it ends with the stack."""
    options = place.options if target in {SQLITE, MYSQL} else ()
    peer = stack.enter_context(peers.open(PeerSpec(endpoint=target, options=options), QUIET))
    if place.settings:
        peer.start(place.settings)
    peer.prepare(place.table)
    if peer.has_tables and (place.mappings > 1 or place.columns):
        _change(peer, place)
        peer.start(place.settings)
    return peer


def _change(peer: OpenPeer, place: Place) -> None:
    """Add the mappings and the columns of a place to its tables."""
    over_sql = peer.sql_dsn is not None
    containers, table = (CONTAINERS, f"{DATABASE}.{TABLE}") if over_sql else ("containers", f'"{DATABASE}.{TABLE}"')
    names = ", ".join(f"('{_name(number)}')" for number in range(1, place.mappings))
    columns = [f"ADD COLUMN c{number} VARCHAR(20) DEFAULT 'of no mapping'" for number in range(place.columns)]
    statements = []
    if names:
        rest = (
            "db_schema, db_table, key_columns, value_columns, flags, cas_column, expire_time_column,"
            " unique_idx_name_on_key"
        )
        row = f"FROM {containers}, names WHERE name = '{MAPPING}'"
        values = names.replace("(", "ROW(") if over_sql else names
        new = f"WITH names(new) AS (VALUES {values}) SELECT new, {rest} {row}"
        statements.append(f"INSERT INTO {containers} (name, {rest}) {new}")
    if over_sql and columns:
        statements.append(f"ALTER TABLE {table} {', '.join(columns)}, ALGORITHM=INPLACE")
    else:
        statements += [f"ALTER TABLE {table} {column}" for column in columns]
    _execute(peer, statements)


def _execute(peer: OpenPeer, statements: Iterable[str]) -> None:
    doing = "change its tables"
    assert peer.tables_dsn is not None, "it has tables"
    over_sql = peer.sql_dsn is not None
    dsn = peer.tables_dsn
    with MySQLTables(login.parse(dsn)).cursor(doing) if over_sql else SQLiteTables(dsn).connection(doing) as database:
        for statement in statements:
            database.execute(statement)


def measured(peer: OpenPeer, target: str, work: Work, engine: Engine, clock: Clock) -> tuple[float, float, float]:
    """Return CPU time and 99th percentile in microseconds, and operations a second. Raises BenchError."""
    assert peer.address is not None, "each has a port of the memcached protocol"
    readings = Readings({name: cpus.root(pid) for name, pid in peer.processes().items()})
    watch = Timed(readings, clock.warmup, clock.measure)
    with watch:
        merged = answered(target, coordinator.measure(peer.address, work, clock, engine, watch))
    used = sum(readings.used().values())
    p99 = percentile(merged.bins("service"), 0.99) or math.nan
    return used / merged.ops * 1e6, p99 / 1e3, merged.ops / merged.seconds


def sweep(peer: OpenPeer, target: str, place: Place, engine: Engine) -> None:
    """Get every key once, so that what a server caches is cached. Raises BenchError."""
    assert peer.address is not None, "each has a port of the memcached protocol"
    each = max(1, min(SWEEP, SWEEP_BYTES // place.value))
    times = -(-place.keys // each)
    keys = replace(place.table.keys, distribution="sequential", apart=False)
    work = replace(place.work("get"), keys=keys, sessions=1, multiget=each, operations=times, pool=times * each)
    answered(target, coordinator.measure(peer.address, work, Clock(0, SWEEP_SECONDS), engine, Onlooker()))


def measure(name: str, axis: Axis, turns: int, clock: Clock, engine: Engine, where: cpus.Split) -> list[Point]:
    """Measure the points of an axis, and say what each is; a server that fails at one is left out there.

    Raises:
        TargetError: a server cannot be started.
    """
    points: list[Point] = []
    for at in axis.points:
        place = axis.place(at)
        with ExitStack() as stack:
            with cpus.on(where.servers):
                open_peers = {target: opened(stack, target, place) for target in axis.servers}
            there = [*axis.servers]
            for turn in range(turns):
                for target in there[:: 1 if turn % 2 == 0 else -1]:
                    try:
                        if turn == 0:
                            sweep(open_peers[target], target, place, engine)
                        for verb in VERBS:
                            of = measured(open_peers[target], target, place.work(verb, turn), engine, clock)
                            points.append(Point(name, at, target, verb, *of))
                    except BenchError as error:
                        click.echo(f"{name}: {at:,} {axis.what}: left out: {error}", err=True)
                        there.remove(target)
                        points = [each for each in points if (each.at, each.server) != (at, target)]
        costs = ", ".join(_told(points, name, at, each) for each in there)
        click.echo(f"{name}: {at:,} {axis.what}: {costs}", err=True)
    return points


def _told(points: Sequence[Point], axis: str, at: int, server: str) -> str:
    costs = [middle(points, axis, at, server, verb).cpu for verb in VERBS]
    return f"{server} {' : '.join(f'{each:.1f}' for each in costs)} µs"


def middle(points: Sequence[Point], axis: str, at: int, server: str, verb: str) -> Point:
    """Return the medians of the measurements of a point."""
    found = [each for each in points if (each.axis, each.at, each.server, each.verb) == (axis, at, server, verb)]
    medians = (statistics.median(getattr(each, part) for each in found) for part in ("cpu", "p99", "per_second"))
    return Point(axis, at, server, verb, *medians)


def exponent(costs: Sequence[tuple[int, float]]) -> float:
    """Return b of the cost a·n^b that fits best, by least squares of the logarithms; of at least two points."""
    return statistics.linear_regression(
        *zip(*((math.log(at), math.log(cost)) for at, cost in costs), strict=True)
    ).slope


def table(document: dict[str, Any]) -> str:
    """Return the costs in Markdown, a table for each axis."""
    points = [Point(**each) for each in document["points"]]
    parts = []
    for name in dict.fromkeys(each.axis for each in points):
        at = sorted({each.at for each in points if each.axis == name})
        head = ["server", "verb", *(f"{each:,}" for each in at), "exponent", "largest step", "p99, µs"]
        lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        servers = [server for server in TITLES if any((each.axis, each.server) == (name, server) for each in points)]
        lines += [_line(points, name, at, server, verb) for server in servers for verb in VERBS]
        parts.append(f"### By {AXES[name].what}\n\nMicroseconds of CPU time for each operation:\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + f"\n\n{_how(document)}\n"


def _line(points: Sequence[Point], axis: str, at: Sequence[int], server: str, verb: str) -> str:
    there = {each.at for each in points if (each.axis, each.server, each.verb) == (axis, server, verb)}
    found = [middle(points, axis, each, server, verb) for each in at if each in there]
    costs = {each.at: each.cpu for each in found}
    steps = [later.cpu / earlier.cpu for earlier, later in itertools.pairwise(found)]
    largest = max(range(len(steps)), key=steps.__getitem__)
    cells = [
        TITLES[server], verb, *(f"{costs[each]:.1f}" if each in costs else "fails" for each in at),
        f"{exponent([(each.at, each.cpu) for each in found]):.2f}",
        f"{steps[largest]:.2f} at {found[largest + 1].at:,}",
        f"{found[0].p99:,.0f} to {found[-1].p99:,.0f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _how(document: dict[str, Any]) -> str:
    settings = document["settings"]
    return (
        f"Medians of {settings['turns']} measurements of {settings['seconds']:g} s in turns, measured"
        f" {document['made'][:10]}; {document['machine']['cpu_model']}, servers on processor {settings['server_cpus']},"
        f" generator on processor {settings['client_cpus']}. Unless the axis says otherwise: 10,000 rows with values of"
        " 100 bytes, 16 connections, batches of 1, one worker. The exponent is that of the power of best fit; *largest"
        " step* is the cost at a point divided by that at the point before."
    )


@click.group(invoke_without_command=True)
@click.option("--axes", default=",".join(AXES), show_default=True, help="NAME[,NAME…].")
@click.option("--turns", default=2, show_default=True, type=click.IntRange(1), help="Measurements of each point.")
@click.option("--seconds", default=2.0, show_default=True, type=click.FloatRange(0.2), help="Of each measurement.")
@click.option("--warmup", default=0.5, show_default=True, type=click.FloatRange(0), help="Seconds before each.")
@click.option("--largest", default=1_000_000, show_default=True, help="No points beyond this.")
@click.option("--servers", default=",".join(ALL), show_default=True, help="TARGET[,TARGET…].")
@click.option("--server-cpus", default="0", show_default=True, help="Processors of the servers.")
@click.option("--client-cpus", default="1", show_default=True, help="Processors of the generator.")
@click.option("--json", "file", type=PATH, help="Write all points there, after each axis.")
@click.pass_context
def main(
    context: click.Context,
    /,
    axes: str,
    servers: str,
    largest: int,
    server_cpus: str,
    client_cpus: str,
    file: Path | None,
    **numbers: float,
) -> None:
    """Measure, and print a table for each axis."""
    if context.invoked_subcommand is not None:
        return
    turns, seconds, warmup = int(numbers["turns"]), numbers["seconds"], numbers["warmup"]
    if unknown := [name for name in axes.split(",") if name not in AXES]:
        raise BenchError(f"no axes {', '.join(unknown)}: choose among {', '.join(AXES)}")
    if few := [name for name in axes.split(",") if sum(each <= largest for each in AXES[name].points) < MIN_POINTS]:
        raise BenchError(f"fewer than {MIN_POINTS} points of {', '.join(few)} up to {largest}: raise --largest")
    if unknown := [name for name in servers.split(",") if name not in ALL]:
        raise BenchError(f"no servers {', '.join(unknown)}: choose among {', '.join(ALL)}")
    where = cpus.split(server_cpus, client_cpus)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # 10,000 connections are as many descriptors
    document: dict[str, Any] = {
        "version": VERSION,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine.public(machine.machine()),
        "settings": {"turns": turns, "seconds": seconds, "server_cpus": server_cpus, "client_cpus": client_cpus},
        "axes": {name: AXES[name].what for name in axes.split(",")},
        "servers": TITLES,
        "points": [],
    }
    clock = Clock(warmup, seconds)
    with cpus.on(where.clients), local(1, sorted(where.clients)) as engine:
        for name in axes.split(","):
            at = tuple(each for each in AXES[name].points if each <= largest)
            there = tuple(each for each in AXES[name].servers if each in servers.split(","))
            axis = replace(AXES[name], points=at, servers=there)
            document["points"] += map(asdict, measure(name, axis, turns, clock, engine, where))
            if file is not None:
                write(document, file)
    click.echo(table(document), nl=False)


@main.command()
@click.argument("file", type=PATH)
@click.option("--into", type=PATH, help="Put the tables between the markers of the file's name there.")
def show(file: Path, into: Path | None) -> None:
    """Print the tables of a file again."""
    document = read(file, "points")
    if into is None:
        click.echo(table(document), nl=False)
        return
    into.write_text(insert_table(into.read_text(encoding="utf-8"), table(document), file.stem), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except KvrefError as error:
        sys.exit(f"growth: {error}")
