"""One row after the other: its servers, warm-up, pairs in alternating order."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvref_bench.pairs.clients import Clients
from kvref_bench.pairs.rows import COUNT, table
from kvref_bench.pairs.servers import boot, require_durable
from kvref_bench.turns import cpus, loaded
from kvref_bench.turns.loaded import Done
from kvref_testbed.targets import QUIET, MissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from kvref_bench.pairs.rows import Row
    from kvref_bench.pairs.servers import Server
    from kvref_bench.turns.cpus import Split
    from kvref_testbed.targets.progress import Progress

Pair = tuple[Done, Done]


@dataclass(frozen=True, slots=True)
class Settings:
    """How all rows are measured.

    where: who runs on which processor. pairs: of each row, 1 or more.
    seconds: of each measurement; warmup: before each. keys: rows of the table.
    kvref: further options of `kvref serve`. compiled: Python of a compiled kvref; None: there is none.
    """

    where: Split
    pairs: int = 5
    seconds: float = 10.0
    warmup: float = 1.0
    keys: int = COUNT
    kvref: tuple[str, ...] = ()
    compiled: Path | None = None


@dataclass(slots=True)
class Measured:
    """The result of a row.

    pairs: ours and theirs, in the order of the table whichever was first.
    facts: of the servers, by name. ceilings: of the generator, ours and theirs; None: unknown.
    skipped: why it was not measured; "" if it was.
    """

    row: Row
    pairs: list[Pair] = field(default_factory=list)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    ceilings: tuple[float | None, float | None] = (None, None)
    skipped: str = ""


def measure(
    rows: Sequence[Row], settings: Settings, say: Callable[[str], None], progress: Progress = QUIET
) -> Iterator[Measured]:
    """Measure rows, and give each as it is done.

    A row for which the machine lacks something (a program, an artifact, a library) is given with the reason.

    Args:
        rows: in this order. say: takes a line of progress. progress: of what is downloaded and booted.

    Raises:
        BenchError: a wrong answer, or a server that does not do as agreed. TargetError: one that does not start.
    """
    with loaded.generator(settings.where) as engine:
        clients = Clients(engine, settings.where, table(settings.keys).keys, settings.warmup, settings.seconds)
        for row in rows:
            measured = Measured(row)
            try:
                _row(measured, clients, settings, say, progress)
            except MissingError as lack:
                measured.skipped = str(lack)
                say(f"{row.name}: left out: {lack}")
            yield measured


def _row(
    measured: Measured, clients: Clients, settings: Settings, say: Callable[[str], None], progress: Progress
) -> None:
    row, where = measured.row, settings.where.servers
    sides = (row.ours, row.theirs)
    with ExitStack() as stack:
        say(f"{row.name}: starting {' and '.join(dict.fromkeys(side.server for side in sides))}")
        names = [side.server for side in sides]
        servers = boot(
            stack,
            names,
            row.table(settings.keys),
            where,
            options=settings.kvref,
            progress=progress,
            compiled=settings.compiled,
        )
        for server in servers.values():
            if row.durable:
                require_durable(server)
        measured.facts = {name: dict(server.facts) for name, server in servers.items()}
        for side in sides:
            clients.sweep(servers[side.server], side.load)
        ours = clients.ceiling(row.ours.load)
        same = row.theirs.load == row.ours.load
        measured.ceilings = ours, ours if same else clients.ceiling(row.theirs.load)
        for number in range(settings.pairs):
            measured.pairs.append(pair(row, clients, servers, number))
            say(_told(row, number, measured.pairs[-1]))
        # Threads and children that came since the start inherit where they may run, unless they choose themselves.
        for server in servers.values():
            cpus.check(server.pids.values(), where)


def pair(row: Row, clients: Clients, servers: Mapping[str, Server], number: int) -> Pair:
    """Measure both sides, ours first in pairs of even number. Raises BenchError."""
    sides = [row.ours, row.theirs]
    order = sides if number % 2 == 0 else sides[::-1]
    done = [clients.measure(servers[side.server], side.load) for side in order]
    ours, theirs = done if number % 2 == 0 else done[::-1]
    return ours, theirs


def _told(row: Row, number: int, both: Pair) -> str:
    ours, theirs = (each.per_second for each in both)
    return f"{row.name}: pair {number + 1}: {ours:.0f} : {theirs:.0f} {row.unit}/s, {ours / theirs:.2f}"
