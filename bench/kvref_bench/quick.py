"""A measurement of some ten seconds on an endpoint in use: it adds items with its own key prefix and deletes them.

Gets only and a mix with sets, one command at a time and 16 in one write. Nothing else is written, and no setting
is changed.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kvref_bench import experiment, peers, summary
from kvref_bench.load import engine
from kvref_bench.load.work import Clock, Keys, Values, Work
from kvref_bench.order import Turn
from kvref_bench.peers import PeerSpec, wire
from kvref_bench.runs import gates
from kvref_bench.runs.records import percentile
from kvref_bench.scenario.records import Series
from kvref_bench.watch import Interrupts, Watch
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from kvref_bench.display import Screen
    from kvref_bench.runs.records import Point

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

Outcome = dict[str, Any]


def measure(address: str, display: Screen, sessions: int = SESSIONS, processes: int | None = None) -> Outcome:
    """Measure an endpoint of the memcached text protocol, and delete the items that were added for it.

    Args:
        address: HOST:PORT or unix:PATH.
        display: shows the progress.
        sessions: connections, 1 to KEYS.
        processes: load workers; None: half of the processors, at most 4.

    Returns:
        The endpoint, its kind and version, and `points`: all, or those until the user pressed Ctrl-C (`stopped`), with
        latencies in milliseconds, each from the write to the last of its replies; `notes`: of evictions.

    Raises:
        BenchError: the endpoint is not reached, or refuses the items.
    """
    workers = processes or min(4, max(1, (os.cpu_count() or 1) // 2))
    # No table is made and nothing is flushed: `peers` must not refuse an endpoint that holds items.
    with peers.open(PeerSpec(endpoint=address, allow_destructive=True), display) as peer:
        known, points, notes, stopped = peer.peer, list[dict[str, Any]](), list[str](), False
        with engine.local(min(workers, sessions)) as place, _items(address) as file, Interrupts() as interrupts:
            keys, values = Keys(KEYS, distribution="file", file=str(file)), Values((VALUE_BYTES, VALUE_BYTES))
            number = len(MIXES) * len(DEPTHS)
            display.begin(number, number * (CLOCK.warmup + CLOCK.measure))
            evicted = _evictions(address)
            try:
                for mix, depth in product(MIXES, DEPTHS):
                    work = Work(keys, values, MIXES[mix], sessions=sessions, depth=depth, pool=_POOL)
                    turn = Turn(Series(f"{mix}, depth {depth}", "memcached", work), known.name, {}, sessions, 0)
                    display.point(turn)
                    watch = Watch(interrupts)
                    with interrupts.deferred():
                        point = experiment.measured(turn, peer, work, CLOCK, place, watch, expected_hits=1.0)
                    assert point is not None, "the user ended it, which is raised"
                    points.append(_described(mix, point))
                    display.measured(point, points[-1]["reasons"])
            except KeyboardInterrupt:
                stopped = True
            if (more := _evictions(address) - evicted) > 0:
                notes.append(f"the endpoint evicted {more} items during the measurement: its memory is full")
    return {
        "endpoint": address, "kind": known.kind, "version": known.version, "sessions": sessions, "keys": KEYS,
        "value_bytes": VALUE_BYTES, "stopped": stopped, "points": points, "notes": notes,
    }  # fmt: skip


def table(outcome: Outcome) -> Table:
    """Return the outcome for a terminal."""
    title = f"{outcome['endpoint']}: {outcome['version']}, {outcome['sessions']} connections, {VALUE_BYTES} byte values"
    lines = []
    for each in outcome["points"]:
        took = (None if each is None else each * 1e6 for each in each["latency_ms"].values())
        figures = [f"{each['operations_per_second']:,.0f}", *summary.latencies(took)]
        words = [each["commands"], str(each["depth"])]
        lines.append((words, figures, "yes" if each["valid"] else "", each["reasons"]))
    return summary.shown(title, ("commands",), ("depth", "op/s", *(f"{name}, ms" for name in PERCENTILES)), lines)


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


def _described(mix: str, point: Point) -> dict[str, Any]:
    merged, reasons = point.merged, gates.judge(point)
    bins = merged.bins("service")
    took = {name: percentile(bins, share) for name, share in PERCENTILES.items()}
    return {
        "commands": mix,
        "depth": point.work.depth,
        "operations_per_second": round(merged.per_second, 1),
        "latency_ms": {name: None if each is None else round(each / 1e6, 4) for name, each in took.items()},
        "valid": not reasons,
        "reasons": reasons,
    }


def _evictions(address: str) -> int:
    count = wire.stats(address).get("evictions", "0")
    return int(count) if count.isdigit() else 0
