"""From a command line to a run's folder: engine, servers, experiment.

outcome = measure(request, display)
outcome.folder, outcome.stopped
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kvref_bench import engines, peers
from kvref_bench.errors import BenchError
from kvref_bench.experiment import Asked, Experiment
from kvref_bench.runs import document
from kvref_bench.runs.folder import RunWriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kvref_bench.display import Display
    from kvref_bench.engines import Place
    from kvref_bench.peers import OpenPeer, PeerSpec
    from kvref_bench.runs.records import Peer
    from kvref_bench.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Workers:
    """Where load workers run.

    count: at most so many; None: as many as the scenario says, of a cluster all.
    pin: each to a CPU. dask: address of a scheduler.
    control_host: of this machine, as workers of a cluster reach it; None: found out.
    """

    count: int | None = None
    pin: bool = False
    dask: str | None = None
    control_host: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A requested run.

    folder: folder of the run, named by `document.new_id`. seed: seed of every draw. argv: the command line.
    """

    scenario: Scenario
    specs: Sequence[PeerSpec]
    workers: Workers
    folder: Path
    seed: int
    argv: Sequence[str]


class Outcome(NamedTuple):
    """Outcome of a run; stopped: why it ended before its last point, None if it was complete."""

    folder: Path
    stopped: str | None


def measure(request: Request, display: Display) -> Outcome:
    """Open engine and servers, measure all points, close everything.

    Raises:
        BenchError, KeyboardInterrupt: before there was a point to keep.
    """
    with ExitStack() as stack:
        place = stack.enter_context(_place(request))
        opened = _open(request.specs, stack, display)

        def open_run(known: list[Peer]) -> RunWriter:
            header = document.begin(
                request.scenario,
                known,
                list(request.argv),
                request.seed,
                network=place.facts,
                run_id=request.folder.name,
            )
            return RunWriter(request.folder, header)

        asked = Asked(request.scenario, opened, place, request.seed)
        return Outcome(request.folder, Experiment(asked, open_run, display).run())


def _place(request: Request) -> AbstractContextManager[Place]:
    workers = request.workers
    if workers.dask is not None:
        return engines.cluster(workers.dask, workers.count, workers.control_host)
    count = workers.count or request.scenario.processes
    return engines.local(count, pin=workers.pin)


def _open(specs: Sequence[PeerSpec], stack: ExitStack, display: Display) -> dict[str, OpenPeer]:
    opened: dict[str, OpenPeer] = {}
    for spec in specs:
        peer = stack.enter_context(peers.open(spec, display))
        name = peer.peer.name
        if name in opened:
            raise BenchError(f"two servers are named {name!r}: give each a name of its own, NAME=...")
        opened[name] = peer
    return opened
