"""Run sessions on a database server: each connection's transaction is one of the server's, on its own connection.

Planned commands are carried out in groups (`planned.py`), all others by steps, one by one. A client without a
transaction uses no database connection. Each statement waits in a thread, so that a lock blocks only its own client. If
the data that a command saw is out of date (deadlock, concurrent insert, DDL, lost connection), the command runs again,
unless acknowledged writes are lost. bench/README.md explains why threads are used.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable, Coroutine
from typing import Any, Final

from kvref.engine import operations as ports
from kvref.engine.mapping import Directory
from kvref.engine.operations import (
    Commit,
    DeadlockError,
    FixSnapshot,
    LockWaitError,
    OperationGen,
    RollBack,
    TransactionLostError,
)
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.words import Words, ordinary_mapping
from kvref.engine.session import Session
from kvref.errors import StoreError
from kvref.protocol import commands as c
from kvref.protocol.replies import Reply
from kvref.protocol.rules import WireRules
from kvref.server.commits import SETTLED, Commits
from kvref.server.executors.mysql.command import Command, Planners, Transaction
from kvref.server.executors.mysql.planned import MySQLScheduler, connections_of_groups
from kvref.server.executors.mysql.pool import DedicatedConnection, Pool, RowCounts
from kvref.server.executors.mysql.reads import without_deleted
from kvref.server.planner import Planner
from kvref.server.work import Work
from kvref.storage.base import PRIMARY, SESSION
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import CycleError, LostError, RetryableError
from kvref.storage.mysql.mapped_table import MappedTable
from kvref.storage.mysql.plans import MySQLRows, unplanned
from kvref.storage.mysql.replicas import LastWrite
from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.server")

TRIES: Final = 4
# Tries of a command that loses a deadlock before anything of its transaction was answered, each after a pause of up to
# so many seconds: of six connections that add and delete one key, one in a thousand loses four times in a row.
DEADLOCK_TRIES: Final = 20
DEADLOCK_PAUSE: Final = 0.02
# Seconds between two checks of the mapped tables for DDL that makes no statement fail. The check runs concurrently
# with the commands; after a pause, it runs before the first command, which would otherwise use old definitions.
LOOK_EVERY: Final = 1.0
PAUSE: Final = 2.0


class MySQLExecutor:
    """Carries out the commands of all connections against one database server.

    Args:
        store: where rows live.
        isolation: who sees what; a later change of the level counts from the next transaction.

    Attributes:
        plans: see `Executor`.

    Raises:
        ConfigError: too few connections for batches, or for the row cache.
    """

    def __init__(self, store: MySQLStore, isolation: Isolation) -> None:
        self.store = store
        self._isolation = isolation
        self._loop = asyncio.get_running_loop()
        together = connections_of_groups(store, isolation)
        self._pool = Pool(store, isolation, together)
        self._transactions: dict[Transaction, None] = {}  # in the order in which they began
        self._running: set[asyncio.Task[None]] = set()
        self._looked = self._loop.time()
        self._looking: asyncio.Task[None] | None = None
        self._counts = RowCounts(self._pool)
        self._checker = self._connect()
        self._planned = MySQLScheduler(self, store, isolation, self._connect) if together else None
        self._works: dict[MappedTable, Work[MySQLRows]] = {}
        self._planners: Planners = {}
        if not isolation.row_locks:
            _log.warning(
                "innodb_api_disable_rowlock=1 has no effect with mysql://: the database makes writes wait for row locks"
            )

    def _connect(self) -> DedicatedConnection:
        return DedicatedConnection(self.store, self._isolation, self._pool)

    def begin(self, reads: str = "") -> Transaction:
        """Return the transaction of a new connection, see `Executor`."""
        reads = self.store.reads_for(reads)
        last_write = LastWrite() if reads == SESSION else None
        transaction = Transaction(last_write=last_write, primary_only=reads == PRIMARY)
        self._transactions[transaction] = None
        return transaction

    def run(
        self, transaction: Transaction, begin: Callable[[], OperationGen], done: Callable[[Reply], None]
    ) -> Reply | None:
        """Run a command.

        Args:
            transaction: transaction of the connection, which runs one command at a time.
            begin: begins the command, also for a retry.
            done: called later with the reply, if the command needs the database.

        Returns:
            The reply, or None when `done` will be called.
        """
        now = self._loop.time()
        up_to_date = self.up_to_date(now)
        command = Command(begin, done, transaction)
        if not self._needs_database(command, waits=command.start()):
            return command.reply
        self.alone(command, stale=not up_to_date and not isinstance(command.operation, ports.CountRows))
        return None

    def commits_of(self, transaction: Transaction) -> Commits:  # noqa: ARG002 - see `Executor`
        """Return none: a reply is given after the commit that it waits for."""
        return SETTLED

    def up_to_date(self, now: float) -> bool:
        """Return whether the tables have been looked at shortly before some loop time, as planned commands need it."""
        since = now - self._looked
        if LOOK_EVERY < since <= PAUSE and self._looking is None:
            self._looking = self.start(self._look_behind())
        return since <= PAUSE

    def looked(self, *, anew: bool) -> None:
        """See `Runner`."""
        self._looked = -math.inf if anew else self._loop.time()

    def alone(self, command: Command, *, stale: bool = False) -> None:
        """See `Runner`."""
        self.start(self._carry_out(command, stale))

    def reply(self, command: Command) -> None:
        """See `Runner`; what fails behind it is that connection's and not that of the others."""
        self._loop.call_soon(command.done, command.reply)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """See `Runner`."""
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _needs_database(self, command: Command, *, waits: bool) -> bool:
        """Complete operations that need no database; return whether the command waits for another one."""
        while waits and self._does_nothing(command):
            waits = command.send(None)
        return waits

    def planner(self, transaction: Transaction, session: Session, wire_rules: WireRules) -> Planner | None:
        """See `Executor`."""
        mapping = None if self._planned is None else ordinary_mapping(session)
        if mapping is None or (self._isolation.batches and not self._reads_apart(transaction, session)):
            return None
        table = self.store.tables(self.store.canonical(mapping))
        kind = table, session.access.rights, session.bound
        # If secondaries answer gets, what each connection has written last decides which of them may.
        shared = self.store.login.reads == PRIMARY and not self._isolation.read_batch
        planners = self._planners if shared else transaction.planners
        if self._isolation.read_batch:
            transaction.batch = session.batch
        if kind not in planners:
            for each in [each for each, found in planners.items() if found is not None and not found.live]:
                del planners[each]
            planners[kind] = self._planner_of(table, session, wire_rules, transaction)
        found = planners[kind]
        return found if found is not None and found.live else None

    def _reads_apart(self, transaction: Transaction, session: Session) -> bool:
        """Return whether a get that comes next is in no transaction, and may show rows of the row cache."""
        return self._isolation.reads_committed and not transaction.open and not session.batch.writes

    def _planner_of(
        self, table: MappedTable, session: Session, wire_rules: WireRules, transaction: Transaction
    ) -> Planner | None:
        identities = self.store.identities(table.mapping)
        if self._planned is None or unplanned(table.mapping, identities):
            return None
        work = self._works.get(table)
        if work is None:
            self._works = {each: work for each, work in self._works.items() if work.rows.live}
            bound = Bound(session, table.mapping)
            rows = MySQLRows(bound, table, identities, self._isolation, session.shared.directory)
            if self._planned.caching is not None and self.store.row_cache is not None:
                rows.use_cache(self.store.row_cache, self._planned.caching.may_show)
            work = self._works[table] = Work(bound, rows)
        words = Words(session, c.Get if self._isolation.batches else object)
        return Planner(work, words, self._planned.of(transaction), wire_rules, self.up_to_date)

    def end(self, transaction: Transaction) -> None:
        """Forget the transaction of a connection that is gone; what it has not committed goes with it."""
        self._transactions.pop(transaction, None)
        if transaction.connection is not None:
            self.start(transaction.release(self._pool))

    def commit(self) -> None:
        """Do nothing: what was answered is committed, or in an open batch."""

    async def read_directory(self) -> Directory:
        """Read the configuration, see `MySQLStore.read_directory`."""
        directory, self.store.problems = await self._pool.in_thread(self.store.load_directory)
        return self.store.adopt(directory)

    async def check(self) -> None:
        """Check that the server answers a query, on a dedicated connection; raises StoreError if it does not."""
        await self.start(self._checker.check())

    async def close(self) -> None:
        """Wait for running commands, commit open transactions, then close the connections."""
        while self._running:
            await asyncio.wait(self._running)
        if self._planned is not None:
            await self._planned.close()
        await self._checker.close()
        for transaction in list(self._transactions):
            if transaction.connection is not None:
                reason = await transaction.finish(self._pool, Commit() if transaction.acknowledged else RollBack())
                if reason is not None:
                    _log.error("commit of a batch failed: %s", reason)
                await transaction.release(self._pool)
        await self._pool.close()

    async def _carry_out(self, command: Command, stale: bool) -> None:
        transaction = command.transaction
        try:
            await self._to_reply(command, stale)
        except Exception:  # noqa: BLE001 - logged whole
            command.fail()
        if command.failed and not transaction.acknowledged:
            await transaction.finish(self._pool, RollBack())
        transaction.acknowledged = transaction.written
        if not transaction.open:
            await transaction.release(self._pool)
        command.done(command.reply)

    async def _to_reply(self, command: Command, stale: bool) -> None:
        """Run a command up to its reply; restart it if the data that it saw is out of date."""
        others = TRIES - 1  # remaining attempts after errors other than a deadlock
        for left in reversed(range(DEADLOCK_TRIES)):
            last = not (left and others)
            failure: Exception | None = None
            try:
                if stale:
                    failure = await self._look_again(last=last)
                    if not command.start():
                        return
                await self._all(command, failure, last=last)
            except CycleError:
                stale = True
                await asyncio.sleep(random.uniform(0, DEADLOCK_PAUSE))  # noqa: S311 - no secret
            except (RetryableError, LostError):
                stale = True
                others -= 1
            else:
                return
        raise AssertionError("the last try gives a reply")

    async def _look_again(self, *, last: bool) -> Exception | None:
        """Look at the mapped tables; returns why that cannot be done, for the command to answer."""
        try:
            await self._look()
        except StoreError as error:
            if isinstance(error, LostError) and not last:
                raise
            return error
        return None

    async def _all(self, command: Command, failure: Exception | None, *, last: bool) -> None:
        """Answer the operations of a command, the first one with a failure where one is given."""
        waits = True
        while waits:
            answer = None
            if failure is None:
                try:
                    answer = await self._answer(command)
                except (StoreError, LockWaitError, RetryableError) as error:
                    failure = error
                if failure is not None:
                    if isinstance(command.operation, Commit) and not isinstance(failure, LockWaitError):
                        answer = f"commit: {failure}"
                        if not last:
                            await self._refused(command, answer)
                            raise failure
                        failure = None
                    else:
                        failure = await self._failure(command.transaction, failure, last=last)
            if failure is None:
                waits = command.send(answer)
            else:
                waits, failure = command.throw(failure), None

    def _does_nothing(self, command: Command) -> bool:
        match command.operation:
            case Commit() | RollBack():
                return not command.transaction.open
            case FixSnapshot():
                return command.transaction.open or not self._isolation.keeps_snapshot
            case _:
                return False

    async def _answer(self, command: Command) -> Any:
        if self._does_nothing(command):
            return None
        transaction, operation = command.transaction, command.operation
        assert operation is not None, "a command that has ended is not carried out"
        match operation:
            case Commit() | RollBack():
                return await transaction.finish(self._pool, operation)
            case ports.CountRows():
                return await self._counts.of(operation, self.start)
            case ports.PurgeExpired():
                return await self._pool.call_outside(MySQLConnection.purge, operation)
            case ports.ListRows():
                return await self._pool.call_outside(MySQLConnection.execute, operation)
            case ports.LoadMapping() | ports.Recheck() if transaction.open:
                # Not from the transaction's snapshot, and no table that is only looked at stays locked against DDL.
                answer = await self._pool.call_outside(MySQLConnection.execute, operation)
            case _:
                connection = transaction.connection = transaction.connection or await self._pool.take()
                answer = await self._pool.in_thread(connection.execute, operation)
                if ports.takes_lock(operation) and not isinstance(operation, ports.Lookup) and answer is None:
                    transaction.written = True
                if self._isolation.shows_deletes and isinstance(operation, ports.Lookup | ports.Scan):
                    answer = await without_deleted(self._pool, self._isolation, connection, operation, answer)
        self.store.apply_schema_result(operation, answer)
        return answer

    async def _refused(self, command: Command, reason: str) -> None:
        """Start another batch for a command whose commit was rejected, before the command runs again."""
        await command.transaction.release(self._pool)
        command.send(reason)

    async def _failure(self, transaction: Transaction, error: Exception, *, last: bool) -> Exception:
        """Return the exception to raise in a command whose operation failed.

        Raises:
            AgainError, LostError: the command must run again.
        """
        lost = transaction.acknowledged and not transaction.open
        again = isinstance(error, RetryableError | LostError)
        if lost or (again and not transaction.acknowledged):
            await transaction.finish(self._pool, RollBack())
        if not transaction.open:
            # A restarted command checks the tables first, for which it needs a connection.
            await transaction.release(self._pool)
        if again and not lost and not last:
            raise error
        if isinstance(error, CycleError):
            return DeadlockError("deadlock")
        if lost:
            return TransactionLostError(str(error))
        return StoreError(str(error)) if isinstance(error, RetryableError) else error

    async def _look_behind(self) -> None:
        try:
            await self._look()
        except (StoreError, RetryableError) as error:
            _log.warning("cannot inspect the mapped tables: %s", error)
        finally:
            self._looking = None

    async def _look(self) -> None:
        self._looked = self._loop.time()
        self.store.update_mappings(await self._pool.call_outside(MySQLConnection.recheck, self.store.mappings_in_use()))
