"""kvref over Vitess with one, two and four shards: throughput, and CPU time of everything that a command passes.

A cluster for each number of shards, each with a vtgate and a process of kvref; they are measured in turns. Each mysqld
of a shard has the same share of a processor, as if it had a machine, and a slow one: little enough that it is the
shards that limit the throughput, as long as kvref and Vitess have processors left. CPU time is that of the processes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from kvref_bench.load import coordinator
from kvref_bench.load.engine import local
from kvref_bench.load.work import Clock, Keys, Values, Work
from kvref_bench.peers.cpu_quota import limited
from kvref_bench.peers.processes import listening
from kvref_bench.turns import loaded
from kvref_bench.turns.report import Column
from kvref_bench.watch import Watch
from kvref_testbed.targets import kvref_server, vitess_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvref_bench.load.engine import Engine
    from kvref_bench.turns.report import Point

SPACE: Final = 256  # values of the first byte of a keyspace ID, which shards divide
CONNECTIONS: Final = 50  # of kvref to vtgate; a tablet has 100 transactions at most
DEPTH: Final = 16  # sets in flight that fill the table
FILLING_SECONDS: Final = 600.0  # at most
WARMUP: Final = 1.0  # seconds
KVREF: Final = "kvref"
GATE: Final = "vtgate"
TABLET: Final = "vttablet"
DATABASE: Final = "mysqld"

SHARDS: Final = (
    Column("shards", "shards"), Column("share", "sets", ".0%"),
    Column("per_second", "commands/s", ",.0f", statistics.median),
    Column("gain", "gain", ".2f", statistics.median), Column("gain", "lowest", ".2f", min),
    Column("gain", "highest", ".2f", max),
    *(Column(name, f"{name}, µs", ".1f", statistics.median) for name in (KVREF, GATE, TABLET, DATABASE)),
    Column("p99", "p99, ms", ".1f", statistics.median),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """kvref over a cluster that runs.

    address: of kvref. pids: processes by name; those of tablets and their mysqld have a number behind it.
    """

    shards: int
    address: str
    pids: Mapping[str, int]


def names(count: int) -> tuple[str, ...]:
    """Return the names of shards of equal size, for example `-80` and `80-`. count: a power of two, at most 256."""
    bounds = ["", *(f"{SPACE * number // count:02x}" for number in range(1, count)), ""]
    return tuple(f"{low}-{high}" for low, high in pairwise(bounds))


def measure(  # noqa: PLR0913, PLR0917 - what, how long, how many
    counts: Sequence[int], shares: Sequence[float], turns: int, seconds: float, sessions: int, keys: int, cpu: float,
    say: Callable[[str], None],
) -> list[Point]:  # fmt: skip
    """Measure each number of shards with each share of sets, in turns.

    Args:
        counts: of shards, powers of two. shares: of sets, 0 to 1. turns: of each. seconds: of a measurement.
        sessions: connections for each shard. keys: rows of the table. cpu: share of a processor of each mysqld.
        say: takes a line of progress.

    Raises:
        MissingError: Vitess cannot be built here. TargetError: it does not start.
        BenchError: a wrong reply, or the machine limits no CPU time.
    """
    points: list[Point] = []
    with ExitStack() as stack, local(1) as engine:
        layouts = [_serving(stack, count, keys, cpu, engine, say) for count in counts]
        for turn in range(turns):
            for share in shares:
                for layout in loaded.in_turn(layouts, turn):
                    done = _point(layout, share, sessions, keys, seconds, engine)
                    say(f"turn {turn + 1}: {layout.shards} shards, {share:.0%} sets: {done['per_second']:.0f}/s")
                    points.append({"turn": turn, **done})
    return sorted(_gained(points), key=lambda point: (point["share"], point["shards"]))


def _serving(stack: ExitStack, count: int, keys: int, cpu: float, engine: Engine, say: Callable[[str], None]) -> Layout:
    """Start a cluster and kvref over it, fill the table, and limit each mysqld; they end with the stack."""
    say(f"starting {count} shards")
    cluster = stack.enter_context(vitess_cluster(tablets=1, shards=names(count)))
    subprocess.run([sys.executable, "-m", "kvref", "init", "--demo", "--store", cluster.dsn], check=True)
    kvref = stack.enter_context(kvref_server("kvref", store=f"{cluster.dsn}?connections={CONNECTIONS}"))
    kvref.start()
    address = "{}:{}".format(*kvref.address)
    pids = listening(**{KVREF: address, GATE: f"{cluster.gates[0].host}:{cluster.gates[0].port}"})
    tablets = [cluster.primary(shard) for shard in cluster.shards()]
    for number, tablet in enumerate(tablets, 1):
        ports = {TABLET: tablet.port, DATABASE: tablet.database.port}
        found = listening(**{name: f"{tablet.database.host}:{port}" for name, port in ports.items()})
        pids |= {f"{name} {number}": pid for name, pid in found.items()}
    sets = -(-keys // DEPTH) * DEPTH
    filling = replace(_work(keys, 1.0, 1), depth=DEPTH, operations=sets, pool=sets)
    filling = replace(filling, keys=replace(filling.keys, distribution="sequential"))
    loaded.answered(KVREF, coordinator.measure(address, filling, Clock(0, FILLING_SECONDS), engine, Watch()))
    for name, pid in pids.items():
        if name.startswith(DATABASE):
            stack.enter_context(limited(pid, cpu))
    return Layout(count, address, pids)


def _work(keys: int, share: float, sessions: int) -> Work:
    verbs = {verb: weight for verb, weight in (("get", 1 - share), ("set", share)) if weight}
    return Work(Keys(keys), Values(), verbs, sessions=sessions)


def _point(layout: Layout, share: float, sessions: int, keys: int, seconds: float, engine: Engine) -> Point:
    work = _work(keys, share, sessions * layout.shards)
    done = loaded.measure(KVREF, layout.address, work, Clock(WARMUP, seconds), engine, layout.pids)
    used = dict.fromkeys((KVREF, GATE, TABLET, DATABASE), 0.0)
    for name, each in done.server.items():
        used[name.partition(" ")[0]] += each
    p99 = None if done.p99 is None else done.p99 / 1e3
    return {"shards": layout.shards, "share": share, "per_second": done.per_second, "p99": p99, **used}


def _gained(points: Sequence[Point]) -> list[Point]:
    """Give each point its rate divided by that of the fewest shards in the same turn."""
    fewest = min(point["shards"] for point in points)
    base: dict[Any, float] = {
        (point["turn"], point["share"]): point["per_second"] for point in points if point["shards"] == fewest
    }
    return [{**point, "gain": point["per_second"] / base[point["turn"], point["share"]]} for point in points]
