"""How the cost of a get and of a set grows with rows, size of values, connections, mappings, columns, batches, workers.

At each point of an axis, the servers that have it are booted on one processor and measured in turns by the generator on
another, after each key was read once: CPU time of the server, with its database, for each operation, and the 99th
percentile of the time until the reply. An exponent of 0 means that the cost does not grow along the axis, 1 that it is
proportional.
"""

from __future__ import annotations

import itertools
import math
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from kvref_bench import peers
from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.peers import PeerSpec
from kvref_bench.peers.base_tables import DATABASE
from kvref_bench.scenario.records import Table
from kvref_bench.turns import cpus, loaded, report
from kvref_testbed.targets import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvref_bench.load.engine import Engine
    from kvref_bench.load.work import Clock
    from kvref_bench.peers import OpenPeer
    from kvref_bench.turns.report import Point

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
COLUMNS: Final = "'k', 'v', 'flags', 'cas', 'exp', 'PRIMARY'"  # of `containers`
KEY_BYTES: Final = 16
FILLED: Final = 64 << 20  # bytes of values in a table, and in the requests that the generator makes before its clock
POOL: Final = 1 << 18  # requests, more than a server of a large table answers in one measurement
BATCHES: Final = ("daemon_memcached_r_batch_size", "daemon_memcached_w_batch_size")
MIN_POINTS: Final = 2


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
        names = [_name(number) for number in range(1, self.mappings)]
        rows = ", ".join(f"('{name}', '{DATABASE}', '{TABLE}', {COLUMNS})" for name in names)
        return Table(
            TABLE, MAPPING, self._keys, self._values,
            more="".join(f", c{number} VARCHAR(20) DEFAULT 'of no mapping'" for number in range(self.columns)),
            statements=(f"INSERT INTO {{containers}} VALUES {rows}",) if names else (),  # noqa: S608 - constants
        )  # fmt: skip

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


def _name(number: int) -> str:
    return f"m{number}" if number else MAPPING


def opened(stack: ExitStack, target: str, place: Place) -> OpenPeer:
    """Boot a server with the table of a place; it ends with the stack."""
    options = place.options if target in {SQLITE, MYSQL} else ()
    peer = stack.enter_context(peers.open(PeerSpec(endpoint=target, options=options), QUIET))
    if place.settings:
        peer.start(place.settings)
    peer.prepare(place.table)
    return peer


def chosen(axes: str, servers: str, largest: int) -> dict[str, Axis]:
    """Return the axes NAME[,NAME…] with the points up to `largest`, for some servers. Raises BenchError."""
    for words, known, what in ((axes, tuple(AXES), "axes"), (servers, ALL, "servers")):
        if unknown := [name for name in words.split(",") if name not in known]:
            raise BenchError(f"no {what} {', '.join(unknown)}: choose among {', '.join(known)}")
    found = {}
    for name in axes.split(","):
        at = tuple(each for each in AXES[name].points if each <= largest)
        if len(at) < MIN_POINTS:
            raise BenchError(f"fewer than {MIN_POINTS} points of {name} up to {largest}: raise --largest")
        there = tuple(each for each in AXES[name].servers if each in servers.split(","))
        found[name] = replace(AXES[name], points=at, servers=there)
    return found


def measure(
    name: str, axis: Axis, turns: int, clock: Clock, engine: Engine, where: cpus.Split, say: Callable[[str], None]
) -> list[Point]:
    """Measure the points of an axis, and say what each is; a server that fails at one is left out there.

    Raises:
        TargetError: a server cannot be started.
    """
    points: list[Point] = []
    for at in axis.points:
        place = axis.place(at)
        here: list[Point] = []
        with ExitStack() as stack:
            with cpus.on(where.servers):
                open_peers = {target: opened(stack, target, place) for target in axis.servers}
            there = [*axis.servers]
            for turn in range(turns):
                for target in loaded.in_turn(there, turn):
                    try:
                        here += _measured(name, at, place, target, open_peers[target], turn, clock, engine)
                    except BenchError as error:
                        say(f"{name}: {at:,} {axis.what}: left out: {error}")
                        there.remove(target)
                        here = [each for each in here if each["server"] != target]
        costs = [f"{each['server']} {each['verb']} {each['cpu']:.1f} µs" for each in here]
        say(f"{name}: {at:,} {axis.what}: {', '.join(costs)}")
        points += here
    return points


def _measured(  # noqa: PLR0913, PLR0917 - where, what and how
    name: str, at: int, place: Place, target: str, peer: OpenPeer, turn: int, clock: Clock, engine: Engine
) -> list[Point]:
    assert peer.address is not None, "each has a port of the memcached protocol"
    if turn == 0:
        loaded.sweep(target, peer.address, place.work("get"), engine)
    found: list[Point] = []
    for verb in VERBS:
        done = loaded.measure(target, peer.address, place.work(verb, turn), clock, engine, peer.processes())
        figures = {"cpu": sum(done.server.values()), "p99": done.p99 or math.nan, "per_second": done.per_second}
        found.append({"axis": name, "at": at, "server": target, "verb": verb, **figures})
    return found


def exponent(costs: Sequence[tuple[int, float]]) -> float:
    """Return b of the cost a·n^b that fits best, by least squares of the logarithms; of at least two points."""
    return statistics.linear_regression(
        *zip(*((math.log(at), math.log(cost)) for at, cost in costs), strict=True)
    ).slope


def table(document: Mapping[str, Any]) -> str:
    """Return the costs in Markdown, a table for each axis."""
    frame = pd.DataFrame(document["points"])
    medians: Any = frame.groupby(["axis", "server", "verb", "at"])[["cpu", "p99"]].median()
    parts = []
    for name, of in frame.groupby("axis", sort=False):
        at = sorted(of["at"].unique())
        head = ["server", "verb", *(f"{each:,}" for each in at), "exponent", "largest step", "p99, µs"]
        there = [each for each in itertools.product(TITLES, VERBS) if (name, *each) in medians.index]
        rows = report.grid(head, [_line(*each, at, medians.loc[(name, *each)]) for each in there])
        parts.append(f"### By {AXES[str(name)].what}\n\nMicroseconds of CPU time for each operation:\n\n{rows}")
    return "\n".join(parts) + f"\n{_how(document)}\n"


def _line(server: str, verb: str, at: Sequence[int], found: Any) -> list[str]:
    costs, p99 = found["cpu"], found["p99"]
    steps = costs / costs.shift()
    return [
        TITLES[server], verb, *(f"{costs[each]:.1f}" if each in costs.index else "fails" for each in at),
        f"{exponent(list(costs.items())):.2f}", f"{steps.max():.2f} at {steps.idxmax():,}",
        f"{p99.iloc[0]:,.0f} to {p99.iloc[-1]:,.0f}",
    ]  # fmt: skip


def _how(document: Mapping[str, Any]) -> str:
    settings = document["settings"]
    again = "".join(
        f" The axes {' and '.join(each['axes'])} were measured on {each['made'][:10]}."
        for each in settings.get("measured_again", ())
    )
    return (
        f"Medians of {settings['turns']} measurements of {settings['seconds']:g} s in turns, measured"
        f" {document['made'][:10]}; {document['machine']['cpu_model']}, servers on processor {settings['server_cpus']},"
        f" generator on processor {settings['client_cpus']}. Unless the axis says otherwise: 10,000 rows with values of"
        " 100 bytes, 16 connections, batches of 1, one worker. The exponent is that of the power of best fit; *largest"
        f" step* is the cost at a point divided by that at the point before.{again}"
    )
