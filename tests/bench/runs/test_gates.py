"""Each gate marks what it is for, with both numbers, and lets a healthy point pass."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

import pytest
from helpers import points as made

from kvref_bench.load.histogram import index
from kvref_bench.load.records import Cell, Kind, Usage, WorkerResult
from kvref_bench.runs import gates
from kvref_bench.runs.records import Point, ServerSample


def reasons(point: Point, kind: Literal["load", "lag"] = "load", **work: Any) -> list[str]:
    """Judge a point of a scenario's kind whose work has these fields."""
    return gates.judge(replace(point, kind=kind, work=replace(point.work, **work)))


def rates(*each: int) -> WorkerResult:
    """Make a worker with so many operations in its seconds."""
    cells = {Cell(second, made.GET_HIT, "service"): {1000: count} for second, count in enumerate(each) if count}
    return made.result(seconds=len(each), histograms=cells)


def waiting(lag_ns: float, median_ns: float) -> WorkerResult:
    """Make a worker of an open loop whose sends were late."""
    clocks: dict[Any, float] = {"service": median_ns, "intended": median_ns + lag_ns, "lag": lag_ns}
    cells = {
        Cell(second, made.GET_HIT, clock): {index(int(value)): 500}
        for clock, value in clocks.items()
        for second in range(4)
    }
    return made.result(histograms=cells)


def counted(**counters: int) -> ServerSample:
    """Make a sample of a server's counters."""
    return ServerSample(Usage(), counters)


MISSES = Kind("get", "miss")
HALF = made.result(each=250)
HALF.histograms.update(made.result(1, each=250, kind=MISSES).histograms)
ONE_MISS = made.result(each=500)
ONE_MISS.histograms.update({Cell(0, MISSES, "service"): {1000: 1}})
BUSY = Usage(user=1.6, system=2.1)
OTHERS = [made.resource("machine", 0, 100.0), made.resource("machine", 4, 104.5)]
# 1.3 cores for a second: the server's 1.0, and the clients' 1.2 s in 4.
LATE = [made.resource("machine", 3, 100.0), made.resource("machine", 4, 101.3)]
READ_LATE = [made.resource("server", 0.1, 1.0)]

HEALTHY = [
    ("a plain point", made.point(), {}),
    ("seconds that vary a little", made.point(rates(500, 520, 480, 510, 490, 500)), {}),
    ("a last second that was cut short", made.point(made.result(histograms=rates(500, 500, 500, 20).histograms, seconds=3)), {}),
    ("half of the keys are missing, as they must", made.point(HALF, expected_hits=0.5), {}),
    ("one miss in two thousand", made.point(ONE_MISS), {}),
    ("hits that nobody can foresee", made.point(HALF, expected_hits=None), {}),
    ("the server counted the same", made.point(sample=counted(cmd_get=2000)), {}),
    ("what was under way", made.point(sample=counted(cmd_get=2010)), {}),
    ("counters read 100 ms late", made.point(sample=counted(cmd_get=1940), resources=READ_LATE), {}),
    ("a server that counts nothing", made.point(sample=counted(threads=3)), {}),
    ("statements", made.point(sample=counted(Com_stmt_execute=2000, cmd_get=1)), {"protocol": "mysql"}),
    ("a busy client library", made.point(made.result(usage=BUSY)), {"driver": "pymemcache"}),
    ("fixed work that slows down", made.point(rates(600, 500, 400, 300)), {"operations": 100}),
    ("late by less than a timer's grain", made.point(waiting(1.5e6, 100e3), rate=500.0), {}),
    ("late by little of a long wait", made.point(waiting(5e6, 100e6), rate=20.0), {}),
    ("the machine was ours", made.point(resources=[OTHERS[0], made.resource("machine", 4, 102.5)]), {}),
    ("readings that began late", made.point(resources=LATE, sample=ServerSample(Usage(user=1.0), seconds=1.0)), {}),
    ("due in the last two milliseconds", made.point(made.result(skipped=9), rate=5000.0), {}),
    ("trials, seconds apart", made.point(rates(1, 0, 0, 1)), {"kind": "lag"}),
]  # fmt: skip

