"""Two Dask workers with two addresses measure one server; what they saw is merged exactly."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from helpers.live import target_or_skip
from helpers.waiting import until
from rich.console import Console

from kvref_bench import experiment, scenario
from kvref_bench.display import Screen
from kvref_bench.errors import BenchError
from kvref_bench.experiment import Request, Workers
from kvref_bench.load import engine as engines
from kvref_bench.load import histogram
from kvref_bench.peers import PeerSpec
from kvref_bench.runs import folder
from kvref_bench.runs.folder import RunWriter
from kvref_testbed.targets.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvref_bench.load.records import WorkerResult
    from kvref_bench.runs.records import Point

pytestmark = [pytest.mark.live, pytest.mark.nightly]


HOST = "127.0.0.1"
WORKERS = ("127.0.0.2", "127.0.0.3")  # Linux has all of 127.0.0.0/8


@contextmanager
def cluster() -> Iterator[str]:
    """Start a scheduler, and a worker at each address; give the scheduler's address."""
    address = f"tcp://{HOST}:{free_port()}"
    commands = [[*"scheduler --no-dashboard --host".split(), HOST, "--port", address.rpartition(":")[2]]]
    worker = "worker --no-nanny --nthreads 1 --no-dashboard --host".split()
    commands += [[*worker, each, address] for each in WORKERS]
    with ExitStack() as stack:
        for kind, *words in commands:
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            stack.callback(process.terminate)
        until(lambda: workers_of(address) >= len(WORKERS))
        yield address


def workers_of(scheduler: str) -> int:
    try:
        with engines.cluster(scheduler) as place:
            return place.workers
    except BenchError:
        return 0


def test_one_run_on_two_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Point] = []
    add = RunWriter.add
    monkeypatch.setattr(RunWriter, "add", lambda self, point: measured.append(point) or add(self, point))
    chosen = scenario.load("random-user-capacity", "small", ["sessions=4", "repetitions=1", "measure=0.5"])
    with target_or_skip("memcached") as target, cluster() as scheduler:
        spec = PeerSpec(target.memcached(), name="native")
        request = Request(chosen, [spec], Workers(dask=scheduler), tmp_path / "run", 0, ["bench"])
        outcome = experiment.measure(request, Screen(Console(quiet=True)))
    assert outcome.stopped is None
    run = folder.read(outcome.folder)
    network = run.info["network"]
    addresses = {each.rpartition(":")[0] for each in network["addresses"]}
    assert addresses == {f"tcp://{each}" for each in WORKERS}
    assert len(network["addresses"]) == len(WORKERS)
    assert network["control_host"] == HOST
    assert all(each["operations_per_second"] > 0 for each in run.info["calibration"]["null_responder"])
    assert len(run.points) == len(measured)
    for row, point in zip(run.points.to_dict("records"), measured, strict=True):
        one, other = point.results
        assert (one.worker, other.worker) == (0, 1)
        assert one.pid != other.pid
        counts = {
            each: counted(one).get(each, 0) + counted(other).get(each, 0) for each in {*counted(one), *counted(other)}
        }
        assert run.bins(row["point_id"]) == counts
        assert row["ops"] == sum(counts.values())
        assert row["processes"] == 2
        assert row["p99"] == histogram.quantile(counts, 0.99)


def counted(result: WorkerResult) -> dict[int, int]:
    bins: dict[int, int] = {}
    for cell, counts in result.histograms.items():
        assert cell.timing == "service"
        for each, count in counts.items():
            bins[each] = bins.get(each, 0) + count
    return bins


def test_a_scheduler_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SCHEDULER_SECONDS", 0.5)
    with pytest.raises(BenchError, match="no Dask scheduler answers at tcp://"), engines.cluster("tcp://127.0.0.1:1"):
        pass
