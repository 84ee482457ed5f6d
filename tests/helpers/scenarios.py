"""Runs of several servers and series with rates that are chosen, written by the writer; for what is read from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from helpers import points as made
from kvref_bench.load.histogram import index
from kvref_bench.load.records import Cell, Kind, Usage, WorkerResult
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.runs import document
from kvref_bench.runs.folder import RunWriter
from kvref_bench.runs.records import Peer, Point, ServerSample
from kvref_bench.scenario.records import Series

PLUGIN = Peer("new", "plugin", "8.0.33", address="127.0.0.1:11211", sql="mysql://root@127.0.0.1/")
OLD = Peer("old", "plugin", "5.6.14", address="127.0.0.1:11212", sql="mysql://root@127.0.0.1/")
MEMCACHED = Peer("cache", "memcached", "1.6.18", address="127.0.0.1:11213")
KVREF = Peer("kvref-sqlite", "kvref", "0.1.0", address="127.0.0.1:11214")

SPREAD = (1.0, 0.98, 1.02, 0.99, 1.01)  # of the repetitions around what is given


def series(name: str, over: str = "memcached", verb: str = "get", **facts: Any) -> Series:
    """Make a line of a scenario."""
    work = Work(Keys(1000), Values(), {verb: 1.0})
    return Series(name, over, replace(work, **facts.pop("work", {})), **facts)  # type: ignore[arg-type]


def measured(line: str, server: Peer, sessions: int, rate: float, **facts: Any) -> list[Point]:
    """Make the repetitions of a point with about so many operations a second; client: share of a core it used."""
    repetitions, client = facts.pop("repetitions", 5), facts.pop("client", 0.3)
    verb, cpu = facts.pop("verb", "get"), facts.pop("cpu", 0.2)
    usage = Usage(user=client * 3, system=0.0, rss=1)
    kind = Kind(verb, "hit" if verb == "get" else "stored")
    bins = index(facts.pop("median", 100_000))
    found = []
    for each in range(repetitions):
        cells = {Cell(second, kind, "service"): {bins: round(rate * SPREAD[each % 5])} for second in range(3)}
        found.append(
            made.point(
                WorkerResult(0, "here", 1, made.BEGAN, 3.0, cells, usage),
                series=line, server=server.name, work=Work(Keys(1000), Values(), {verb: 1.0}, sessions=sessions), repetition=each,
                settings=facts.get("settings", {}), expected_hits=1.0 if verb == "get" else None,
                sample=ServerSample(Usage(user=cpu * 3, system=0.0, rss=1), {}),
            )
        )  # fmt: skip
    return found


def write(
    folder: Path, scenario: str, lines: list[Series], peers: list[Peer], points: list[Point], **facts: Any
) -> Path:
    """Write a finished run."""
    network = facts.pop("network", {"kind": "local"})
    spec = made.scenario(name=scenario, series=tuple(lines), title="Made by hand", **facts)
    header = document.begin(spec, peers, ["kvref"], seed=1, network=network, run_id=folder.name)
    header["machine"] = {**header["machine"], "cpu_model": "a CPU", "cores": 4}
    with RunWriter(folder, header) as writer:
        for each in points:
            writer.add(each)
    return folder
