"""All points of a scenario on one or several servers, in their order, one record each.

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
from typing import TYPE_CHECKING, Final

from kvref.errors import cause_of
from kvref_bench import lag
from kvref_bench.ceiling import Ceilings, a_second
from kvref_bench.errors import BenchError
from kvref_bench.interrupt import Interrupts
from kvref_bench.load import coordinator
from kvref_bench.load.work import Clock
from kvref_bench.order import Left, arrange, estimate
from kvref_bench.runs.records import Point, ServerSample
from kvref_bench.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvref_bench.display import Display
    from kvref_bench.engines import Place
    from kvref_bench.load.result import WorkerResult
    from kvref_bench.load.work import Work
    from kvref_bench.order import Round, Settings, Turn
    from kvref_bench.peers.opened import OpenPeer
    from kvref_bench.runs.folder import RunWriter
    from kvref_bench.runs.records import Peer
    from kvref_bench.scenario.records import Scenario

STOPPED: Final = "stopped by the user"
# So far is one repetition's seed from the next's: workers and sessions have their own in between.
_SEEDS: Final = 100_000
_INTERVAL: Final = "innodb_api_bk_commit_interval"
_INTERVAL_SECONDS: Final = 5  # the plugin's default
_GETS: Final = {"get", "gets"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user wants measured.

    peers: by name.
    place: where the workers are.
    seed: of every draw.
    """

    scenario: Scenario
    peers: Mapping[str, OpenPeer]
    place: Place
    seed: int = 0


class Experiment:
    """One run.

    open_run: makes the run's folder, when the first servers are ready. display: shows what happens.
    """

    def __init__(self, asked: Asked, open_run: Callable[[list[Peer]], RunWriter], display: Display) -> None:
        self._asked = asked
        self._scenario = asked.scenario
        self._open_run = open_run
        self._display = display
        self._interrupts = Interrupts()
        self._watch = Watch(self._interrupts, display)
        self._ceilings = Ceilings(asked.place.engine, self._watch, asked.scenario.measure)
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
            return [each.peer for each in self._asked.peers.values()]
        except (BenchError, OSError):  # one is gone; what was known at the beginning stays
            return None

    def _measure_all(self, stack: ExitStack) -> None:
        peers = self._asked.peers
        settable = frozenset(name for name, each in peers.items() if each.settable)
        order = arrange(self._scenario, [each.peer for each in peers.values()], settable)
        for left in order.left:
            self._leave(left)
        if not order.points:
            raise BenchError("nothing to measure: " + "; ".join(self._left))
        self._display.begin(order.points, estimate(self._scenario, order))
        self._measure_ceilings([turn for each in order.rounds for turn in each.turns])
        for each in order.rounds:
            ready = self._get_ready(each)
            if self._run is None and ready:
                self._run = stack.enter_context(self._open_run([peer.peer for peer in peers.values()]))
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
        with self._interrupts.kept():
            # A client library cannot use the responder's protocol.
            self._ceilings.measure(self._work(turn) for turn in turns if turn.series.work.driver == "wire")

    def _get_ready(self, each: Round) -> set[str]:
        ready = set()
        for name in each.servers:
            peer = self._asked.peers[name]
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
                    self._leave(Left(series, name, each.settings, str(error)))
        return ready

    def _prepare(self, name: str) -> None:
        self._asked.peers[name].prepare(self._scenario.table)
        self._clean.add(name)

    def _take_turn(self, turn: Turn, run: RunWriter) -> None:
        peer, rate = self._asked.peers[turn.server], None
        line = (turn.series.name, turn.server, *turn.settings.items(), turn.sessions)
        if turn.share is not None:
            if not self._closed[line]:
                why = f"open loop of {turn.sessions} sessions: the closed one has no point"
                self._leave(Left(turn.series.name, turn.server, turn.settings, why))
                return
            rate = turn.share * median(self._closed[line])
        if self._scenario.fresh and turn.server not in self._clean:
            self._prepare(turn.server)
        if self._measured:
            time.sleep(self._scenario.cooldown)
        self._clean.discard(turn.server)
        try:
            # Trials take minutes, and an interrupted trial has no result: they end at once.
            with self._interrupts.kept() if self._scenario.kind == "load" else nullcontext():
                point = self._measure(turn, peer, rate)
                if point is None:
                    return
                self._display.measured(point, run.add(point))
                self._measured += 1
        except (BenchError, OSError) as error:
            _must_answer(peer, error)
            self._leave(
                Left(turn.series.name, turn.server, turn.settings, f"{turn.sessions} sessions: {cause_of(error)}")
            )
            return
        if rate is None:
            self._closed[line].append(a_second(point.results))
        gone = next((each.stopped for each in point.results if each.stopped), None)
        if gone is not None:
            _must_answer(peer, BenchError(f"{turn.server}: {gone}"))

    def _measure(self, turn: Turn, peer: OpenPeer, rate: float | None) -> Point | None:
        scenario, engine, work = self._scenario, self._asked.place.engine, self._work(turn)
        load, began = os.getloadavg()[0], time.time_ns()
        sampling = peer.sample()
        results: list[WorkerResult]
        if scenario.kind == "lag":
            with sampling:
                results = self._measure_lag(turn, peer, work)
        else:
            clock = Clock(scenario.warmup, scenario.measure, rate)
            address = peer.sql_dsn if work.protocol == "mysql" else peer.address
            assert address is not None, "order.arrange leaves out what has none"
            with self._watch.sampling(sampling, clock.warmup):
                results = coordinator.measure(address, work, clock, engine, self._watch)
        if not results:
            return None
        return Point(
            series=turn.series.name, server=turn.server, sessions=turn.sessions, processes=len(results),
            depth=work.depth, multiget=work.multiget, repetition=turn.repetition, began=began, ended=time.time_ns(),
            results=results, sample=sampling.sample or ServerSample(None), settings=turn.settings, rate=rate,
            expected_hits=scenario.hits if _GETS & set(work.verbs) else None, ceiling=self._ceilings.of(work),
            load_average=load, resources=sampling.resources,
        )  # fmt: skip

    def _measure_lag(self, turn: Turn, peer: OpenPeer, work: Work) -> list[WorkerResult]:
        dsn = peer.tables_dsn
        assert peer.address is not None, "order.arrange leaves out what has none"
        assert dsn is not None, "order.arrange leaves out what has none"
        return lag.measure(
            peer.address, dsn, self._scenario.table, trials=self._scenario.trials,
            interval=turn.settings.get(_INTERVAL, _INTERVAL_SECONDS), seed=work.seed,
        )  # fmt: skip

    def _work(self, turn: Turn) -> Work:
        work = replace(turn.series.work, sessions=turn.sessions, seed=self._asked.seed + turn.repetition * _SEEDS)
        # memcached has no mappings; the keys are the same.
        return work if self._asked.peers[turn.server].has_tables else replace(work, route="none", mapping="")

    def _leave(self, left: Left) -> None:
        text = f"left out: {left.series} on {left.server}" + "".join(f" {k}={v}" for k, v in left.settings.items())
        text += f": {left.reason}"
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
