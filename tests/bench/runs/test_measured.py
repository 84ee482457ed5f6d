"""A real measurement: what workers counted is what the server counted, what the folder says."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from helpers import points as made
from helpers.live import target_or_skip

from kvref_bench.load import coordinator, engine
from kvref_bench.load.work import Clock, Keys, Values, Work
from kvref_bench.runs import document, folder
from kvref_bench.runs.records import Merged, Peer, Point, ServerSample
from kvref_bench.scenario.records import Series
from kvref_bench.watch import Watch

pytestmark = [pytest.mark.live, pytest.mark.nightly]

WORK = Work(Keys(500), Values(), {"set": 1.0}, sessions=4, operations=1000)


def stats(address: str) -> dict[str, int]:
    """Return the counters of a server."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as asking, asking.makefile("rb") as reply:
        asking.sendall(b"stats\r\n")
        rows = [line.decode().split() for line in iter(reply.readline, b"END\r\n")]
    return {name: int(value) for _, name, value in rows if name in {"cmd_set", "cmd_get"}}


def measured(address: str, local: engine.Engine, repetition: int) -> Point:
    """Measure 4,000 sets."""
    before, began = stats(address), time.time_ns()
    results = coordinator.measure(address, WORK, Clock(0.0, 20.0), local, Watch())
    after = stats(address)
    sample = ServerSample(None, {name: after[name] - before[name] for name in after})
    facts = {"work": WORK, "repetition": repetition, "began": began, "ended": time.time_ns(), "expected_hits": None}
    return made.point(*results, series="set", sample=sample, settings={}, **facts)


def test_a_real_run_adds_up(tmp_path: Path) -> None:
    scenario = made.scenario(series=(Series("set", "memcached", WORK),))
    with target_or_skip("memcached") as target, engine.local(2) as local:
        address = target.memcached()
        peers = [Peer("a", "memcached", "1.6", address=address)]
        header = document.begin(scenario, peers, ["kvref", "bench", "run"], seed=1)
        with folder.RunWriter(tmp_path / "run", header) as writer:
            points = [measured(address, local, each) for each in range(3)]
            reply = [writer.add(point) for point in points]
    # How fast it went is the machine's affair.
    wrong = ("counts disagree", "unexpected replies", "stopped early")
    assert not [reason for reasons in reply for reason in reasons if reason.startswith(wrong)]
    run = folder.read(tmp_path / "run")
    assert run.points["ops"].tolist() == [4000] * 3
    assert {json.loads(each)["cmd_set"] for each in run.points["counters"]} == {4000}
    for number, point in enumerate(points):
        assert len(point.results) == 2
        assert run.bins(number) == Merged.of(point.results).bins("service")
