"""What makes a point invalid, in words with both numbers. A gate marks, it hides nothing.

Each gate yields its reasons. Limits come from the benchmark's notes on validity: a client at its limit, a wrong
hit rate, answers that are not allowed, counts that do not agree, a state that is not steady, sends that were late.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kvref_bench.runs.records import percentile
from kvref_bench.runs.tables import busiest

if TYPE_CHECKING:
    from kvref_bench.runs.records import Point

# Locust warns at the same share: above it, a process measures itself.
BUSIEST: Final = 0.90
HITS: Final = 0.001
COUNTED: Final = 0.001
THIRDS: Final = 0.10
VARIATION: Final = 0.15
LAG_SHARE: Final = 0.10
# uvloop's timers fire on whole milliseconds, one late at most, so a lag below this is the clock's own resolution.
LAG: Final = 2e6
# CPU times have a resolution of 10 ms, which is 4 % of a quarter of a second.
SHORTEST: Final = 0.25
# The 99th percentile of fewer is the longest of all.
FEWEST: Final = 100
OTHERS: Final = 0.25
REPETITIONS: Final = 5
MACHINE: Final = "machine"
# Seconds that the counters of a server take to be read, and where no reading says when that was.
READING: Final = 0.02
UNKNOWN: Final = 0.1

STORED: Final = ("set", "add", "replace", "append", "prepend", "cas")
STATEMENTS: Final = "Com_stmt_execute"


Gate = Callable[["Point"], Iterator[str]]


def stopped_early(point: Point) -> Iterator[str]:
    """A worker says why it ended before its time."""
    if not point.results:
        yield "no worker reported"
    # A reason is one part of a text that `; ` joins.
    reasons = sorted({each.stopped.replace(";", ",") for each in point.results if each.stopped is not None})
    if reasons:
        yield f"stopped early: {', '.join(reasons)}"


def answered(point: Point) -> Iterator[str]:
    """Nothing was answered, or too little for percentiles."""
    if point.merged.ops == 0:
        yield "no operation was answered"
    elif point.merged.ops < FEWEST:
        yield f"too few: {point.merged.ops} operations, at least {FEWEST} for percentiles"


def too_short(point: Point) -> Iterator[str]:
    """The clock ran for less than CPU times can resolve."""
    if point.merged.ops and point.merged.seconds < SHORTEST:
        yield f"too short: measured for {point.merged.seconds:.3f} s, at least {SHORTEST} s"


def client_saturated(point: Point) -> Iterator[str]:
    """A worker used nearly a whole core; where a client library is what is measured, that is the answer."""
    share = busiest(point)
    if point.work.driver == "wire" and share > BUSIEST:
        yield f"client saturated: a worker used {share:.0%} of a core, limit {BUSIEST:.0%} (take more processes)"


def unexpected_replies(point: Point) -> Iterator[str]:
    """An answer that is not allowed came back."""
    if errors := sum(each.errors for each in point.results):
        yield f"unexpected replies: {errors} of {point.merged.ops + errors}, limit 0"


def hit_rate(point: Point) -> Iterator[str]:
    """The share of hits is another than the data and the draws must give; four standard errors are chance."""
    expected, hits, misses = point.expected_hits, point.merged.outcome("hit"), point.merged.outcome("miss")
    if expected is None or not hits + misses:
        return
    share = hits / (hits + misses)
    limit = HITS + 4 * math.sqrt(expected * (1 - expected) / (hits + misses))
    if abs(share - expected) > limit:
        yield f"hit rate: {share:.2%} instead of {expected:.2%} (limit {limit:.2%})"


def counters_disagree(point: Point) -> Iterator[str]:
    """The server counted another number of operations, beyond what was under way and what the ends do not share."""
    ours, theirs, name = _counted(point)
    under_way = point.work.sessions * point.work.depth * point.work.multiget
    limit = COUNTED * ours + 2 * under_way + _uncounted(point)
    # A counter that never moves is none.
    if theirs and abs(ours - theirs) > limit:
        yield f"counts disagree: {ours} operations here, {name} of the server moved by {theirs} (limit {limit:.0f})"


def _uncounted(point: Point) -> float:
    """Return the operations between the start of the measured time and the first reading of the server's counters."""
    # Sessions with a number of operations have no warm-up: the counters are read before the first of them.
    if point.work.operations is not None or not point.merged.seconds:
        return 0.0
    began = min(each.began for each in point.results)
    read = next((each.time for each in point.resources if each.role != MACHINE), None)
    apart = UNKNOWN if read is None else abs(read - began) / 1e9 + READING
    return point.merged.per_second * apart


