"""Points whose latencies are drawn at random, of servers that were not there; for what is done with points later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kvref_bench.load.histogram import index
from kvref_bench.load.records import Cell, Kind, Usage, WorkerResult
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.runs import document
from kvref_bench.runs.folder import RunWriter
from kvref_bench.runs.records import Peer, Point, Resource, ServerSample
from kvref_bench.scenario.records import Scenario, Series, Table

GET_HIT = Kind("get", "hit")
BEGAN = 1_700_000_000_000_000_000


def histogram(rng: np.random.Generator, count: int, median: float = 100e3) -> dict[int, int]:
    """Draw latencies, lognormal around a median in ns."""
    bins: dict[int, int] = {}
    for each in (median * rng.lognormal(0.0, 0.3, count)).astype(int).tolist():
        bins[index(each)] = bins.get(index(each), 0) + 1
    return bins


def result(
    seed: int = 0, seconds: int = 4, each: int = 500, kind: Kind = GET_HIT, median: float = 100e3, **facts: Any
) -> WorkerResult:
    """Make what a worker gives back: `each` operations in each second."""
    rng = np.random.default_rng(seed)
    cells = {Cell(second, kind, "service"): histogram(rng, each, median) for second in range(seconds)}
    usage = Usage(user=0.1 * seconds, system=0.2 * seconds, rss=30_000_000)
    kept = {"worker": 0, "host": "here", "pid": 1, "began": BEGAN, "seconds": float(seconds), "usage": usage}
    return WorkerResult(**{**kept, "histograms": cells, **facts})


def point(*results: WorkerResult, **facts: Any) -> Point:
    """Make a point of a healthy server; sessions: of its work."""
    made = list(results) or [result()]
    work = Work(Keys(1000), Values(), {"get": 1.0}, sessions=facts.pop("sessions", 8))
    sample = ServerSample(Usage(user=0.4, system=0.4, rss=10_000_000), {})
    plain: dict[str, Any] = {
        "series": "get", "server": "a", "work": work,
        "repetition": 0, "began": BEGAN, "ended": BEGAN + 4_000_000_000, "sample": sample, "expected_hits": 1.0,
        "settings": {"r_batch": 1},
    }  # fmt: skip
    return Point(**{**plain, "results": made, **facts})


def scenario(**facts: Any) -> Scenario:
    """Make a scenario with one series, `get`."""
    keys, values = Keys(1000), Values()
    work = Work(keys, values, {"get": 1.0})
    table = Table("t", "m", keys, values)
    series = (Series("get", "memcached", work),)
    plain = {"name": "made", "version": 1, "title": "Made", "question": "Is it?", "source": "none", "sha256": "0" * 64}
    return Scenario(**{**plain, "table": table, "series": series, "sessions": (8,), **facts})


def header(*servers: str, **facts: Any) -> document.Document:
    """Make run.json of a run that begins."""
    peers = [Peer(name, "memcached", "1.6.18", address="127.0.0.1:11211") for name in servers or ("a",)]
    return document.begin(scenario(), peers, ["kvref", "bench", "run", "made"], seed=1, **facts)


def run(folder: Path, *points: Point, **facts: Any) -> Path:
    """Write a finished run."""
    servers = dict.fromkeys(each.server for each in points)
    with RunWriter(folder, header(*servers, **facts)) as writer:
        for each in points:
            writer.add(each)
    return folder


def resource(role: str, second: float, cpu: float) -> Resource:
    """Make a reading."""
    return Resource(BEGAN + int(second * 1e9), role, 1, cpu, 0.0, 1000)
