"""Whether a history of concurrent operations on one object is linearizable.

It is if the operations have an order in which each reply is right and which keeps real time: an operation that returned
before another one was called comes first (M. Herlihy, J. Wing, "Linearizability: A Correctness Condition for Concurrent
Objects", ACM TOPLAS 12(3), 1990). A history of several objects is linearizable if that of each object is.

The search is that of J. Wing and C. Gong, "Testing and Verifying Concurrent Objects", J. Parallel and Distributed
Computing 17, 1993, with the memoization of G. Lowe, "Testing for linearizability", Concurrency and Computation:
Practice and Experience 29(4), 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

Op = TypeVar("Op")
State = TypeVar("State", bound="Hashable")


@dataclass(frozen=True, slots=True)
class Operation(Generic[Op]):
    """One operation.

    Args:
        what: the request and its reply.
        called: when the request was sent.
        returned: when the reply was there; None: it may take effect at any later time, or never.
    """

    what: Op
    called: float
    returned: float | None


def longest_order(
    operations: Sequence[Operation[Op]], initial: State, step: Callable[[State, Op], State | None]
) -> list[Operation[Op]]:
    """Return the longest order found that keeps real time and in which each reply is right.

    The history is linearizable if all of its operations are in it.

    Args:
        operations: on one object, in any order.
        initial: its state before.
        step: returns the state after an operation, None if its reply is wrong in that state; no state is None.
    """
    called = sorted(range(len(operations)), key=lambda number: operations[number].called)
    longest: tuple[int, ...] = ()
    # Numbers of the operations in an order, the same as bits, and the state after them.
    tries: list[tuple[tuple[int, ...], int, State]] = [((), 0, initial)]
    seen = {(0, initial)}
    while tries and len(longest) < len(operations):
        order, done, state = tries.pop()
        longest = max(longest, order, key=len)
        left = [number for number in called if not done >> number & 1]
        returned = min((_returned(operations[number]) for number in left), default=inf)
        for number in reversed(left):
            operation = operations[number]
            after = step(state, operation.what) if operation.called <= returned else None
            if after is not None and (done | 1 << number, after) not in seen:
                seen.add((done | 1 << number, after))
                tries.append(((*order, number), done | 1 << number, after))
    return [operations[number] for number in longest]


def _returned(operation: Operation[Op]) -> float:
    return inf if operation.returned is None else operation.returned
