"""Commands over a database server: transactions, queues of commands for one statement, and the fallback of each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, Commit, LockWaitError, Lookup, OperationGen, RollBack
from kvref.protocol.replies import Reply
from kvref.server.executors.execution import Execution
from kvref.server.executors.mysql.plain_commands import Plain
from kvref.server.executors.mysql.pool import Pool
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import AgainError, CycleError, HangError, LostError
from kvref.storage.mysql.replicas import LastWrite
from kvref.storage.mysql.row_identity import Spelling


@dataclass(slots=True, eq=False)
class Transaction:
    """One connection's transaction.

    Args:
        connection: where it is, also while a command of it runs; None: nowhere.
        written: something is written in it.
        acknowledged: by a command that was answered.
        last_write: of the connection, None unless reads=session.
        primary_only: no secondary answers its gets.
    """

    connection: MySQLConnection | None = None
    written: bool = False
    acknowledged: bool = False
    last_write: LastWrite | None = None
    primary_only: bool = False

    @property
    def open(self) -> bool:
        """Return whether there is anything to commit."""
        return self.connection is not None and self.connection.in_transaction

    async def finish(self, pool: Pool, how: Commit | RollBack) -> str | None:
        """End it; returns why it could not be committed.

        Args:
            pool: of its connection, which it keeps.
            how: it ends.

        Raises:
            CycleError, LostError: its commit was refused, and nothing that was in it had been answered.
        """
        acknowledged, written = self.acknowledged, self.written
        self.written = self.acknowledged = False
        if self.connection is None or not self.connection.in_transaction:
            return None
        try:
            reason: str | None = await pool.in_thread(
                self.connection.commit if isinstance(how, Commit) else self.connection.roll_back
            )
        except (CycleError, LostError) as error:
            if not acknowledged:
                raise
            return f"commit: {error}"
        if written and self.last_write is not None and isinstance(how, Commit):
            self.last_write.note(self.connection.last_gtid)
        return reason

    async def release(self, pool: Pool) -> None:
        """Give its connection back, if it has one."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await pool.give_back(connection)


class Command(Execution):
    """A command being carried out.

    Args:
        begin, done: see `Execution`.
        transaction: of its connection.

    Attributes:
        spelling: of the key that it looks up, where it waits with others for that.
        identity: of that key.
        turn: of the reader in which it was queued.
        written: it has written something in the transaction that it shares.
        weight: number of keys that it looks up with others.
    """

    weight: Final = 1

    __slots__ = ("identity", "spelling", "transaction", "turn", "written")

    def __init__(
        self, begin: Callable[[], OperationGen], done: Callable[[Reply], None], transaction: Transaction
    ) -> None:
        super().__init__(begin, done)
        self.transaction = transaction
        self.spelling: Spelling = 0
        self.identity: Hashable = None
        self.turn = 0
        self.written = False

    @property
    def last_write(self) -> LastWrite | None:
        """Return the last write of its connection, None unless reads=session."""
        return self.transaction.last_write

    @property
    def key(self) -> Cell:
        """Return what it looks up."""
        assert isinstance(self.operation, Lookup)
        return self.operation.key


class Runner(Protocol):
    """Goes on with commands that were answered, or could not be, together with others."""

    def up_to_date(self, now: float) -> bool:
        """Return whether the tables have been looked at shortly before some loop time, as plain commands need it."""

    def looked(self, *, anew: bool) -> None:
        """Note that the tables count as looked at just now, or, with `anew`, that they must be before anything else."""

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start work that is waited for when the server ends."""

    def alone(self, command: Command, *, stale: bool = False) -> None:
        """Run a command alone; `stale`: check the tables and restart it first."""

    def advance(self, command: Command, answer: object) -> None:
        """Pass a command its result, and continue with the next operation, or reply."""

    def stop(self, command: Command, error: Exception) -> None:
        """Pass a command an error as its result, and continue as `advance` does."""

    def reply(self, command: Command) -> None:
        """Reply to a command that has ended."""


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
