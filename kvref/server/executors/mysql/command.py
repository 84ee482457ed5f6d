"""A command over a database server, the transaction of its connection, and the rows that such transactions lock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from kvref.engine.batch import Batch
from kvref.engine.operations import Commit, LockWaitError, OperationGen, RollBack
from kvref.engine.session import LOCK_WAIT, Session
from kvref.protocol.commands import Right
from kvref.protocol.replies import Reply
from kvref.server.executors.base import Execution
from kvref.server.executors.mysql.pool import Pool
from kvref.server.planner import Planner
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import CycleError, LostError
from kvref.storage.mysql.mapped_table import MappedTable

# By table, rights, whether the connection is bound to a mapping, and kind of the commands; None: they are not planned.
Planners = dict[tuple[MappedTable, Right, bool, type], Planner | None]


class LastWrite:
    """The last write of one client connection, with reads=session: a secondary that answers its gets must have it.

    A secondary of a group executes transactions in the order of their commits (`replica_preserve_commit_order`, which
    Group Replication requires): the last write is there after all earlier ones.

    Attributes:
        gtid: of its commit; None: the connection has written nothing; "": not known, so that only the primary is
            certain to have it. A write that leaves every column as it is has no GTID, and its row may be younger than
            what a secondary has.
        reached: the connection to a secondary that has executed it.
    """

    __slots__ = ("gtid", "reached")

    def __init__(self) -> None:
        self.gtid: str | None = None
        self.reached: object = None

    def note(self, gtid: str) -> None:
        """Record a commit, or one whose outcome is not known."""
        self.gtid, self.reached = gtid, None


@dataclass(slots=True, eq=False)
class Transaction:
    """One connection's transaction.

    Args:
        connection: where it is, also while a command of it runs; None: nowhere.
        written: something is written in it.
        acknowledged: by a command that was answered.
        last_write: of the connection, None unless reads=session.
        primary_only: no secondary answers its gets.
        planners: of its commands, where they are not those of other connections too.
        batch: counts the gets that are planned; None: they need not be counted.
        session: of the connection, if its planned commands are carried out in this transaction; else None.
    """

    connection: MySQLConnection | None = None
    written: bool = False
    acknowledged: bool = False
    last_write: LastWrite | None = None
    primary_only: bool = False
    planners: Planners = field(default_factory=dict)
    batch: Batch | None = None
    session: Session | None = None

    @property
    def open(self) -> bool:
        """Return whether there is anything to commit."""
        return self.connection is not None and self.connection.in_transaction

    async def finish(self, pool: Pool, how: Commit | RollBack) -> str | None:
        """End it, but keep its connection; return why it could not be committed.

        Raises:
            CycleError, LostError, LockWaitError: it was not committed, and nothing that was in it had been answered.
        """
        acknowledged, written = self.acknowledged, self.written
        self.written = self.acknowledged = False
        if self.connection is None or not self.connection.in_transaction:
            return None
        reason: str | None = await pool.in_thread(end, self.connection, how, acknowledged)
        if written and self.last_write is not None and isinstance(how, Commit):
            self.last_write.note(self.connection.last_gtid)
        return reason

    async def release(self, pool: Pool) -> None:
        """Give its connection back, if it has one."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await pool.give_back(connection)


def end(connection: MySQLConnection, how: Commit | RollBack, acknowledged: bool) -> str | None:
    """End the open transaction of a connection; it blocks. Returns and raises as `Transaction.finish`.

    Args:
        acknowledged: something that was written in it was answered.
    """
    try:
        if isinstance(how, Commit):
            return connection.commit()
        connection.roll_back()
    except (CycleError, LostError) as error:
        if not acknowledged:
            raise
        return f"commit: {error}"
    except LockWaitError:
        if not acknowledged:
            raise
        return LOCK_WAIT
    return None


class RowLocks:
    """Rows by the transaction that has locked them, or is about to: what a batch may lock at once without a deadlock.

    A batch that has locked rows and waits for another one can be in a deadlock. Commands by steps lock one row after
    another, in their order. Several are locked by one statement only if no other batch of this process has locked one
    of them. Rows that other programs have locked are not known here.
    """

    def __init__(self) -> None:
        self._holders: dict[Hashable, Transaction] = {}
        self._rows: dict[Transaction, set[Hashable]] = {}
        self._unknown: set[Transaction] = set()  # with locks of rows that are not noted

    def is_free(self, transaction: Transaction, row: Hashable) -> bool:
        """Return whether no other transaction is known to have locked a row."""
        return self._holders.get(row, transaction) is transaction

    def are_known(self, transaction: Transaction) -> bool:
        """Return whether the rows are noted that the other transactions have locked."""
        return not self._unknown or self._unknown == {transaction}

    def are_identified(self, transaction: Transaction) -> bool:
        """Return whether the rows are noted that a transaction has locked."""
        return transaction not in self._unknown

    def take(self, transaction: Transaction, rows: Iterable[Hashable]) -> None:
        """Note rows that a transaction is about to lock."""
        noted = self._rows.setdefault(transaction, set())
        for row in rows:
            noted.add(row)
            self._holders[row] = transaction

    def take_unknown(self, transaction: Transaction) -> None:
        """Note that a transaction is about to lock rows by steps."""
        self._unknown.add(transaction)

    def identify(self, transaction: Transaction, row: Hashable) -> None:
        """Note the only row of a transaction that was not noted."""
        self._unknown.discard(transaction)
        self.take(transaction, (row,))

    def release(self, transaction: Transaction) -> None:
        """Note that a transaction has ended."""
        self._unknown.discard(transaction)
        for row in self._rows.pop(transaction, ()):
            if self._holders.get(row) is transaction:
                del self._holders[row]


class Command(Execution):
    """A command being carried out by steps in the transaction of its connection.

    Attributes:
        error: what its first operation has raised when it was planned; None: it was not tried.
    """

    __slots__ = ("error", "transaction")

    def __init__(
        self, begin: Callable[[], OperationGen], done: Callable[[Reply], None], transaction: Transaction
    ) -> None:
        super().__init__(begin, done)
        self.transaction = transaction
        self.error: Exception | None = None


class Runner(Protocol):
    """Runs single commands, and starts what carries out groups of planned ones, see `MySQLExecutor`."""

    def begin(self) -> Transaction: ...
    def end(self, transaction: Transaction) -> None: ...
    def set_schema_checked(self, *, anew: bool) -> None: ...
    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...
    def run_unbatched(self, command: Command, *, stale: bool = False) -> None: ...
    def reply(self, command: Command) -> None: ...
