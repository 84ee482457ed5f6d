"""What a driver over a database server carries: a connection's transaction, and a command on its way."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from kvref.engine.operations import Cell, Commit, Lookup, Operation, OperationGen, RollBack
from kvref.protocol.replies import Reply
from kvref.server.pool import Pool
from kvref.storage.mysql.connection import Link
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

    link: Link | None = None
    written: bool = False
    acknowledged: bool = False

    @property
    def open(self) -> bool:
        """Tell whether there is anything to commit."""
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


@dataclass(slots=True, eq=False)
class Command:
    """A command on its way.

    Args:
        transaction: of its connection.
        begin: begins it, or begins it anew.
        done: takes the reply.
        steps: where it stands.
        operation: what it waits for.
        spelling: of the key that it looks up, where it waits with others for that.
        place: of that key.
        written: it has written something in the transaction that it shares.
    """

    transaction: Transaction
    begin: Callable[[], OperationGen]
    done: Callable[[Reply], None]
    steps: OperationGen
    operation: Operation
    spelling: Spelling = 0
    place: Hashable = None
    written: bool = False

    @property
    def key(self) -> Cell:
        """Return what it looks up."""
        assert isinstance(self.operation, Lookup)
        return self.operation.key
