# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""The generator against memcaslap of libmemcached-tools: native memcached, 64 sessions, one process or thread each.

    python bench/memcaslap_pairs.py                               # boots a memcached of its own
    python bench/memcaslap_pairs.py --endpoint 127.0.0.1:11211 --json pairs.json

Both send 90 % get and 10 % set, keys of 17 bytes, values of 100, one request at a time on each connection, and verify
every value. Rounds alternate: memcaslap, the generator at depth 1, the generator at depth 16, and the next round in
reverse order. The results are ratios within a round, median and range, since other load on the machine affects all
three. CPU time is the client's: of memcaslap that of its process without its start, which a run of one get for each
connection measures, of the generator that of its worker in the measured time.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.table import Table

from kvref.errors import KvrefError
from kvref_bench import peers
from kvref_bench.errors import BenchError
from kvref_bench.load import coordinator
from kvref_bench.load.drivers import memcaslap as program
from kvref_bench.load.drivers.memcaslap import KEY_LENGTH
from kvref_bench.load.engine import local
from kvref_bench.load.work import Clock, Keys, Values, Work
from kvref_bench.peers import PeerSpec
from kvref_bench.scenario.records import Table as Items
from kvref_testbed.targets import QUIET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.load.channel import Progress
    from kvref_bench.load.coordinator import Engine
    from kvref_bench.load.drivers.memcaslap import Done

SESSIONS: Final = 64
VALUE: Final = 100
KEYS: Final = Keys(10_000, length=KEY_LENGTH)
VALUES: Final = Values((VALUE, VALUE))
MEMCASLAP, SINGLE, DEEP = "memcaslap", "kvref bench, depth 1", "kvref bench, depth 16"
DEPTHS: Final = {SINGLE: 1, DEEP: 16}


@dataclass(frozen=True, slots=True)
class Result:
    """What one client did: operations a second, CPU microseconds of the client for each."""

    who: str
    operations: float
    cpu: float


class Nobody:
    """Looks on and never ends a point."""

    def going(self, seconds: float) -> None:
        """See `coordinator.Watch`."""

    def progress(self, what: Progress) -> None:
        """See `coordinator.Watch`."""

    def stopping(self) -> bool:
        """See `coordinator.Watch`."""
        return False


def memcaslap(address: str, *length: str) -> Done:
    """Run memcaslap; length: its option for how long."""
    return program.run(address, SESSIONS, 0.9, VALUE, length)


def theirs(address: str, seconds: int, start: float) -> Result:
    """Measure memcaslap. start: CPU seconds of its start."""
    operations, a_second, cpu = memcaslap(address, "-t", f"{seconds}s")
    return Result(MEMCASLAP, a_second, (cpu - start) / operations * 1e6)


def ours(address: str, seconds: int, who: str, engine: Engine) -> Result:
    """Measure the generator at the depth of that name."""
    work = Work(KEYS, VALUES, {"get": 0.9, "set": 0.1}, sessions=SESSIONS, depth=DEPTHS[who])
    [result] = coordinator.measure(address, work, Clock(0.5, seconds), engine, Nobody())
    operations = sum(sum(bins.values()) for bins in result.histograms.values())
    if result.errors or result.stopped or any(cell.kind.outcome == "miss" for cell in result.histograms):
        raise BenchError(f"{who}: {result.errors} wrong answers, {result.stopped}, {result.unexpected[:1]}")
    return Result(who, operations / result.seconds, (result.usage.user + result.usage.system) / operations * 1e6)


def measure(address: str, pairs: int, seconds: int) -> list[list[Result]]:
    """Measure all three in each round."""
    start = statistics.median(memcaslap(address, "-x", str(SESSIONS))[2] for _ in range(3))
    rounds = []
    with local(1) as engine:
        for number in range(pairs):
            order = [MEMCASLAP, SINGLE, DEEP]
            if number % 2:
                order.reverse()
            rounds.append([
                theirs(address, seconds, start) if who == MEMCASLAP else ours(address, seconds, who, engine)
                for who in order
            ])  # fmt: skip
    return rounds


def told(rounds: Sequence[Sequence[Result]]) -> tuple[Table, dict[str, object]]:
    """Return the table and what goes into the file."""
    by_round = [{each.who: each for each in results} for results in rounds]
    columns = ("operations/s", "CPU us/op", "op/s : memcaslap's", "CPU : memcaslap's")
    table = Table("client", *(heading for column in columns for heading in (column, "range")))
    ratios: dict[str, dict[str, list[float]]] = {}
    for who in (MEMCASLAP, SINGLE, DEEP):
        mine, first = [each[who] for each in by_round], [each[MEMCASLAP] for each in by_round]
        ratio = {
            "operations": [one.operations / other.operations for one, other in zip(mine, first, strict=True)],
            "cpu": [one.cpu / other.cpu for one, other in zip(mine, first, strict=True)],
        }
        ratios[who] = ratio
        table.add_row(
            who,
            *_middle([each.operations for each in mine], 0),
            *_middle([each.cpu for each in mine], 2),
            *(("", "", "", "") if who == MEMCASLAP else (*_middle(ratio["operations"], 2), *_middle(ratio["cpu"], 2))),
        )
    document = {
        "sessions": SESSIONS,
        "rounds": [[asdict(each) for each in results] for results in rounds],
        "ratios": {who: ratios[who] for who in (SINGLE, DEEP)},
        "medians": {who: {name: statistics.median(each) for name, each in ratios[who].items()} for who in DEPTHS},
        "load_average": os.getloadavg()[0],
    }
    return table, document


def _middle(numbers: Sequence[float], digits: int) -> tuple[str, str]:
    return (
        f"{statistics.median(numbers):.{digits}f}",
        f"{min(numbers):.{digits}f} to {max(numbers):.{digits}f}",
    )


@click.command()
@click.option("--endpoint", default="memcached", show_default=True, help="HOST:PORT of a memcached, or the target.")
@click.option("--pairs", default=5, show_default=True, help="Rounds.")
@click.option("--seconds", default=10, show_default=True, help="Of each measurement.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures there too.")
def main(endpoint: str, pairs: int, seconds: int, file: Path | None) -> None:
    """Compare the generator with memcaslap; the items of the memcached are thrown away."""
    try:
        with peers.open(PeerSpec(endpoint=endpoint), QUIET) as peer:
            peer.prepare(Items("items", "", KEYS, VALUES))
            assert peer.address is not None
            table, document = told(measure(peer.address, pairs, seconds))
    except KvrefError as error:
        sys.exit(str(error))
    Console(width=160).print(table)
    if file is not None:
        file.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
