"""Run sessions on a database server: each connection's transaction is one of the server's, on its own connection.

Planned commands are carried out in groups (`planned.py`), all others by steps, one by one. A client without a
transaction uses no database connection. Each statement waits in a thread, so that a lock blocks only its own client. If
the data that a command saw is out of date (deadlock, concurrent insert, DDL, lost connection), the command runs again,
unless acknowledged writes are lost. Decision D14 says why threads are used.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kvref.engine import operations
from kvref.engine.mapping import Directory, Mapping
from kvref.engine.operations import (
    Commit,
    DeadlockError,
    FixSnapshot,
    LockWaitError,
    Lookup,
    OperationGen,
    RollBack,
    Row,
    Scan,
    TransactionLostError,
)
from kvref.engine.plans.bound import Bound, ProbedBound
from kvref.engine.plans.words import Words, ordinary_mapping
from kvref.engine.session import Session
from kvref.errors import StoreError
from kvref.protocol import commands as c
from kvref.protocol.replies import Reply
from kvref.protocol.rules import WireRules
from kvref.server.executors.base import Executor
from kvref.server.executors.mysql.command import Command, LastWrite, Planners, RowLocks, Transaction
from kvref.server.executors.mysql.planned import (
    MySQLScheduler,
    Planned,
    PlansOfConnection,
    connections_of_groups,
    planned,
)
from kvref.server.executors.mysql.pool import DedicatedConnection, Pool, RowCounts
from kvref.server.planner import Planner
from kvref.server.scheduler import Work
from kvref.storage.base import PRIMARY, SESSION
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import CycleError, LostError, RetryableError
from kvref.storage.mysql.mapped_table import MappedTable
from kvref.storage.mysql.planned_rows import MySQLRows, unplanned
from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.server")

TRIES: Final = 4
# Tries of a command that loses a deadlock before anything of its transaction was answered, each after a pause of up to
# so many seconds: of six connections that add and delete one key, one in a thousand loses four times in a row.
DEADLOCK_TRIES: Final = 20
DEADLOCK_PAUSE: Final = 0.02
# Seconds between two checks of the mapped tables for DDL that makes no statement fail. The check runs concurrently
# with the commands; after a pause, it runs before the first command, which would otherwise use old definitions.
SCHEMA_CHECK_INTERVAL: Final = 1.0
MAX_SCHEMA_AGE: Final = 2.0


class MySQLExecutor(Executor):
    """Carries out all commands against one database server; raises ConfigError if it has too few connections.

    Args:
        alone: connections use no other store; else batches of writes run by steps, which commit in all stores.
    """

    def __init__(self, store: MySQLStore, isolation: Isolation, *, alone: bool = True) -> None:
        self.store = store
        self._alone = alone
        self._isolation = isolation
        self._loop = asyncio.get_running_loop()
        group_connections = connections_of_groups(store, isolation, alone=alone)
        self._pool = Pool(store, isolation, group_connections)
        self._transactions: dict[Transaction, None] = {}  # in the order in which they began
        self._running: set[asyncio.Task[None]] = set()
        self._schema_checked_at = self._loop.time()
        self._schema_check: asyncio.Task[None] | None = None
        self._counts = RowCounts(self._pool)
        self._checker = self._connect()
        self._locks = RowLocks()
        self._scheduler = (
            MySQLScheduler(self, store, isolation, self._connect, self._pool, self._locks)
            if group_connections
            else None
        )
        self._works: dict[MappedTable, Work[MySQLRows]] = {}
        self._planners: Planners = {}
        if not isolation.row_locks:
            _log.warning(
                "innodb_api_disable_rowlock=1 has no effect with mysql://: the database makes writes wait for row locks"
            )

    def _connect(self) -> DedicatedConnection:
        return DedicatedConnection(self.store, self._isolation, self._pool)

    def begin(self, reads: str = "") -> Transaction:
        reads = self.store.reads_for(reads)
        last_write = LastWrite() if reads == SESSION else None
        transaction = Transaction(last_write=last_write, primary_only=reads == PRIMARY)
        self._transactions[transaction] = None
        return transaction

    def run(
        self, transaction: Transaction, begin: Callable[[], OperationGen], done: Callable[[Reply], None]
    ) -> Reply | None:
        now = self._loop.time()
        up_to_date = self.up_to_date(now)
        command = Command(begin, done, transaction)
        waits = command.start()
        while waits and self._does_nothing(command):
            waits = command.send(None)
        if not waits:
            return command.reply
        self.run_unbatched(command, stale=not up_to_date and not isinstance(command.operation, operations.CountRows))
        return None

    def up_to_date(self, now: float) -> bool:
        """Return whether the tables were checked shortly before a loop time, as planned commands need it."""
        since = now - self._schema_checked_at
        if SCHEMA_CHECK_INTERVAL < since <= MAX_SCHEMA_AGE and self._schema_check is None:
            self._schema_check = self.start(self._check_schema_in_background())
        return since <= MAX_SCHEMA_AGE

    def set_schema_checked(self, *, anew: bool) -> None:
        """Note that the tables count as checked just now, or, with `anew`, that they must be before anything else."""
        self._schema_checked_at = -math.inf if anew else self._loop.time()

    def run_unbatched(self, command: Command, *, stale: bool = False) -> None:
        """Run a command outside of groups; `stale`: check the tables and restart it first."""
        self.start(self._carry_out(command, stale))

    def reply(self, command: Command) -> None:
        """Reply to a command that has ended, later: an error of its connection does not affect others."""
        self._loop.call_soon(command.done, command.reply)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start work that `close` waits for."""
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def planner(self, transaction: Transaction, session: Session, wire_rules: WireRules) -> Planner | None:
        mapping = None if self._scheduler is None else ordinary_mapping(session)
        if mapping is None:
            return None
        how = planned(self._isolation, cached=self.store.row_cache is not None, alone=self._alone)
        if how is Planned.IN_GROUP:
            transaction.batch = None
            if self._alone and session.batch.open:
                session.batch.reset()  # of reads, and nothing of them is open
            kinds: type | None = object
        else:
            kinds = self._planned_in_batch(transaction, session, how)
        if kinds is None:
            return None
        table = self.store.tables(self.store.canonical(mapping))
        kind = table, session.access.rights, session.bound, kinds
        # If secondaries answer gets, what each connection has written last decides which of them may.
        shared = self.store.login.reads == PRIMARY and transaction.batch is None
        planners = self._planners if shared else transaction.planners
        found = planners.get(kind)
        if kind not in planners or (found is not None and not found.live):
            for each in [each for each, planner in planners.items() if planner is not None and not planner.live]:
                del planners[each]
            found = planners[kind] = self._planner_of(table, session, wire_rules, transaction, kinds)
        return found if found is not None and found.live else None

    def _planned_in_batch(self, transaction: Transaction, session: Session, how: Planned) -> type | None:
        """Return which kind of commands of a connection with batches is planned now; None: no command."""
        isolation, cached = self._isolation, self.store.row_cache is not None
        transaction.batch = session.batch if isolation.read_batch or not cached else None
        if how is Planned.NONE:
            return None
        if how is Planned.IN_BATCH:
            transaction.session = session
            return object
        if isolation.reads_begin or transaction.open or session.batch.writes:
            return None
        return c.Get if isolation.reads_committed or not cached else None

    def _planner_of(
        self, table: MappedTable, session: Session, wire_rules: WireRules, transaction: Transaction, kinds: type
    ) -> Planner | None:
        if self._scheduler is None or unplanned(table):
            return None
        work = self._works.get(table)
        if work is None or not work.rows.live:
            self._works = {each: work for each, work in self._works.items() if work.rows.live}
            bound = (Bound if self._isolation.direct else ProbedBound)(session, table.mapping)
            rows = MySQLRows(bound, table, self._isolation, session.shared.directory)
            if self._scheduler.caching is not None and self.store.row_cache is not None:
                rows.use_cache(self.store.row_cache, self._scheduler.caching.may_show)
            work = self._works[table] = Work(bound, rows)
        words = Words(session, kinds)
        cached = work.rows.cached
        fresh = self.up_to_date if cached is None else partial(cached.check_again, self.up_to_date)
        return Planner(work, words, PlansOfConnection(self._scheduler, transaction), wire_rules, fresh)

    def end(self, transaction: Transaction) -> None:
        self._transactions.pop(transaction, None)
        self._locks.release(transaction)
        if transaction.connection is not None:
            self.start(transaction.release(self._pool))

    async def read_directory(self) -> Directory:
        directory, self.store.problems = await self._pool.in_thread(self.store.load_directory)
        return self.store.adopt(directory)

    async def check(self) -> None:
        """Query the server on a dedicated connection."""
        await self.start(self._checker.check())

    async def close(self) -> None:
        """Wait for running commands, commit open transactions, then close the connections."""
        while self._running:
            await asyncio.wait(self._running)
        if self._scheduler is not None:
            await self._scheduler.close()
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
            self._locks.release(transaction)
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
                    try:
                        await self._check_schema()
                    except StoreError as error:  # the answer to the command
                        if isinstance(error, LostError) and not last:
                            raise
                        failure = error
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
                            # The command runs again, in another batch.
                            await command.transaction.release(self._pool)
                            command.send(answer)
                            raise failure
                        failure = None
                    else:
                        failure = await self._failure(command.transaction, failure, last=last)
            waits, failure = command.send(answer, failure), None

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
        if command.error is not None:
            error, command.error = command.error, None
            raise error
        transaction, operation = command.transaction, command.operation
        assert operation is not None, "a command that has ended is not carried out"
        match operation:
            case Commit() | RollBack():
                return await transaction.finish(self._pool, operation)
            case operations.CountRows():
                return await self._counts.of(operation, self.start)
            case operations.PurgeExpired():
                return await self._pool.call_outside(MySQLConnection.purge, operation)
            case operations.ListRows():
                return await self._pool.call_outside(MySQLConnection.execute, operation)
            case operations.LoadMapping() | operations.Recheck() if transaction.open:
                # Not from the transaction's snapshot, and no table that is only checked stays locked against DDL.
                answer = await self._pool.call_outside(MySQLConnection.execute, operation)
            case _:
                if not self._isolation.direct and operations.takes_lock(operation):
                    self._locks.take_unknown(transaction)
                connection = transaction.connection = transaction.connection or await self._pool.take()
                answer = await self._pool.in_thread(connection.execute, operation)
                if operations.takes_lock(operation) and not isinstance(operation, operations.Lookup) and answer is None:
                    transaction.written = True
                if self._isolation.shows_deletes and isinstance(operation, operations.Lookup | operations.Scan):
                    answer = await _without_deleted(self._pool, self._isolation, connection, operation, answer)
        self.store.apply_schema_result(operation, answer)
        return answer

    async def _failure(self, transaction: Transaction, error: Exception, *, last: bool) -> Exception:
        """Return the error to raise in a command; raises RetryableError or LostError if the command must run again."""
        lost = transaction.acknowledged and not transaction.open
        retryable = isinstance(error, RetryableError | LostError)
        if lost or (retryable and not transaction.acknowledged):
            await transaction.finish(self._pool, RollBack())
        if not transaction.open:
            # A restarted command checks the tables first, for which it needs a connection.
            await transaction.release(self._pool)
        if retryable and not lost and not last:
            raise error
        if isinstance(error, CycleError):
            return DeadlockError("deadlock")
        if lost:
            return TransactionLostError(str(error))
        return StoreError(str(error)) if isinstance(error, RetryableError) else error

    async def _check_schema_in_background(self) -> None:
        try:
            await self._check_schema()
        except (StoreError, RetryableError) as error:
            _log.warning("cannot inspect the mapped tables: %s", error)
        finally:
            self._schema_check = None

    async def _check_schema(self) -> None:
        self._schema_checked_at = self._loop.time()
        self.store.update_mappings(await self._pool.call_outside(MySQLConnection.recheck, self.store.mappings_in_use()))


