"""How many sessions, and how many operations a second, a server holds within limits; how many machines a rate needs.

Between two measured numbers of sessions the curves are taken as straight; outside of what was measured nothing is said.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from support.answer import figures, percent
from support.style import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

SPARE: Final = 1  # machines: one may fail


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server must keep: p99 of the latency, ns; share of the machine's cores in use, 0 to 1."""

    p99: float = 5e6
    cpu: float = 0.7

    def __str__(self) -> str:
        return f"p99 ≤ {duration(self.p99)} and CPU ≤ {percent(self.cpu)}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured with one number of sessions: medians of the repetitions.

    cpu: share of the machine's cores that the server used; None where it ran elsewhere. p99: ns; None without replies.
    """

    sessions: int
    rate: float
    p99: float | None
    cpu: float | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Capacity of a server.

    sessions: the most that keep the limits, and their rate; None: unknown.
    highest: rate that every number of sessions up to those reaches; more sessions may be slower.
    at_least: nothing larger was measured; the capacity may be higher.
    reason: what limits it, or why it is unknown.
    """

    sessions: int | None
    rate: float | None
    highest: float | None
    at_least: bool
    reason: str

    @property
    def known(self) -> bool:
        """Return whether there is an answer."""
        return self.rate is not None

    def machines(self, target: float) -> int | None:
        """Return the machines for a rate, operations a second, one of them spare; None: cannot tell.

        Each machine carries at most the highest rate that was measured within the limits.
        """
        if not self.highest:
            return None
        return math.ceil(target / self.highest) + SPARE


def capacity(points: Sequence[Measured], limits: Limits) -> Capacity:
    """Find where the first limit is crossed, from the fewest sessions on."""
    kept = sorted((each for each in points if each.p99 is not None), key=lambda each: each.sessions)
    if not kept:
        return Capacity(None, None, None, at_least=False, reason="no valid point was measured")
    first = kept[0]
    if broken := _broken(first, limits):
        return Capacity(
            None, None, None, at_least=False, reason=f"{broken} already with {_of(first.sessions)}, the fewest measured"
        )
    highest = first.rate
    for before, after in itertools.pairwise(kept):
        if broken := _broken(after, limits):
            sessions = math.floor(before.sessions + _share(before, after, limits) * (after.sessions - before.sessions))
            share = (sessions - before.sessions) / (after.sessions - before.sessions)
            rate = before.rate + share * (after.rate - before.rate)
            return Capacity(
                sessions, rate, max(highest, rate), at_least=False, reason=f"{broken} with {_of(after.sessions)}"
            )
        highest = max(highest, after.rate)
    last = kept[-1]
    judged = "" if last.cpu is not None else "; its CPU was not measured"
    reason = f"within the limits with {_of(last.sessions)}, the most that was measured{judged}"
    return Capacity(last.sessions, last.rate, highest, at_least=True, reason=reason)


def _of(sessions: int) -> str:
    return f"{sessions} session{'s' if sessions != 1 else ''}"


def _broken(point: Measured, limits: Limits) -> str:
    """Say which limit a point does not keep."""
    if point.p99 is not None and point.p99 > limits.p99:
        return f"p99 is {duration(point.p99)}"
    if point.cpu is not None and point.cpu > limits.cpu:
        return f"CPU is {figures(100 * point.cpu, 2)} %"
    return ""


def _share(before: Measured, after: Measured, limits: Limits) -> float:
    """Return how far it is from one point to the next until the first limit, 0 to 1."""
    shares = [1.0]
    for low, high, limit in ((before.p99, after.p99, limits.p99), (before.cpu, after.cpu, limits.cpu)):
        if low is not None and high is not None and high > limit:
            shares.append((limit - low) / (high - low))
    return min(shares)
