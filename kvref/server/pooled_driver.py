"""Between sessions and a database server: each connection's transaction is one of the server's, on a link of its own.

A connection whose transaction is over holds no link. Each statement waits in a thread, so that what waits for a lock
stops only its own connection. Where the database says that what a command saw is out of date (deadlock, a row that came
up meanwhile, DDL, a lost link) the command begins anew, unless acknowledged writes are gone. Why threads:
bench/README.md.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from kvref.engine import operations
from kvref.engine.mapping import Directory
from kvref.engine.operations import (
    Commit,
    DeadlockError,
    FixSnapshot,
    LockWaitError,
    Operation,
    OperationGen,
    RollBack,
    TransactionLostError,
)
from kvref.engine.session import Session
from kvref.errors import StoreError
from kvref.protocol.replies import Reply, ServerError
from kvref.protocol.rules import WireRules
from kvref.server.carried import Command, Transaction
from kvref.server.counts import Counts
from kvref.server.deleted import without_deleted
from kvref.server.own_link import OwnLink
from kvref.server.plain_ways import PlainWays
from kvref.server.pool import Pool
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.errors import AgainError, CycleError, LostError
from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.server")

TRIES: Final = 4
# Tries of a command that loses a deadlock before anything of its transaction was answered, each after a pause of up to
# so many seconds: of six connections that add and delete one key, one in a thousand loses four times in a row.
DEADLOCK_TRIES: Final = 20
DEADLOCK_PAUSE: Final = 0.02
# Seconds between two looks at the mapped tables for DDL that no statement fails of; beside the commands, or after a
# pause before the first one, which would else be answered from what the tables were long ago.
LOOK_EVERY: Final = 1.0
PAUSE: Final = 2.0


class PooledDriver:
    """Answer the operations of all sessions from one database server.

    Args:
        store: where rows live.
        isolation: who sees what; a later change of the level counts from the next transaction.
        apart: how many of the connections are not for transactions.

    Raises:
        ConfigError: too few connections for batches.
    """

    unsettled = None  # a reply is given after the commit that it waits for

    def __init__(self, store: MySQLStore, isolation: Isolation, apart: int = 0) -> None:
        self.store = store
        self._isolation = isolation
        self._loop = asyncio.get_running_loop()
        self._pool = Pool(store, isolation, apart)
        self._transactions: set[Transaction] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._looked = self._loop.time()
        self._looking: asyncio.Task[None] | None = None
        self._counts = Counts(self._pool)
        self._checker = OwnLink(store, isolation, self._pool)
        if not isolation.row_locks:
            _log.warning(
                "innodb_api_disable_rowlock=1 has no effect with mysql://: the database makes writes wait for row locks"
            )

    def begin(self) -> Transaction:
        """Return the transaction of a new connection."""
        transaction = Transaction()
        self._transactions.add(transaction)
        return transaction

    def run(
        self, transaction: Transaction, begin: Callable[[], OperationGen], done: Callable[[Reply], None]
    ) -> Reply | None:
        """Run a command's steps.

        Args:
            transaction: of its connection, which runs one command at a time.
            begin: begins the command, or begins it anew.
            done: called later with the reply, where the command needs the database.

        Returns:
            The reply, or None when `done` will be called.
        """
        since = self._loop.time() - self._looked
        if LOOK_EVERY < since <= PAUSE and self._looking is None:
            self._looking = self._start(self._look_behind())
        steps = begin()
        try:
            operation = steps.send(None)
            while self._does_nothing(transaction, operation):
                operation = steps.send(None)
        except StopIteration as stop:
            reply: Reply = stop.value
            return reply
        stale = since > PAUSE and not isinstance(operation, operations.CountRows)
        self._go_on(Command(transaction, begin, done, steps, operation), stale=stale)
        return None

    def look(self) -> bool:
        """Return False: nothing is kept; the tables are looked at beside the commands."""
        return False

    def shortcut(self, session: Session, wire_rules: WireRules) -> None:
        """Return None: every command asks the database."""

    def _go_on(self, command: Command, *, stale: bool) -> None:
        """Carry a command out from its operation on; `stale`: it begins anew, after a look at the tables."""
        self._start(self._carry_out(command, stale))

    def plain_ways(self, session: Session, wire_rules: WireRules) -> PlainWays | None:  # noqa: ARG002 - the protocol's
        """Return None: each has its own statement."""
        return None

    def end(self, transaction: Transaction) -> None:
        """Forget the transaction of a connection that is gone; what it has not committed goes with it."""
        self._transactions.discard(transaction)
        if transaction.link is not None:
            self._start(transaction.release(self._pool))

    def when_settled(self, number: int, settled: Callable[[str], None]) -> None:  # noqa: ARG002 - the protocol's
        """Call back at once: no reply waits for a commit."""
        settled("")

    def commit(self) -> None:
        """Do nothing: what was answered is committed, or in an open batch."""

    async def read_directory(self) -> Directory:
        """Read the configuration, see `MySQLStore.read_directory`."""
        directory, self.store.problems = await self._pool.in_thread(self.store.look_up_directory)
        return self.store.adopt(directory)

    async def check(self) -> None:
        """Ask the server for an answer, on a connection beside the others; raises StoreError where there is none."""
        await self._start(self._checker.check())

    async def close(self) -> None:
        """Wait for the commands that run, commit what is open, then close the links."""
        while self._running:
            await asyncio.wait(self._running)
        await self._checker.close()
        for transaction in list(self._transactions):
            if transaction.link is not None:
                reason = await transaction.finish(self._pool, Commit() if transaction.acknowledged else RollBack())
                if reason is not None:
                    _log.error("commit of a batch failed: %s", reason)
                await transaction.release(self._pool)
        await self._pool.close()

    def _start(self, steps: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(steps)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _carry_out(self, command: Command, stale: bool) -> None:
        transaction = command.transaction
        try:
            reply = await self._reply(transaction, command.begin, command.steps, command.operation, stale)
        except Exception:  # noqa: BLE001 - logged whole
            # A server never dies of a request; the log has what to mend.
            _log.exception("a command failed")
            reply = ServerError("internal error, see the server's log")
            if not transaction.acknowledged:
                await transaction.finish(self._pool, RollBack())
        transaction.acknowledged = transaction.written
        if not transaction.open:
            await transaction.release(self._pool)
        command.done(reply)

    async def _reply(
        self,
        transaction: Transaction,
        begin: Callable[[], OperationGen],
        steps: OperationGen,
        operation: Operation,
        stale: bool,
    ) -> Reply:
        others = TRIES - 1  # more tries after what is no deadlock
        for left in reversed(range(DEADLOCK_TRIES)):
            last = not (left and others)
            failure: Exception | None = None
            try:
                if stale:
                    steps.close()
                    failure = await self._look_again(last=last)
                    steps = begin()
                    operation = steps.send(None)
                return await self._all(transaction, steps, operation, failure, last=last)
            except StopIteration as stop:
                reply: Reply = stop.value
                return reply
            except CycleError:
                stale = True
                await asyncio.sleep(random.uniform(0, DEADLOCK_PAUSE))  # noqa: S311 - no secret
            except (AgainError, LostError):
                stale = True
                others -= 1
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

    async def _all(
        self,
        transaction: Transaction,
        steps: OperationGen,
        operation: Operation,
        failure: Exception | None,
        *,
        last: bool,
    ) -> Reply:
        try:
            while True:
                answer = None
                if failure is None:
                    try:
                        answer = await self._answer(transaction, operation)
                    except (StoreError, LockWaitError, AgainError) as error:
                        if isinstance(operation, Commit):
                            answer = f"commit: {error}"
                            if not last:
                                await self._refused(transaction, steps, answer)
                                raise
                        else:
                            failure = await self._failure(transaction, error, last=last)
                if failure is None:
                    operation = steps.send(answer)
                else:
                    thrown, failure = failure, None
                    operation = steps.throw(thrown)
        except StopIteration as stop:
            reply: Reply = stop.value
        return reply

    def _does_nothing(self, transaction: Transaction, operation: Operation) -> bool:
        match operation:
            case Commit() | RollBack():
                return not transaction.open
            case FixSnapshot():
                return transaction.open or not self._isolation.keeps_snapshot
            case _:
                return False

    async def _answer(self, transaction: Transaction, operation: Operation) -> Any:
        if self._does_nothing(transaction, operation):
            return None
        match operation:
            case Commit() | RollBack():
                return await transaction.finish(self._pool, operation)
            case operations.CountRows():
                return await self._counts.of(operation, self._start)
            case operations.ListRows():
                async with self._pool.outside() as outside:
                    return await self._pool.in_thread(outside.execute, operation)
            case operations.LoadMapping() | operations.Recheck() if transaction.open:
                # Not from the transaction's snapshot, and no table that is only looked at stays locked against DDL.
                async with self._pool.outside() as outside:
                    answer = await self._pool.in_thread(outside.execute, operation)
            case _:
                link = transaction.link = transaction.link or await self._pool.take()
                answer = await self._pool.in_thread(link.execute, operation)
                if operations.takes_lock(operation) and not isinstance(operation, operations.Lookup) and answer is None:
                    transaction.written = True
                if self._isolation.shows_deletes and isinstance(operation, operations.Lookup | operations.Scan):
                    answer = await without_deleted(self._pool, self._isolation, link, operation, answer)
        self.store.heed(operation, answer)
        return answer

    async def _refused(self, transaction: Transaction, steps: OperationGen, reason: str) -> None:
        """Let a command whose commit was refused begin another batch, before it begins anew."""
        await transaction.release(self._pool)
        with suppress(StopIteration):
            steps.send(reason)

    async def _failure(self, transaction: Transaction, error: Exception, *, last: bool) -> Exception:
        """Return what to throw into the steps of a command whose operation failed.

        Raises:
            AgainError, LostError: begin the command anew.
        """
        lost = transaction.acknowledged and not transaction.open
        again = isinstance(error, AgainError | LostError)
        if lost or (again and not transaction.acknowledged):
            await transaction.finish(self._pool, RollBack())
        if not transaction.open:
            # Who begins anew looks at the tables first, for which it needs a link.
            await transaction.release(self._pool)
        if again and not lost and not last:
            raise error
        if isinstance(error, CycleError):
            return DeadlockError("deadlock")
        if lost:
            return TransactionLostError(str(error))
        return StoreError(str(error)) if isinstance(error, AgainError) else error

    async def _look_behind(self) -> None:
        try:
            await self._look()
        except (StoreError, AgainError) as error:
            _log.warning("cannot inspect the mapped tables: %s", error)
        finally:
            self._looking = None

    async def _look(self) -> None:
        self._looked = self._loop.time()
        async with self._pool.outside() as link:
            self.store.take_over(await self._pool.in_thread(link.look, self.store.watched()))
