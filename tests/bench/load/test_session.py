"""Replies in pieces, wrong replies, and a server that hangs up."""

from __future__ import annotations

import socket
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

import pytest
import uvloop

from kvref_bench.load import histogram, session, worker
from kvref_bench.load.records import TIMINGS, Answer, Exchange, Kind, Plan, Recorder
from kvref_bench.load.work import Clock, Keys, Task, Values, Work

from .pieces import server

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from kvref_bench.load.clock import Channel
    from kvref_bench.load.records import WorkerResult

KINDS = (Kind("get", "hit"), Kind("get", "miss"), Kind("get", "error"))
HIT = b"VALUE k 0 1\r\nv\r\nEND\r\n"


class Lines:
    """Knows a hit, a miss, and no other reply."""

    def read(self, exchange: Exchange, data: bytes) -> Answer | None:
        if not data.endswith(b"\n"):
            return None
        return Answer((1,)) if data == b"END\r\n" else Answer((2,), (data,))


class Nowhere:
    """A transport whose writes are lost."""

    def write(self, data: bytes) -> None:
        """Lose it."""

    def is_closing(self) -> bool:
        """Stay open."""
        return False


class Quiet:
    """A channel without a coordinator."""

    def ready(self) -> float:
        return 0.0

    def stopped(self) -> bool:
        return False

    def progress(self, what: object) -> None:
        """Ignore the progress."""


def measured(
    script: Callable[[int, bytes], list[bytes] | None],
    operations: int | None = 20,
    rate: float | None = None,
    sessions: int = 1,
    depth: int = 1,
) -> WorkerResult:
    limit = None if operations is None else operations * depth
    work = Work(Keys(1), Values(), {"get": 1.0}, sessions=sessions, depth=depth, operations=limit)
    with server(script) as address:
        host, _, port = address.rpartition(":")
        plan = Plan(
            KINDS,
            lambda: socket.create_connection((host, int(port))),
            lambda _: (
                iter([Exchange(b"get k\r\n", HIT, (0,))] * operations)
                if operations
                else repeat(Exchange(b"get k\r\n", HIT, (0,)))
            ),
            Lines(),
        )
        task = Task(address, work, Clock(0, 2 if operations else 0.3, rate), "", "", 0, 1)
        return uvloop.run(worker.measure(task, plan, cast("Channel", Quiet())))


def counts(result: WorkerResult) -> dict[str, int]:
    found: dict[str, int] = {}
    for cell, bins in result.histograms.items():
        if cell.timing == "service":
            found[cell.kind.outcome] = found.get(cell.kind.outcome, 0) + sum(bins.values())
    return found


@pytest.mark.parametrize("rate", [None, 5000.0])
def test_a_reply_in_pieces_is_the_same_reply(rate: float | None) -> None:
    result = measured(lambda _, line: [HIT[:5], HIT[5:14], HIT[14:]], rate=rate)
    assert (counts(result), result.errors) == ({"hit": 20}, 0)


