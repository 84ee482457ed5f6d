"""Whether a history of concurrent operations on one object is linearizable.

It is if the operations have an order in which each reply is right and which keeps real time: an operation that returned
before another one was called comes first (M. Herlihy, J. Wing, "Linearizability: A Correctness Condition for Concurrent
Objects", ACM TOPLAS 12(3), 1990). A history of several objects is linearizable if that of each object is.

The search is that of J. Wing and C. Gong, "Testing and Verifying Concurrent Objects", J. Parallel and Distributed
Computing 17, 1993, with the memoization of G. Lowe, "Testing for linearizability", Concurrency and Computation:
Practice and Experience 29(4), 2017, over a doubly linked list of calls and returns, as in A. Athalye's Porcupine.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(slots=True, eq=False)
class _Entry:
    """A call, with its return, or a return, in the list of both in the order of time."""

    number: int
    match: _Entry | None = None
    before: _Entry | None = None
    behind: _Entry | None = None


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
    head = _linked(operations)
    state, done = initial, 0
    seen: set[tuple[int, State]] = set()
    taken: list[tuple[_Entry, State]] = []
    longest: list[Operation[Op]] = []
    entry = head.behind
    while entry is not None:
        if entry.match is None:  # a return whose call is not yet in the order
            if not taken:
                return longest
            entry, state = taken.pop()
            done &= ~(1 << entry.number)
            _put_back(entry)
            entry = entry.behind
            continue
        after = step(state, operations[entry.number].what)
        if after is None or (done | 1 << entry.number, after) in seen:
            entry = entry.behind
            continue
        taken.append((entry, state))
        if len(taken) > len(longest):
            longest = [operations[each.number] for each, _ in taken]
        state, done = after, done | 1 << entry.number
        seen.add((done, state))
        _take_out(entry)
        entry = head.behind
    return longest


def _linked(operations: Sequence[Operation[Op]]) -> _Entry:
    """Return the head of the list; of a call and a return at the same time, the call is first."""
    events: list[tuple[float, bool, int, _Entry]] = []
    for number, operation in enumerate(operations):
        end = _Entry(number)
        returned = operation.returned if operation.returned is not None else float("inf")
        events += [(operation.called, False, number, _Entry(number, end)), (returned, True, number, end)]
    head = last = _Entry(-1)
    for *_, entry in sorted(events, key=lambda event: event[:3]):
        last.behind, entry.before, last = entry, last, entry
    return head


def _take_out(call: _Entry) -> None:
    assert call.match is not None, "only a call is taken out"
    for entry in (call, call.match):
        assert entry.before is not None, "the head stays"
        entry.before.behind = entry.behind
        if entry.behind is not None:
            entry.behind.before = entry.before


def _put_back(call: _Entry) -> None:
    assert call.match is not None, "only a call was taken out"
    for entry in (call.match, call):
        assert entry.before is not None, "the head stays"
        entry.before.behind = entry
        if entry.behind is not None:
            entry.behind.before = entry
