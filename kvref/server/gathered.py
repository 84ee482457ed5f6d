"""Commands that wait for one another's statement: those of one mapping together, mappings in turn.

How many wait is bounded by the number of connections: each has one command at a time, and stops reading behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from kvref.semantics.mapping import Mapping

C = TypeVar("C")


class Gathered(Generic[C]):
    """Commands by mapping, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[Mapping, deque[C]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, mapping: Mapping, command: C) -> None:
        """Let a command wait behind the others of its mapping."""
        waiting = self._waiting.get(mapping)
        if waiting is None:
            waiting = self._waiting[mapping] = deque()
        waiting.append(command)

    def put_back(self, mapping: Mapping, commands: Iterable[C]) -> None:
        """Let commands that were taken wait in front of the others of their mapping, in their order."""
        self._waiting.setdefault(mapping, deque()).extendleft(reversed(list(commands)))

    def take(self, most: Callable[[Mapping], int]) -> tuple[Mapping, list[C]]:
        """Take the commands of the mapping whose turn it is, at least one and at most as many as `most` says of it."""
        mapping = next(iter(self._waiting))
        waiting = self._waiting.pop(mapping)
        taken = [waiting.popleft() for _ in range(min(most(mapping), len(waiting)))]
        if waiting:
            self._waiting[mapping] = waiting
        return mapping, taken

    def take_all(self) -> list[C]:
        """Take all commands that wait."""
        waiting, self._waiting = self._waiting, {}
        return [each for commands in waiting.values() for each in commands]
