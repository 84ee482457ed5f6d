"""Commands that wait for a common statement, and how they go on where it has no answer for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, Generic, TypeVar

from kvref.engine.mapping import Mapping
from kvref.engine.operations import LockWaitError
from kvref.server.executors.mysql.command import Command, Runner
from kvref.server.executors.mysql.plain_commands import Plain
from kvref.storage.mysql.errors import AgainError, HangError, LostError

K = TypeVar("K", bound=Hashable)
C = TypeVar("C", bound=Hashable)


class BatchQueue(Generic[K, C]):
    """Commands by what they are about, in the order in which they came.

    The number of connections bounds how many wait: each has one command at a time, and stops reading behind it.
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


# Seconds for which the commands of a table run one by one after a session had locked the whole table: in a batch they
# would block commands for other tables.
AVOIDED: Final = 5.0


class Fallback:
    """The way out of the batches of one executor.

    Args:
        runner: goes on with commands.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.queues: list[BatchQueue[Any, Any]] = []  # whose commands end with those of a statement that hangs
        self._loop = asyncio.get_running_loop()
        self._avoided: dict[str, float] = {}  # until when (loop time), by table

    def avoids(self, mapping: Mapping) -> bool:
        """Return whether the commands of a table are carried out one by one just now."""
        return bool(self._avoided) and self._avoided.get(mapping.source, 0) > self._loop.time()

    def give_up(self, mapping: Mapping, commands: Iterable[Command | Plain], error: Exception) -> None:
        """Go on with commands whose common look-up failed, where they are, or with the reason.

        Args:
            mapping: mapping of the commands.
            commands: each waits for a look-up.
            error: of the connection.
        """
        if isinstance(error, LockWaitError):
            self.avoid(mapping)
        if isinstance(error, HangError):
            self.hang(commands, error)
            return
        stale = isinstance(error, AgainError | LostError)
        if stale:
            self.runner.looked(anew=True)  # plain ones look at the tables first, too
        for each in commands:
            if isinstance(each, Plain):
                each.give_up()
            else:
                self.runner.alone(each, stale=stale)

    def avoid(self, mapping: Mapping) -> None:
        """Run the writes of a mapping one by one for some time: a common one had to wait for a lock."""
        self._avoided[mapping.source] = self._loop.time() + AVOIDED

    def hang(self, commands: Iterable[Command | Plain], error: HangError) -> None:
        """Fail commands, and all queued ones, with the same error: they would time out too.

        Otherwise a command that waited for one batch would wait for the next one, too, and mappings for each other.
        """
        self.runner.looked(anew=False)  # the next command would check the tables first and wait for that, too
        waiting = [each for queue in self.queues for each in queue.take_all()]
        for each in [*commands, *waiting]:
            if isinstance(each, Plain):
                each.stop(error)
            else:
                self.runner.stop(each, error)