@pytest.mark.serial
@pytest.mark.parametrize("rate", [None, 500.0])
def test_the_worker_is_woken_for_the_whole_of_deep_replies(rate: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[bytes] = []
    otherwise = session.Session._otherwise
    monkeypatch.setattr(session.Session, "_otherwise", lambda self, data: pieces.append(data) or otherwise(self, data))
    result = measured(lambda _, line: [HIT[:5], HIT[5:14], HIT[14:]], rate=rate, depth=2)
    assert (counts(result), result.errors) == ({"hit": 20}, 0)
    assert len(pieces) < 10  # and 40 where each piece is read; a machine that stops for 10 ms has some


@pytest.mark.parametrize("rate", [None, 500.0])
def test_a_deep_reply_that_is_shorter_than_expected_is_read_all_the_same(rate: float | None) -> None:
    result = measured(lambda number, line: [b"END\r\n"] if number == 10 else [HIT], rate=rate, depth=2)
    assert (counts(result), result.errors) == ({"hit": 19, "miss": 1}, 0)
    [slow] = [
        bins for cell, bins in result.histograms.items() if (cell.kind.outcome, cell.timing) == ("miss", "service")
    ]
    assert histogram.quantile(slow, 1) < 200e6


@pytest.mark.parametrize("rate", [None, 5000.0])
def test_each_reply_is_verified(rate: float | None) -> None:
    wrong = HIT.replace(b"\nv", b"\nw")
    result = measured(lambda number, line: [[HIT], [b"EN", b"D\r\n"], [wrong]][number % 3], rate=rate)
    assert counts(result) == {"hit": 7, "miss": 7, "error": 6}
    assert result.errors == 6
    assert result.unexpected == [(b"get k\r\n", wrong)] * 6


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.moment = 0

    def __call__(self) -> int:
        return self.moment


def scheduled(clock: Hand, monkeypatch: pytest.MonkeyPatch, sessions: int, due: list[int]) -> Any:
    """Make the open loop of some sessions, all waiting."""
    monkeypatch.setattr(session, "perf_counter_ns", clock)
    crowd = session.Scheduled(Recorder(KINDS, TIMINGS), Lines(), due)
    made = [session.ScheduledSession(crowd, repeat((b"get k\r\n", HIT, (0,)))) for _ in range(sessions)]
    for each in made:
        each.connection_made(cast("asyncio.BaseTransport", Nowhere()))
        each.start()
    return crowd, made


def seen(crowd: session.Scheduled) -> dict[str, list[int]]:
    return {
        timing: [place for place, count in enumerate(kinds[0]) for _ in range(count)]
        for timing, kinds in crowd.recorder.bins.items()
    }


def bins(*durations: int) -> list[int]:
    return sorted(map(histogram.index, durations))


def test_a_wait_for_a_session_is_no_lag_of_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Hand()
    crowd, [one] = scheduled(clock, monkeypatch, 1, [100, 120])
    for clock.moment in (50, 110):  # too early, and the timer's 10 ns too late
        crowd._send(waited=True)
    for clock.moment in (400, 700):
        one.data_received(HIT)
    assert seen(crowd) == {"service": bins(290, 300), "intended": bins(300, 580), "lag": bins(10, 0)}


def test_what_piles_up_while_the_generator_sleeps_is_its_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Hand()
    crowd, [one, other] = scheduled(clock, monkeypatch, 2, [100, 110, 120, 950])
    for clock.moment in (90, 900):
        crowd._send(waited=True)
    for clock.moment in (1000, 1100):
        one.data_received(HIT)  # sends the third, that was due while sessions waited, and the fourth, due when none did
    clock.moment = 1200
    for each in (one, other):
        each.data_received(HIT)
    assert seen(crowd)["lag"] == bins(800, 790, 780, 0)
    assert seen(crowd)["intended"] == bins(900, 980, 250, 1090)


@pytest.mark.parametrize("rate", [None, 5000.0])
def test_a_server_that_hangs_up_before_the_first_exchange_ends_the_point(rate: float | None) -> None:
    class Late(Quiet):
        def ready(self) -> float:
            return 0.2

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def connect() -> socket.socket:
            opened = socket.create_connection(listener.getsockname())
            listener.accept()[0].close()
            return opened

        plan = Plan(KINDS, connect, lambda _: repeat(Exchange(b"get k\r\n", HIT, (0,))), Lines())
        task = Task("", Work(Keys(1), Values(), {"get": 1.0}), Clock(0.1, 0.3, rate), "", "", 0, 1)
        result = uvloop.run(worker.measure(task, plan, cast("Channel", Late())))
    assert (counts(result), result.stopped) == ({}, "a connection was closed by the server")


def test_a_failure_of_the_reader_is_raised() -> None:
    class Broken(Lines):
        def read(self, exchange: Exchange, data: bytes) -> Answer | None:
            raise ZeroDivisionError(data)

    with server(lambda _, line: [b"END\r\n"]) as address:
        host, _, port = address.rpartition(":")
        endless = repeat(Exchange(b"get k\r\n", HIT, (0,)))
        plan = Plan(KINDS, lambda: socket.create_connection((host, int(port))), lambda _: endless, Broken())
        task = Task(address, Work(Keys(1), Values(), {"get": 1.0}), Clock(0, 2), "", "", 0, 1)
        with pytest.raises(ZeroDivisionError):
            uvloop.run(worker.measure(task, plan, cast("Channel", Quiet())))
