# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""Gets from the secondaries of a MySQL replication group: CPU time of the primary, of the secondaries and of kvref.

    python bench/replica_reads.py
    python bench/replica_reads.py --shares 0,0.5 --seconds 5 --json replica_reads.json

Three members of MySQL 9.7 and three processes of kvref over them, which are measured in turns: `reads=primary`,
`replica` and `session`. Each session sets rows of its own and gets them. A get is stale if it does not return what its
session has set last. CPU time is that of the processes, so that it counts also while others use the machine.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
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
from kvref_testbed.targets import Group, kvref_server, mysql_group

MODES: Final = ("primary", "replica", "session")
COUNTS: Final = ("gets", "behind", "unavailable")
KEYS: Final = 20  # of each session


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement.

    Args:
        reads: of MODES.
        share: sets of all operations.
        operations: how many.
        kvref, primary, secondaries: microseconds of CPU time for each operation; of the secondaries the sum.
        from_secondary: share of the gets that a secondary answered.
        stale: share of the gets that missed a write of their own session.
    """

    reads: str
    share: float
    operations: int
    kvref: float
    primary: float
    secondaries: float
    from_secondary: float
    stale: float


class Session:
    """One connection.

    Args:
        number: of it, the beginning of its keys.
        share: of sets.
        deadline: monotonic time.
    """

    def __init__(self, number: int, share: float, deadline: float) -> None:
        self._number = number
        self._share = share
        self._deadline = deadline
        self._known: dict[int, bytes] = {}
        self.gets = self.sets = self.stale = 0

    async def run(self, host: str, port: int) -> None:
        """Set and get rows until the deadline; raises ClickException for an error reply."""
        reader, writer = await asyncio.open_connection(host, port)
        while time.monotonic() < self._deadline:
            key = random.randrange(KEYS)  # noqa: S311 - no secret
            name = b"s%d.%d" % (self._number, key)
            if random.random() < self._share:  # noqa: S311 - no secret
                value = b"%032d" % random.randrange(1 << 32)  # noqa: S311 - no secret
                writer.write(b"set %b 0 0 32\r\n%b\r\n" % (name, value))
                if (reply := await reader.readline()) != b"STORED\r\n":
                    raise click.ClickException(f"kvref replies {reply!r}")
                self._known[key] = value
                self.sets += 1
                continue
            writer.write(b"get %b\r\n" % name)
            reply = await reader.readuntil(b"END\r\n")
            if reply.startswith(b"SERVER_ERROR"):
                raise click.ClickException(f"kvref replies {reply!r}")
            self.gets += 1
            self.stale += key in self._known and self._known[key] not in reply
        writer.close()


def measured(reads: str, share: float, group: Group, kvref: Any, sessions: int, seconds: float) -> Point:
    """Measure one point; raises ClickException if kvref replies with an error."""
    primary = group.primary()
    ports = {"kvref": kvref.address[1], **{each.name: each.port for each in group.members}}
    cpu = Readings({name: process_at(f"127.0.0.1:{port}") for name, port in ports.items()})
    counts = _counts(kvref.address)
    cpu.begin()
    deadline = time.monotonic() + seconds
    running = [Session(number, share, deadline) for number in range(sessions)]

    async def all_of_them() -> None:
        await asyncio.gather(*[each.run(*kvref.address) for each in running])

    asyncio.run(all_of_them())
    cpu.end()
    used = {name: seconds * 1e6 for name, seconds in cpu.used().items()}
    of_kvref, of_primary = used.pop("kvref"), used.pop(primary.name)
    found = {name: number - counts[name] for name, number in _counts(kvref.address).items()}
    gets = sum(each.gets for each in running)
    operations = gets + sum(each.sets for each in running)
    stale = sum(each.stale for each in running) / max(gets, 1)
    return Point(
        reads, share, operations, of_kvref / operations, of_primary / operations, sum(used.values()) / operations,
        found["gets"] / max(gets, 1), stale,
    )  # fmt: skip


def _counts(address: tuple[str, int]) -> dict[str, int]:
    with closing(Client(address)) as client:
        rows = client.stats()
    return {name: int(rows.get(f"replica_{name}".encode(), 0)) for name in COUNTS}


def _shown(points: list[Point]) -> Table:
    table = Table(
        "reads", "sets", "operations", "kvref µs", "primary µs", "secondaries µs", "from a secondary", "stale gets"
    )
    for reads, share in dict.fromkeys((point.reads, point.share) for point in points):
        same = [point for point in points if (point.reads, point.share) == (reads, share)]
        names = ("kvref", "primary", "secondaries", "from_secondary", "stale")
        middle = {name: statistics.median(getattr(each, name) for each in same) for name in names}
        table.add_row(
            reads, f"{share:.0%}", str(sum(each.operations for each in same)), f"{middle['kvref']:.1f}",
            f"{middle['primary']:.1f}", f"{middle['secondaries']:.1f}", f"{middle['from_secondary']:.1%}",
            f"{middle['stale']:.2%}",
        )  # fmt: skip
    return table


@click.command(help=__doc__ and __doc__.partition("\n")[0])
@click.option("--shares", default="0,0.1,0.5", show_default=True, help="Shares of sets.")
@click.option("--seconds", default=3.0, show_default=True, help="Of each measurement.")
@click.option("--turns", default=3, show_default=True, help="Measurements of each point.")
@click.option("--sessions", default=32, show_default=True, help="Connections.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write all points there.")
def main(shares: str, seconds: float, turns: int, sessions: int, file: Path | None) -> None:
    """Measure, and print a table."""
    points: list[Point] = []
    with ExitStack() as stack:
        group = stack.enter_context(mysql_group())
        subprocess.run([sys.executable, "-m", "kvref", "init", "--demo", "--store", group.dsn], check=True)
        started = {
            reads: stack.enter_context(kvref_server("kvref", (), f"{group.dsn}?reads={reads}")) for reads in MODES
        }
        for each in started.values():
            each.start()
        for turn in range(-1, turns):
            for share in map(float, shares.split(",")):
                for reads, kvref in started.items():
                    length = seconds if turn >= 0 else 1.0  # a warm-up
                    point = measured(reads, share, group, kvref, sessions, length)
                    points += [point] if turn >= 0 else []
    Console(width=120).print(_shown(points))
    if file is not None:
        file.write_text(json.dumps({"points": [asdict(each) for each in points]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
