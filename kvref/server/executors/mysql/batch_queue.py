"""Commands that wait for one another's statement: those of one mapping together, mappings in turn.

How many wait is bounded by the number of connections: each has one command at a time, and stops reading behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
C = TypeVar("C")


class BatchQueue(Generic[K, C]):
    """Commands by what they are about, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[K, deque[C]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, about: K, command: C) -> None:
        """Let a command wait behind the others of its kind."""
        waiting = self._waiting.get(about)
        if waiting is None:
            waiting = self._waiting[about] = deque()
        waiting.append(command)

    def put_back(self, about: K, commands: Iterable[C]) -> None:
        """Let commands that were taken wait in front of the others of their kind, in their order."""
        self._waiting.setdefault(about, deque()).extendleft(reversed(list(commands)))

    def take(self, most: Callable[[K], int]) -> tuple[K, list[C]]:
        """Take the commands of the kind whose turn it is, at least one and at most as many as `most` says of it."""
        about = next(iter(self._waiting))
        waiting = self._waiting.pop(about)
        width = most(about)
        if len(waiting) <= width:
            return about, list(waiting)
        self._waiting[about] = waiting
        return about, [waiting.popleft() for _ in range(width)]

    def take_all(self) -> list[C]:
        """Take all commands that wait."""
        waiting, self._waiting = self._waiting, {}
        return [each for commands in waiting.values() for each in commands]
