"""A queue of commands by mapping, and the task that carries them out in groups while there are any."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Generic, TypeVar

from kvref.server.executors.mysql.command import Runner

K = TypeVar("K", bound=Hashable)
C = TypeVar("C", bound=Hashable)


class GroupQueue(Generic[K, C]):
    """Commands by what they are about, in the order in which they came.

    The number of connections bounds how many wait: each stops reading behind what it has planned in one turn.
    """

    def __init__(self) -> None:
        self._waiting: dict[K, deque[C]] = {}
        self._heavy: dict[C, int] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, about: K, command: C, weight: int = 1) -> None:
        """Let a command wait behind the others of its kind, with the weight of so many."""
        if weight > 1:
            self._heavy[command] = weight
        waiting = self._waiting.get(about)
        if waiting is None:
            waiting = self._waiting[about] = deque()
        waiting.append(command)

    def put_back(self, about: K, commands: Iterable[C]) -> None:
        """Let commands that were taken wait in front of the others of their kind, in their order."""
        self._waiting.setdefault(about, deque()).extendleft(reversed(list(commands)))

    def take(self, most: Callable[[K], int]) -> tuple[K, list[C]]:
        """Take the commands of the kind whose turn it is, at least one and no heavier than `most` says of it."""
        about = next(iter(self._waiting))
        waiting = self._waiting.pop(about)
        width = most(about)
        if not self._heavy and len(waiting) <= width:
            return about, list(waiting)
        taken: list[C] = []
        while waiting and (not taken or width >= self._heavy.get(waiting[0], 1)):
            taken.append(waiting.popleft())
            width -= self._heavy.pop(taken[-1], 1)
        if waiting:
            self._waiting[about] = waiting
        return about, taken

    def take_all(self) -> list[C]:
        """Take all commands that wait."""
        waiting, self._waiting = self._waiting, {}
        self._heavy.clear()
        return [each for commands in waiting.values() for each in commands]


class Queued(Generic[K, C]):
    """A queue of commands, and the task that carries them out while there are any.

    Args:
        carry_out: carries out the commands of one group.
        width: returns how many of a kind may be in one.
        runner: starts the task.
        gather: queues what has arrived meanwhile, before the queue is found to be empty; None: it is queued at once.
    """

    def __init__(
        self,
        carry_out: Callable[[K, list[C]], Awaitable[None]],
        width: Callable[[K], int],
        runner: Runner,
        gather: Callable[[], None] | None = None,
    ) -> None:
        self.queue: GroupQueue[K, C] = GroupQueue()
        self._carry_out = carry_out
        self._width = width
        self._gather = gather
        self._runner = runner
        self._running = False

    def add(self, about: K, command: C, weight: int = 1) -> None:
        """Queue a command behind the others of its kind, see `GroupQueue`."""
        self.queue.add(about, command, weight)
        if not self._running:
            self._running = True
            self._runner.start(self._run())

    async def _run(self) -> None:
        try:
            while self.queue:
                await self._carry_out(*self.queue.take(self._width))
                # Clients that just received a reply send the next command: give the loop a turn, so that the next
                # statement serves all of them.
                await asyncio.sleep(0)
                if self._gather is not None:
                    self._gather()
        finally:
            self._running = False
