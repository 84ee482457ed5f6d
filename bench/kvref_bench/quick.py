"""A measurement of some ten seconds on an endpoint in use: it adds items with a key prefix of its own and deletes them.

Gets only and a mix with sets, one command at a time and 16 in one write. Nothing else is written, and no setting
is changed.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from kvref_bench import engines, peers
from kvref_bench.interrupt import Interrupts
from kvref_bench.load import coordinator
from kvref_bench.load.work import Clock, Keys, Values, Work
from kvref_bench.order import Turn
from kvref_bench.peers import PeerSpec, wire
from kvref_bench.runs import gates
from kvref_bench.runs.merge import Merged, percentile
from kvref_bench.runs.records import Point, ServerSample
from kvref_bench.scenario.records import Series
from kvref_bench.watch import Watch
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.display import Display
    from kvref_bench.peers import OpenPeer

KEYS: Final = 1000
VALUE_BYTES: Final = 100
# The demo table has room for 32 characters of key; the names of the keys have 31.
PREFIX: Final = "kvref-bench-quick-"
MIXES: Final[dict[str, dict[str, float]]] = {"get": {"get": 1.0}, "90 % get, 10 % set": {"get": 9.0, "set": 1.0}}
DEPTHS: Final = (1, 16)
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
SESSIONS: Final = 8
CLOCK: Final = Clock(warmup=0.3, measure=1.5)  # seconds of each of the four points
_POOL: Final = 8192  # keys of the exchanges that a worker makes before each point
_SERIES_WORDS: Final = "{mix}, depth {depth}"


@dataclass(frozen=True, slots=True)
class Measured:
    """One point.

    Args:
        mix: of the commands, a key of MIXES.
        depth: commands in one write.
        rate: operations a second.
        latencies: in ns by the names of PERCENTILES, each from the write to the last of its replies.
        reasons: why the point is not valid; none: it is valid.
    """

    mix: str
    depth: int
    rate: float
    latencies: dict[str, float | None]
    reasons: list[str]


@dataclass(slots=True)
class Outcome:
    """All points of an endpoint, and what limits their meaning.

    Args:
        address: HOST:PORT or unix:PATH.
        kind: `kvref`, `memcached`, `plugin` or `other`.
        version: as the server reports it.
        sessions: connections of each point.
        points: in the order of the measurement.
        notes: of evictions.
        stopped: the user ended the measurement before its last point.
    """

    address: str
    kind: str
    version: str
    sessions: int
    points: list[Measured] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: bool = False

    def json(self) -> dict[str, Any]:
        """Return the outcome for machines: latencies in milliseconds."""
        return {
            "endpoint": self.address,
            "kind": self.kind,
            "version": self.version,
            "sessions": self.sessions,
            "keys": KEYS,
            "value_bytes": VALUE_BYTES,
            "stopped": self.stopped,
            "points": [
                {
                    "commands": each.mix,
                    "depth": each.depth,
                    "operations_per_second": round(each.rate, 1),
                    "latency_ms": {
                        name: None if took is None else round(took / 1e6, 4) for name, took in each.latencies.items()
                    },
                    "valid": not each.reasons,
                    "reasons": each.reasons,
                }
                for each in self.points
            ],
            "notes": self.notes,
        }

    def table(self) -> Table:
        """Return the outcome for a terminal; figures of a point that is not valid are dim and in parentheses."""
        shown = Table(title=f"{self.address}: {self.version}, {self.sessions} connections, {VALUE_BYTES} byte values")
        shown.add_column("commands")
        for name in ("depth", "op/s", *(f"{name}, ms" for name in PERCENTILES)):
            shown.add_column(name, justify="right")
        shown.add_column("valid")
        for each in self.points:
            latencies = ["-" if took is None else f"{took / 1e6:.3f}" for took in each.latencies.values()]
            figures = [f"{each.rate:,.0f}", *latencies]
            if each.reasons:
                figures = [f"({figure})" for figure in figures]
            verdict = f"NOT VALID: {'; '.join(each.reasons)}" if each.reasons else "yes"
            shown.add_row(each.mix, str(each.depth), *figures, verdict, style="dim" if each.reasons else "")
        return shown


def measure(address: str, display: Display, sessions: int = SESSIONS, processes: int | None = None) -> Outcome:
    """Measure an endpoint of the memcached text protocol, and delete the items that were added for it.

    Args:
        address: HOST:PORT or unix:PATH.
        display: shows the progress.
        sessions: connections, 1 to KEYS.
        processes: load workers; None: half of the processors, at most 4.

    Returns:
        All points, or those until the user pressed Ctrl-C.

    Raises:
        BenchError: the endpoint is not reached, or refuses the items.
    """
    workers = processes or min(4, max(1, (os.cpu_count() or 1) // 2))
    # No table is made and nothing is flushed: `peers` must not refuse an endpoint that holds items.
    with peers.open(PeerSpec(endpoint=address, allow_destructive=True), display) as peer:
        known = peer.peer
        outcome = Outcome(address, known.kind, known.version, sessions)
        with engines.local(min(workers, sessions)) as place, _items(address) as file, Interrupts() as interrupts:
            works = {
                (mix, depth): Work(
                    Keys(KEYS, distribution="file", file=str(file)), Values((VALUE_BYTES, VALUE_BYTES)), verbs,
                    sessions=sessions, depth=depth, pool=_POOL,
                )
                for mix, verbs in MIXES.items()
                for depth in DEPTHS
            }  # fmt: skip
            display.begin(len(works), len(works) * (CLOCK.warmup + CLOCK.measure))
            evicted = _evictions(address)
            try:
                for (mix, depth), work in works.items():
                    turn = Turn(
                        Series(_SERIES_WORDS.format(mix=mix, depth=depth), "memcached", work),
                        known.name,
                        {},
                        sessions,
                        0,
                    )
                    display.point(turn)
                    with interrupts.kept():
                        point = _point(turn, peer, place.engine, Watch(interrupts, display))
                    display.measured(point, _note(outcome, mix, point))
            except KeyboardInterrupt:
                outcome.stopped = True
            if (more := _evictions(address) - evicted) > 0:
                outcome.notes.append(f"the endpoint evicted {more} items during the measurement: its memory is full")
    return outcome


@contextmanager
def _items(address: str) -> Iterator[Path]:
    """Add the items, and delete them at the end of the block; gives a file with their keys, one a line."""
    prefix = f"{PREFIX}{secrets.token_hex(4)}"
    names = [f"{prefix}-{number:04d}".encode() for number in range(KEYS)]
    values = Values((VALUE_BYTES, VALUE_BYTES))
    added: list[bytes] = []
    with tempfile.TemporaryDirectory(prefix="kvref-") as folder:
        file = Path(folder, "keys")
        file.write_bytes(b"\n".join(names))
        try:
            wire.add(address, [(name, value(values, name)) for name in names], added)
            yield file
        finally:
            wire.delete(address, added)


def _point(turn: Turn, peer: OpenPeer, engine: coordinator.Engine, watch: Watch) -> Point:
    work, load, began, sampling = turn.series.work, os.getloadavg()[0], time.time_ns(), peer.sample()
    assert peer.address is not None, "the endpoint has an address"
    with watch.sampling(sampling, CLOCK.warmup):
        results = coordinator.measure(peer.address, work, CLOCK, engine, watch)
    return Point(
        series=turn.series.name, server=turn.server, sessions=turn.sessions, processes=len(results), depth=work.depth,
        multiget=work.multiget, repetition=0, began=began, ended=time.time_ns(), results=results,
        sample=sampling.sample or ServerSample(None), expected_hits=1.0, load_average=load,
        resources=sampling.resources,
    )  # fmt: skip


def _note(outcome: Outcome, mix: str, point: Point) -> list[str]:
    """Add a point to the outcome and return why it is not valid."""
    merged = Merged.of(point.results)
    reasons, bins = gates.judge(gates.Judged(point, merged)), merged.bins("service")
    latencies = {name: percentile(bins, share) for name, share in PERCENTILES.items()}
    outcome.points.append(Measured(mix, point.depth, merged.ops / (merged.seconds or 1.0), latencies, reasons))
    return reasons


def _evictions(address: str) -> int:
    count = wire.stats(address).get("evictions", "0")
    return int(count) if count.isdigit() else 0
