"""A point on the null responder: what workers give back, and how a point ends before its time."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.load import coordinator, engine, null
from kvref_bench.load.work import Clock, Keys, Values, Work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.engine import Engine
    from kvref_bench.load.records import Progress, Timing, WorkerResult

WORK = Work(Keys(1000), Values(), {"get": 1.0}, protocol="null", sessions=4)


class Observer:
    """Looks on, and stops after so many seconds of progress."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.seen: list[Progress] = []
        self._stop_after = stop_after

    def going(self, seconds: float) -> None:
        self.started = seconds

    def progress(self, what: Progress) -> None:
        self.seen.append(what)

    def stopping(self) -> bool:
        return self._stop_after is not None and len(self.seen) >= self._stop_after


@pytest.fixture(scope="module")
def two() -> Iterator[Engine]:
    with engine.local(2) as workers:
        yield workers


def counted(result: WorkerResult, timing: Timing = "service") -> int:
    return sum(sum(counts.values()) for cell, counts in result.histograms.items() if cell.timing == timing)


@pytest.mark.nightly
def test_both_workers_measure_their_share_of_the_sessions(two: Engine) -> None:
    observer = Observer()
    with null.responder(WORK) as address:
        results = coordinator.measure(address, WORK, Clock(0.1, 1.1), two, observer)
    assert [each.worker for each in results] == [0, 1]
    assert len({each.pid for each in results}) == 2
    for each in results:
        assert counted(each) > 100
        assert each.open == 2  # each session waits for one answer when the time is over
        assert {cell.second for cell in each.histograms} == {0, 1}
        assert (each.errors, each.skipped, each.stopped) == (0, 0, None)
        assert each.seconds >= 1.1
        assert each.usage.user + each.usage.system > 0
    reported = sum(each.operations for each in observer.seen)
    assert reported == sum(map(counted, results))


def test_depth_and_multiget_count_each_operation(two: Engine) -> None:
    work = replace(WORK, depth=4, multiget=5, sessions=2)
    with null.responder(work) as address:
        results = coordinator.measure(address, work, Clock(0, 0.3), two, Observer())
    assert all(counted(each) % 20 == 0 and counted(each) for each in results)


@pytest.mark.nightly
def test_the_open_loop_sends_what_its_schedule_says(two: Engine) -> None:
    with null.responder(WORK) as address:
        results = coordinator.measure(address, WORK, Clock(0, 1, rate=1000), two, Observer())
    for each in results:
        assert 350 < counted(each) + each.skipped + each.open < 650  # a second of half of 1,000, by a Poisson process
        assert counted(each, "intended") == counted(each, "lag") == counted(each)


@pytest.mark.nightly
def test_more_is_scheduled_than_sessions_can_do_and_nothing_is_dropped_in_silence(two: Engine) -> None:
    work = replace(WORK, sessions=2)
    with null.responder(work) as address:
        results = coordinator.measure(address, work, Clock(0, 0.5, rate=2_000_000), two, Observer())
    for each in results:
        assert each.skipped > 0
        assert 490_000 < counted(each) + each.skipped + each.open < 510_000


@pytest.mark.nightly
def test_a_user_who_stops_keeps_what_was_measured(two: Engine) -> None:
    with null.responder(WORK) as address:
        results = coordinator.measure(address, WORK, Clock(0, 60), two, Observer(stop_after=1))
    for each in results:
        assert each.stopped == "stopped by the user"
        assert counted(each) > 0
        assert each.seconds < 30


def test_a_user_who_stops_before_the_start_gets_nothing(two: Engine) -> None:
    with null.responder(WORK) as address:
        assert coordinator.measure(address, WORK, Clock(0, 60), two, Observer(stop_after=0)) == []


def test_an_endpoint_that_is_not_there_is_an_error(two: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises((BenchError, OSError), match="refused"):
        coordinator.measure(f"127.0.0.1:{port}", WORK, Clock(0, 1), two, Observer())