async def _without_deleted(
    pool: Pool, isolation: Isolation, connection: MySQLConnection, operation: Lookup | Scan, answer: Any
) -> Any:
    """Return the answer of a read without the rows that are deleted since; a scan is filled up to its limit again."""
    if isolation.reads_lock:
        return answer  # it has waited for whoever deletes
    if isinstance(operation, Lookup):
        if answer is None or operation.for_update:
            return answer
        return answer if await _present(pool, connection, operation.mapping, [answer]) else None
    page: list[Row] = answer
    rows = await _present(pool, connection, operation.mapping, page)
    # A range ends at the first NULL key (more:nullrange-003, more:nullrange-006).
    while len(rows) < operation.limit == len(page) and page[-1].key is not None:
        operation = replace(operation, low=page[-1].key, low_inclusive=False)
        page = await pool.in_thread(connection.execute, operation)
        rows += await _present(pool, connection, operation.mapping, page)
    return rows[: operation.limit]


async def _present(pool: Pool, connection: MySQLConnection, mapping: Mapping, rows: list[Row]) -> list[Row]:
    keys = [row.key for row in rows if row.key is not None]
    if not keys:
        return rows
    if connection.in_transaction:
        found = await pool.call_outside(MySQLConnection.present, mapping, keys)
    else:
        found = await pool.in_thread(connection.present, mapping, keys)
    return [row for row in rows if row.key is None or row.key in found]  # NULL cannot be looked up
