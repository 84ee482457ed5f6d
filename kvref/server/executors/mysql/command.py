"""What is carried out over a database server: a connection's transaction, a command of it, and who goes on with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from kvref.engine.operations import Cell, Commit, Lookup, OperationGen, RollBack
from kvref.protocol.replies import Reply
from kvref.server.executors.execution import Execution
from kvref.server.executors.mysql.pool import Pool
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import CycleError, LostError
from kvref.storage.mysql.row_identity import Spelling


@dataclass(slots=True, eq=False)
class Transaction:
    """One connection's transaction.

    Args:
        link: where it is, also while a command of it runs; None: nowhere.
        written: something is written in it.
        acknowledged: by a command that was answered.
    """

    link: MySQLConnection | None = None
    written: bool = False
    acknowledged: bool = False

    @property
    def open(self) -> bool:
        """Return whether there is anything to commit."""
        return self.link is not None and self.link.in_transaction

    async def finish(self, pool: Pool, how: Commit | RollBack) -> str | None:
        """End it; returns why it could not be committed.

        Args:
            pool: of its link, which it keeps.
            how: it ends.

        Raises:
            CycleError, LostError: its commit was refused, and nothing that was in it had been answered.
        """
        acknowledged = self.acknowledged
        self.written = self.acknowledged = False
        if self.link is None or not self.link.in_transaction:
            return None
        try:
            reason: str | None = await pool.in_thread(
                self.link.commit if isinstance(how, Commit) else self.link.roll_back
            )
        except (CycleError, LostError) as error:
            if not acknowledged:
                raise
            return f"commit: {error}"
        return reason

    async def release(self, pool: Pool) -> None:
        """Give its link back, if it has one."""
        link, self.link = self.link, None
        if link is not None:
            await pool.give_back(link)


class Command(Execution):
    """A command being carried out.

    Args:
        begin, done: see `Execution`.
        transaction: of its connection.

    Attributes:
        spelling: of the key that it looks up, where it waits with others for that.
        place: of that key.
        written: it has written something in the transaction that it shares.
    """

    __slots__ = ("place", "spelling", "transaction", "written")

    def __init__(
        self, begin: Callable[[], OperationGen], done: Callable[[Reply], None], transaction: Transaction
    ) -> None:
        super().__init__(begin, done)
        self.transaction = transaction
        self.spelling: Spelling = 0
        self.place: Hashable = None
        self.written = False

    @property
    def key(self) -> Cell:
        """Return what it looks up."""
        assert isinstance(self.operation, Lookup)
        return self.operation.key


class Runner(Protocol):
    """Goes on with commands that were answered, or could not be, together with others."""

    @property
    def up_to_date(self) -> bool:
        """Return whether the mapped tables were looked at a moment ago, so that plain commands need no look."""

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
