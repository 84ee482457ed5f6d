"""All points of a scenario on one or several servers, in their order, one record each, from a command line to a folder.

outcome = measure(request, display)
outcome.folder, outcome.stopped

`order.arrange` reports errors that are known before the measurement. A setting that a server rejects later is noted
with its reason and omitted; if a server ends, the run ends and keeps its points.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kvref.errors import cause_of
from kvref_bench import lag, peers
from kvref_bench.ceiling import Ceilings
from kvref_bench.errors import BenchError
from kvref_bench.load import coordinator, engine
from kvref_bench.load.work import Clock
from kvref_bench.order import arrange, estimate, left_out
from kvref_bench.runs import document
from kvref_bench.runs.folder import RunWriter
from kvref_bench.runs.records import Point, ServerSample
from kvref_bench.watch import Interrupts, Watch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kvref_bench.display import Screen
    from kvref_bench.load.engine import Engine
    from kvref_bench.load.records import WorkerResult
    from kvref_bench.load.work import Work
    from kvref_bench.order import Round, Settings, Turn
    from kvref_bench.peers import OpenPeer, PeerSpec, Sampling
    from kvref_bench.runs.records import Peer
    from kvref_bench.scenario import Scenario

STOPPED: Final = "stopped by the user"
# So far is one repetition's seed from the next's: workers and sessions have their own in between.
_SEEDS: Final = 100_000
_INTERVAL: Final = "innodb_api_bk_commit_interval"
_INTERVAL_SECONDS: Final = 5  # the plugin's default
_GETS: Final = {"get", "gets"}


@dataclass(frozen=True, slots=True)
class Workers:
    """Where load workers run.

    dask: address of a scheduler, all of whose workers are used; None: on this machine, as many as the scenario says.
    control_host: of this machine, as workers of a cluster reach it; None: found out.
    """

    dask: str | None = None
    control_host: str | None = None

    def open(self, processes: int) -> AbstractContextManager[Engine]:
        """Start the workers; processes: as many as the scenario says."""
        if self.dask is not None:
            return engine.cluster(self.dask, self.control_host)
        return engine.local(processes)


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


def measure(request: Request, display: Screen) -> Outcome:
    """Open engine and servers, measure all points, close everything.

    Raises:
        BenchError, KeyboardInterrupt: before there was a point to keep.
    """
    with ExitStack() as stack:
        place = stack.enter_context(request.workers.open(request.scenario.processes))
        opened: dict[str, OpenPeer] = {}
        for spec in request.specs:
            peer = stack.enter_context(peers.open(spec, display))
            name = peer.peer.name
            if name in opened:
                raise BenchError(f"two servers are named {name!r}: give each its own name, NAME=...")
            opened[name] = peer
        return Outcome(request.folder, Experiment(request, opened, place, display).run())


def measured(
    turn: Turn, peer: OpenPeer, work: Work, clock: Clock, place: Engine, watch: Watch, **facts: Any
) -> Point | None:
    """Measure one point by load workers; None if the user ended it before it began. facts: further ones of it."""
    address = peer.sql_dsn if work.protocol == "mysql" else peer.address
    assert address is not None, "order.arrange leaves out what has none"
    load, began, sampling = os.getloadavg()[0], time.time_ns(), peer.sample()
    with watch.sampling(sampling, clock.warmup):
        results = coordinator.measure(address, work, clock, place, watch)
    return _point(turn, work, results, began, load, sampling, rate=clock.rate, **facts) if results else None


def _point(
    turn: Turn, work: Work, results: list[WorkerResult], began: int, load: float, sampling: Sampling, **facts: Any
) -> Point:
    return Point(
        series=turn.series.name, server=turn.server, work=work, repetition=turn.repetition, began=began,
        ended=time.time_ns(),
        results=results, sample=sampling.sample or ServerSample(None), settings=turn.settings, load_average=load,
        resources=sampling.resources, **facts,
    )  # fmt: skip


class Experiment:
    """One run.

    request: what a user wants measured. opened: the servers by name. place: where the workers are.
    display: shows what happens.
    """

    def __init__(self, request: Request, opened: dict[str, OpenPeer], place: Engine, display: Screen) -> None:
        self._request = request
        self._scenario = request.scenario
        self._peers = opened
        self._place = place
        self._display = display
        self._interrupts = Interrupts()
        self._watch = Watch(self._interrupts)
        self._ceilings = Ceilings(place, self._watch, request.scenario.measure)
        self._left: dict[str, None] = {}
        self._settings: dict[str, Settings] = {}
        self._clean: set[str] = set()
        self._closed: defaultdict[tuple[object, ...], list[float]] = defaultdict(list)
        self._run: RunWriter | None = None
        self._measured = 0

    def run(self) -> str | None:
        """Measure all points and close the run's folder.

        Returns:
            Why it ended before its last point, in words: `STOPPED` after Ctrl-C; None when it did not.

        Raises:
            BenchError, KeyboardInterrupt: before there was a point to keep.
        """
        with self._interrupts, ExitStack() as stack:
            try:
                self._measure_all(stack)
                stopped = None
            except (KeyboardInterrupt, BenchError, OSError, BrokenExecutor) as error:
                if self._run is None or not self._measured:
                    if self._run is not None:
                        self._run.discard()
                    raise
                stopped = _why(error)
            assert self._run is not None, "_measure_all has measured"
            calibration = {"null_responder": self._ceilings.facts}
            self._run.close(stopped, notes=list(self._left), calibration=calibration, peers=self._peers_now())
        return stopped

    def _peers_now(self) -> list[Peer] | None:
        try:
            return [each.peer for each in self._peers.values()]
        except (BenchError, OSError):  # one is gone; what was known at the beginning stays
            return None

    def _measure_all(self, stack: ExitStack) -> None:
        settable = frozenset(name for name, each in self._peers.items() if each.settable)
        order = arrange(self._scenario, [each.peer for each in self._peers.values()], settable)
        for left in order.left:
            self._leave(left)
        if not order.points:
            raise BenchError("nothing to measure: " + "; ".join(self._left))
        self._display.begin(order.points, estimate(self._scenario, order))
        self._measure_ceilings([turn for each in order.rounds for turn in each.turns])
        for each in order.rounds:
            ready = self._get_ready(each)
            if self._run is None and ready:
                known = [peer.peer for peer in self._peers.values()]
                header = document.begin(
                    self._scenario, known, list(self._request.argv), self._request.seed, network=self._place.facts,
                    run_id=self._request.folder.name,
                )  # fmt: skip
                self._run = stack.enter_context(RunWriter(self._request.folder, header))
            for turn in each.turns:
                self._display.point(turn)
                if turn.server in ready and self._run is not None:
                    self._take_turn(turn, self._run)
        if not self._measured:
            raise BenchError("nothing was measured: " + "; ".join(self._left))

    def _measure_ceilings(self, turns: Sequence[Turn]) -> None:
        if self._scenario.kind != "load":
            return
        self._display.step("the generator's own ceiling, against a null responder")
        with self._interrupts.deferred():
            # A client library cannot use the responder's protocol.
            self._ceilings.measure(self._work(turn) for turn in turns if turn.series.work.driver == "wire")

    def _get_ready(self, each: Round) -> set[str]:
        ready = set()
        for name in each.servers:
            peer = self._peers[name]
            try:
                if self._settings.get(name) != each.settings:
                    peer.start(each.settings)
                    self._prepare(name)
                    self._settings[name] = each.settings
                ready.add(name)
            except BenchError as error:
                self._settings.pop(name, None)
                _must_answer(peer, error)
                for series in dict.fromkeys(turn.series.name for turn in each.turns if turn.server == name):
                    self._leave(left_out(series, name, each.settings, str(error)))
        return ready

    def _prepare(self, name: str) -> None:
        self._peers[name].prepare(self._scenario.table)
        self._clean.add(name)

    def _take_turn(self, turn: Turn, run: RunWriter) -> None:
        peer, rate = self._peers[turn.server], None
        line = (turn.series.name, turn.server, *turn.settings.items(), turn.sessions)
        if turn.share is not None:
            if not self._closed[line]:
                why = f"open loop of {turn.sessions} sessions: the closed one has no point"
                self._leave(left_out(turn.series.name, turn.server, turn.settings, why))
                return
            rate = turn.share * median(self._closed[line])
        if self._scenario.fresh and turn.server not in self._clean:
            self._prepare(turn.server)
        if self._measured:
            time.sleep(self._scenario.cooldown)
        self._clean.discard(turn.server)
        try:
            # Trials take minutes, and an interrupted trial has no result: they end at once.
            with self._interrupts.deferred() if self._scenario.kind == "load" else nullcontext():
                point = self._measure(turn, peer, rate)
                if point is None:
                    return
                self._display.measured(point, run.add(point))
                self._measured += 1
        except (BenchError, OSError) as error:
            _must_answer(peer, error)
            why = f"{turn.sessions} sessions: {cause_of(error)}"
            self._leave(left_out(turn.series.name, turn.server, turn.settings, why))
            return
        if rate is None:
            self._closed[line].append(point.merged.per_second)
        gone = next((each.stopped for each in point.results if each.stopped), None)
        if gone is not None:
            _must_answer(peer, BenchError(f"{turn.server}: {gone}"))

    def _measure(self, turn: Turn, peer: OpenPeer, rate: float | None) -> Point | None:
        scenario, work = self._scenario, self._work(turn)
        hits = scenario.hits if _GETS & set(work.verbs) else None
        facts = {"expected_hits": hits, "ceiling": self._ceilings.of(work), "kind": scenario.kind}
        if scenario.kind != "lag":
            clock = Clock(scenario.warmup, scenario.measure, rate)
            return measured(turn, peer, work, clock, self._place, self._watch, **facts)
        assert peer.address is not None, "order.arrange leaves out what has none"
        assert peer.tables_dsn is not None, "order.arrange leaves out what has none"
        load, began = os.getloadavg()[0], time.time_ns()
        with peer.sample() as sampling:
            interval = turn.settings.get(_INTERVAL, _INTERVAL_SECONDS)
            results = lag.measure(
                peer.address, peer.tables_dsn, scenario.table, trials=scenario.trials, interval=interval, seed=work.seed
            )
        return _point(turn, work, results, began, load, sampling, **facts)

    def _work(self, turn: Turn) -> Work:
        work = replace(turn.series.work, sessions=turn.sessions, seed=self._request.seed + turn.repetition * _SEEDS)
        # memcached has no mappings; the keys are the same.
        return work if self._peers[turn.server].has_tables else replace(work, route="none", mapping="")

    def _leave(self, text: str) -> None:
        if text not in self._left:
            self._left[text] = None
            self._display.note(text)


def _why(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return STOPPED
    return str(error) if isinstance(error, BenchError) else f"{type(error).__name__}: {error}"


def _must_answer(peer: OpenPeer, error: Exception) -> None:
    """Raise the error unless the server still returns its counters."""
    try:
        with peer.sample():
            pass
    except (BenchError, OSError):
        raise error from None
