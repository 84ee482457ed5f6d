"""Gets of keys drawn evenly from a table in the seconds after a restart: what they cost until the cache is warm."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from kvref_bench.load.work import Clock
from kvref_bench.turns import cpus, growth, loaded
from kvref_bench.turns.report import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvref_bench.turns.report import Point

SECOND: Final = Clock(0, 1.0)

COLD: Final = (
    Column("target", "server"), Column("second", "second"),
    Column("per_second", "gets, 1/s", ",.0f", statistics.median), Column("cpu", "CPU, µs", ".1f", statistics.median),
    Column("p99", "p99, µs", ",.0f", statistics.median),
)  # fmt: skip


def measure(
    targets: Sequence[str],
    where: cpus.Split,
    say: Callable[[str], None],
    *,
    keys: int,
    sessions: int,
    seconds: int,
    turns: int,
) -> list[Point]:
    """Boot each target with a table, start it again in each turn, and measure each second from then on.

    keys: rows of the table. sessions: connections, each with one get in flight.

    Raises:
        BenchError: an answer was wrong or missing. TargetError: no such target, or it does not start.
    """
    place = growth.Place(keys=keys, sessions=sessions)
    points: list[Point] = []
    with loaded.generator(where) as engine, ExitStack() as stack:
        for name in targets:
            with cpus.on(where.servers):
                peer = growth.opened(stack, name, place)
            for turn in range(turns):
                with cpus.on(where.servers):
                    peer.start({})
                assert peer.address is not None, "each has a port of the memcached protocol"
                for second in range(1, seconds + 1):
                    work = place.work("get", turn * seconds + second)
                    done = loaded.measure(name, peer.address, work, SECOND, engine, peer.processes())
                    figures = {"per_second": done.per_second, "cpu": sum(done.server.values()), "p99": done.p99}
                    points.append({"target": name, "second": second, **figures})
                say(f"{name}: restart {turn + 1} of {turns}: {points[-1]['per_second']:,.0f} gets in the last second")
    return points