def _counted(point: Point) -> tuple[int, int, str]:
    counters, outcomes = point.sample.counters, point.merged.outcomes
    if point.work.protocol == "mysql":
        return outcomes.total(), counters.get(STATEMENTS, 0), STATEMENTS
    gets = sum(count for (verb, _), count in outcomes.items() if verb in {"get", "gets"})
    sets = sum(count for (verb, _), count in outcomes.items() if verb in STORED)
    counted = [(ours, name) for ours, name in ((gets, "cmd_get"), (sets, "cmd_set")) if ours and counters.get(name)]
    return (
        sum(ours for ours, _ in counted),
        sum(counters[name] for _, name in counted),
        " + ".join(name for _, name in counted),
    )


def gap(point: Point) -> Iterator[str]:
    """A whole second without an answer."""
    whole = point.merged.by_second[: point.merged.whole_seconds]
    empty = [str(second) for second, (ops, errors) in enumerate(whole) if not ops + errors]
    if empty and point.merged.ops:
        yield f"gap: nothing was answered in second {', '.join(empty)} of {len(whole)}"


def unsteady(point: Point) -> Iterator[str]:
    """The last third of the seconds was faster or slower than the first, or the seconds differ."""
    rates = _rates(point)
    if len(rates) < 3:
        return
    third = len(rates) // 3
    first, last, mean = (statistics.fmean(each) for each in (rates[:third], rates[-third:], rates))
    if abs(last - first) > THIRDS * mean:
        yield f"drift: {first:.0f}/s in the first third, {last:.0f}/s in the last, limit {THIRDS:.0%} of the mean"
    variation = statistics.stdev(rates) / mean
    if variation > VARIATION:
        yield f"uneven: operations of the seconds vary by {variation:.0%} of their mean, limit {VARIATION:.0%}"


def _rates(point: Point) -> list[int]:
    # Where the work is fixed, sessions end one by one, and each write makes the table larger: neither is steady.
    if point.work.operations is not None or not point.merged.ops:
        return []
    return [ops for ops, _ in point.merged.by_second[: point.merged.whole_seconds]]


def late(point: Point) -> Iterator[str]:
    """Requests of the open loop were sent later than they could have been: a wait for a session is not counted."""
    lag = percentile(point.merged.bins("lag"), 0.99)
    limit = max(LAG, LAG_SHARE * (percentile(point.merged.bins("intended"), 0.5) or 0.0))
    if point.rate is not None and lag is not None and lag > limit:
        yield f"late: 99 % were sent within {lag / 1e6:.2f} ms of the moment they could be, limit {limit / 1e6:.2f} ms"


def skipped(point: Point) -> Iterator[str]:
    """A part of the open loop's schedule was never sent."""
    missing = sum(each.skipped for each in point.results)
    planned = point.merged.ops + missing
    # What was due in the last grain of the clock had no time.
    limit = COUNTED * planned + (point.rate or 0.0) * LAG / 1e9
    if missing > limit:
        yield f"skipped: {missing} of {planned} were never sent, limit {limit:.0f} (the rate is too high)"


def others(point: Point) -> Iterator[str]:
    """Other processes of the machine used CPU, by the readings with role `machine` (`runs.machine.reading`)."""
    used = point.sample.usage
    readings = [each for each in point.resources if each.role == MACHINE]
    if len(readings) < 2 or used is None or not point.merged.seconds:
        return
    first, last = readings[0], readings[-1]
    seconds = (last.time - first.time) / 1e9
    if seconds <= 0:
        return
    clients = point.merged.usage.cpu / point.merged.seconds
    rest = (last.user + last.system - first.user - first.system - used.cpu) / seconds - clients
    if rest > OTHERS:
        yield f"other load: {rest:.2f} cores were used by other processes, limit {OTHERS}"


LOAD: Final[tuple[Gate, ...]] = (
    stopped_early, answered, too_short, unexpected_replies, client_saturated, hit_rate, counters_disagree, gap,
    unsteady, late, skipped, others,
)  # fmt: skip
# A lag is measured by trials, seconds apart.
TRIALS: Final[tuple[Gate, ...]] = (stopped_early, unexpected_replies)
BY_KIND: Final = {"load": LOAD, "lag": TRIALS}


def judge(point: Point) -> list[str]:
    """Return every reason not to use a point; none: it is valid."""
    return [reason for gate in BY_KIND[point.kind] for reason in gate(point)]


def warnings(repetitions: Mapping[tuple[Any, ...], int], busy: float) -> list[str]:
    """Say what holds for a run as a whole.

    repetitions: valid ones of each point. busy: cores that were in use when the run began.
    """
    notes = []
    few = sum(count < REPETITIONS for count in repetitions.values())
    if few:
        notes.append(f"{few} of {len(repetitions)} points have fewer than {REPETITIONS} valid repetitions: no interval")
    if busy > OTHERS:
        notes.append(f"the machine was busy when the run began: {busy:.2f} cores were in use, limit {OTHERS}")
    return notes
