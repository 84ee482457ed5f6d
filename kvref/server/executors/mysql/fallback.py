"""What is done with commands whose common statement failed: each is carried out by itself, or gets the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from kvref.engine.mapping import Mapping
from kvref.engine.operations import LockWaitError
from kvref.server.executors.mysql.batch_queue import BatchQueue
from kvref.server.executors.mysql.command import Command, Runner
from kvref.server.executors.mysql.fast_path import Plain
from kvref.storage.mysql.errors import AgainError, HangError, LostError

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
            self._avoided[mapping.source] = self._loop.time() + AVOIDED
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
