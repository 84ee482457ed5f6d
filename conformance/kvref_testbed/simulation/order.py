"""The search for an order of commands on one key in which each reply is right.

The order keeps real time: a command that was answered before another one was sent comes first (M. Herlihy, J. Wing,
"Linearizability: A Correctness Condition for Concurrent Objects", ACM TOPLAS 12(3), 1990). It also keeps the order of
each connection, pipelined commands included, so that the number of points that the search can come to is the product
of the numbers of commands of the connections. The search is that of J. Wing and C. Gong with the memoization of G.
Lowe, as in `kvref_conformance.stateful.concurrency.linearizability`, which keeps real time alone: it needs
exponential time for a pipeline without answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeVar

from kvref_testbed.simulation.clients import Operation

_S = TypeVar("_S", bound=Hashable)
_MAX_POINTS: Final = 100_000
_NEVER: Final = float("inf")


class UndecidedError(Exception):
    """Whether a history has an order is not decided."""


class Fate(Enum):
    """What is known of a command's outcome."""

    DONE = auto()  # it has taken effect
    UNKNOWN = auto()  # it has taken effect or not
    LAST = auto()  # the same; if it has not, no later command of its connection has


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a history.

    Args:
        operation: the command, with its reply.
        line: the connection.
        fate: what is known of its outcome.
    """

    operation: Operation
    line: int
    fate: Fate = Fate.DONE

    @property
    def returned(self) -> float:
        """Return when it had taken effect."""
        known = self.fate is Fate.DONE and self.operation.returned is not None
        return self.operation.returned if known and self.operation.returned is not None else _NEVER


def longest_order(
    history: Sequence[Step], initial: _S, step: Callable[[_S, Operation], Sequence[_S]]
) -> list[Step] | None:
    """Return None if a history has an order; else the longest beginning of one.

    Args:
        history: the commands of each connection in their order.
        initial: the state before.
        step: returns the states that a command may leave; none if its reply is wrong in that state.

    Raises:
        UndecidedError: the search has come to too many points.
    """
    lines = [[each for each in history if each.line == line] for line in sorted({each.line for each in history})]
    ends = tuple(map(len, lines))
    # By when one of the commands from here on had taken effect.
    dues = [
        [min((each.returned for each in line[at:]), default=_NEVER) for at in range(len(line) + 1)] for line in lines
    ]
    start = (0,) * len(lines)
    seen = {(start, initial)}
    waiting: list[tuple[tuple[int, ...], _S, tuple[Step, ...]]] = [(start, initial, ())]
    longest: tuple[Step, ...] = ()
    while waiting:
        at, state, order = waiting.pop()
        if at == ends:
            return None
        if len(order) > len(longest):
            longest = order
        if len(seen) > _MAX_POINTS:
            raise UndecidedError
        due = min(dues[number][each] for number, each in enumerate(at))
        for number, each in enumerate(at):
            if each == ends[number]:
                continue
            one = lines[number][each]
            points: list[tuple[int, _S, tuple[Step, ...]]] = []
            if one.operation.called <= due:
                points += [(each + 1, after, (*order, one)) for after in step(state, one.operation)]
            if one.fate is not Fate.DONE:
                points.append((ends[number] if one.fate is Fate.LAST else each + 1, state, order))
            for following, then, reached in reversed(points):
                point = ((*at[:number], following, *at[number + 1 :]), then)
                if point not in seen:
                    seen.add(point)
                    waiting.append((*point, reached))
    return list(longest)
