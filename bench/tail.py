# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""The slowest replies at half of a server's capacity: kvref over SQLite, the plugin and memcached, in turns.

    python bench/tail.py                                  # three turns of 60 s: 12 minutes
    python bench/tail.py --turns 1 --seconds 20 --json tail.json

A closed loop of 64 connections, 90 % gets and 10 % sets, measures how much each server can serve. Half of that is then
sent by a schedule (open loop). A latency lasts from the scheduled time until the reply, so that waiting behind slow
replies counts. Meanwhile SQLite moves its log into the file, and kvref reads its configuration again (--reload-every).
"""

from __future__ import annotations

import math
import os
import signal
import statistics
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvref.errors import KvrefError
from kvref_bench import peers
from kvref_bench.load import coordinator
from kvref_bench.load.engine import local
from kvref_bench.load.work import Clock, Keys, Values, Work
from kvref_bench.pairs.clients import answered
from kvref_bench.pairs.document import write
from kvref_bench.peers import PeerSpec
from kvref_bench.runs import machine
from kvref_bench.runs.merge import percentile
from kvref_bench.scenario.records import Table
from kvref_bench.turns import cpus
from kvref_bench.turns.readings import Onlooker
from kvref_testbed.targets import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.coordinator import Engine
    from kvref_bench.peers import OpenPeer

TITLES: Final = {
    "kvref-sqlite": "kvref over SQLite", "mysql-8.0-plugin": "plugin 8.0.33", "memcached": "memcached 1.6.18",
}  # fmt: skip
RELOADED: Final = ("kvref-sqlite",)  # by SIGHUP; the plugin has no signal for that
SHARE: Final = 0.5  # of the capacity
CAPACITY_SECONDS: Final = 5.0
KEYS: Final = Keys(10_000, length=16)
VALUES: Final = Values((100, 100))
WORK: Final = Work(KEYS, VALUES, {"get": 0.9, "set": 0.1}, sessions=64)
TABLE: Final = Table("demo", "default", KEYS, VALUES)
PATH: Final = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Tail:
    """One measurement.

    Args:
        server: a target.
        rate: operations a second that were sent.
        p50, p99, p999: microseconds from the scheduled time until the reply.
        largest: the same of the slowest reply.
    """

    server: str
    rate: float
    p50: float
    p99: float
    p999: float
    largest: float


@contextmanager
def reloading(peer: OpenPeer, target: str, pause: float) -> Iterator[None]:
    """Let kvref read its configuration again during the block, each time after a pause in seconds; 0: never."""
    over = threading.Event()
    pids = [*peer.processes().values()] if target in RELOADED and pause else []

    def reload() -> None:
        while not over.wait(pause or None):
            for pid in pids:
                os.kill(pid, signal.SIGHUP)

    thread = threading.Thread(target=reload)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def capacity(peer: OpenPeer, target: str, engine: Engine) -> float:
    """Return the operations a second of a closed loop. Raises BenchError."""
    assert peer.address is not None, "each has a port of the memcached protocol"
    clock = Clock(1.0, CAPACITY_SECONDS)
    merged = answered(target, coordinator.measure(peer.address, WORK, clock, engine, Onlooker()))
    return merged.ops / merged.seconds


def measured(peer: OpenPeer, target: str, clock: Clock, pause: float, engine: Engine) -> Tail:
    """Return the latencies at the rate of a clock; `pause`: see `reloading`. Raises BenchError."""
    assert peer.address is not None, "each has a port of the memcached protocol"
    with reloading(peer, target, pause):
        merged = answered(target, coordinator.measure(peer.address, WORK, clock, engine, Onlooker()))
    bins = merged.bins("intended")
    found = [(percentile(bins, share) or math.nan) / 1e3 for share in (0.5, 0.99, 0.999, 1.0)]
    return Tail(target, merged.ops / merged.seconds, *found)


def fill(peer: OpenPeer, target: str, engine: Engine) -> None:
    """Get every key once, so that what a server caches is cached. Raises BenchError."""
    assert peer.address is not None, "each has a port of the memcached protocol"
    keys = replace(KEYS, distribution="sequential")
    work = replace(WORK, keys=keys, verbs={"get": 1.0}, sessions=1, operations=KEYS.count, pool=KEYS.count)
    answered(target, coordinator.measure(peer.address, work, Clock(0, 300.0), engine, Onlooker()))


def table(tails: list[Tail]) -> str:
    """Return medians of the turns, and the range of the 99.9th percentile, in Markdown."""
    lines = [
        "| server | sent, 1/s | median, µs | p99, µs | p99.9, µs | range of p99.9 | slowest |",
        "|---|---|---|---|---|---|---|",
    ]
    for server, title in TITLES.items():
        found = [each for each in tails if each.server == server]
        if found:
            rate, *middle = (
                statistics.median(getattr(each, part) for each in found) for part in ("rate", "p50", "p99", "p999")
            )
            tail = [each.p999 for each in found]
            cells = [title, f"{rate:,.0f}", *(f"{each:,.0f}" for each in middle)]
            cells += [f"{min(tail):,.0f} to {max(tail):,.0f}", f"{max(each.largest for each in found):,.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@click.command()
@click.option("--turns", default=3, show_default=True, type=click.IntRange(1), help="Measurements of each server.")
@click.option("--seconds", default=60.0, show_default=True, type=click.FloatRange(1), help="Of each measurement.")
@click.option(
    "--reload-every", default=10.0, show_default=True, type=click.FloatRange(0), help="Seconds; 0: kvref never reloads."
)
@click.option("--server-cpus", default="0", show_default=True, help="Processors of the servers.")
@click.option("--client-cpus", default="1", show_default=True, help="Processors of the generator.")
@click.option("--json", "file", type=PATH, help="Write all figures there.")
def main(
    turns: int, seconds: float, reload_every: float, server_cpus: str, client_cpus: str, file: Path | None
) -> None:
    """Measure, and print a table."""
    where = cpus.split(server_cpus, client_cpus)
    tails: list[Tail] = []
    with cpus.on(where.clients), local(1, sorted(where.clients)) as engine, ExitStack() as stack:
        with cpus.on(where.servers):
            there = {name: stack.enter_context(peers.open(PeerSpec(endpoint=name), QUIET)) for name in TITLES}
        rates = {}
        for name, peer in there.items():
            peer.prepare(TABLE)
            fill(peer, name, engine)
            rates[name] = SHARE * capacity(peer, name, engine)
        for turn in range(turns):
            for name in [*there][:: 1 if turn % 2 == 0 else -1]:
                clock = Clock(1.0, seconds, rate=rates[name])
                tails.append(measured(there[name], name, clock, reload_every, engine))
                click.echo(f"turn {turn + 1}: {name}: p99.9 {tails[-1].p999:,.0f} µs", err=True)
    if file is not None:
        document = {
            "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine.public(machine.machine()),
            "settings": {
                "turns": turns,
                "seconds": seconds,
                "reload_every": reload_every,
                "server_cpus": server_cpus,
                "client_cpus": client_cpus,
            },
            "tails": [asdict(each) for each in tails],
        }
        write(document, file)
    click.echo(table(tails), nl=False)


if __name__ == "__main__":
    try:
        main()
    except KvrefError as error:
        sys.exit(f"tail: {error}")