SICK = [
    (made.point(made.result(usage=BUSY)), {}, r"client saturated: a worker used 92% of a core, limit 90%"),
    (made.point(HALF), {}, r"hit rate: 50\.00% instead of 100\.00% \(limit 0\.10%\)"),
    (made.point(made.result(errors=3)), {}, r"unexpected replies: 3 of 2003, limit 0"),
    (made.point(sample=counted(cmd_get=2500)), {}, r"counts disagree: 2000 operations here, cmd_get .* moved by 2500 \(limit 68\)"),
    (made.point(sample=counted(cmd_get=1940)), {"operations": 100}, r"counts disagree: 2000 .* 1940 \(limit 18\)"),
    (made.point(sample=counted(Com_stmt_execute=9)), {"protocol": "mysql"}, r"counts disagree: 2000 .* Com_stmt_execute .* 9"),
    (made.point(rates(500, 500, 500, 400, 400, 400)), {}, r"drift: 500/s in the first third, 400/s in the last, limit 10%"),
    (made.point(rates(500, 300, 500, 500, 300, 500)), {}, r"uneven: operations of the seconds vary by 24%.*limit 15%"),
    (made.point(rates(500, 0, 500, 500)), {}, r"gap: nothing was answered in second 1 of 4"),
    (made.point(waiting(3e6, 100e3), rate=500.0), {}, r"late: 99 % were sent within 3\.\d\d ms of the moment they could be, limit 2\.00 ms"),
    (made.point(waiting(12e6, 100e6), rate=20.0), {}, r"late: .* 1[12]\.\d\d ms of the moment they could be, limit 11\.\d\d ms"),
    (made.point(made.result(skipped=50), rate=500.0), {}, r"skipped: 50 of 2050 were never sent, limit 3 \("),
    (made.point(made.result(histograms=rates(2000).histograms)), {}, r"gap: nothing was answered in second 1, 2, 3 of 4"),
    (made.point(made.result(stopped="stopped by the user")), {}, r"stopped early: stopped by the user"),
    (made.point(rates(20, 20, 20)), {}, r"too few: 60 operations, at least 100"),
    (made.point(made.result(histograms={})), {}, r"no operation was answered"),
    (made.point(resources=OTHERS), {}, r"other load: 0\.62 cores were used by other processes, limit 0\.25"),
    (made.point(made.result(errors=1)), {"kind": "lag"}, r"unexpected replies: 1 of"),
]  # fmt: skip


@pytest.mark.parametrize(("point", "facts"), [case[1:] for case in HEALTHY], ids=[case[0] for case in HEALTHY])
def test_a_healthy_point_passes(point: Point, facts: dict[str, Any]) -> None:
    assert reasons(point, **facts) == []


@pytest.mark.parametrize(("point", "facts", "message"), SICK)
def test_a_sick_point_is_marked_with_both_numbers(point: Point, facts: dict[str, Any], message: str) -> None:
    assert any(re.match(message, each) for each in reasons(point, **facts)), reasons(point, **facts)


def test_a_point_of_a_fifth_of_a_second_is_too_short() -> None:
    result = rates(2000)
    result.seconds = 0.2
    result.usage = Usage()
    assert reasons(made.point(result)) == ["too short: measured for 0.200 s, at least 0.25 s"]


def test_a_point_without_workers_is_marked() -> None:
    point = made.point()
    point.results.clear()
    assert "no worker reported" in reasons(point)


def test_a_run_is_warned_of() -> None:
    assert gates.warnings({("a",): 5, ("b",): 6}, busy=0.2) == []
    assert gates.warnings({("a",): 5, ("b",): 4}, busy=1.5) == [
        "1 of 2 points have fewer than 5 valid repetitions: no interval",
        "the machine was busy when the run began: 1.50 cores were in use, limit 0.25",
    ]
