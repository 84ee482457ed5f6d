"""Run sessions on SQLite: run their operations, park those that wait for another writer, share commits.

A write is acknowledged after its commit, or once its batch contains it: while the store is dirty, connections hold
their replies, and `when_settled` reports whether their commit became durable. `group_commit.py` has when that is: up to
1 ms after the first write while commands keep coming, or once the previous commit is on the disk.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from kvref.engine.mapping import Directory
from kvref.engine.operations import Commit, LockWaitError, OperationGen, RollBack, TransactionLostError, takes_lock
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.words import Words, ordinary_mapping
from kvref.engine.session import Session
from kvref.errors import StoreError
from kvref.protocol.commands import Get, Noop, Right
from kvref.protocol.replies import Reply
from kvref.protocol.rules import WireRules
from kvref.server.executors.base import Execution
from kvref.server.executors.sqlite.batches import BatchLine, BatchScheduler, LinePlanner
from kvref.server.executors.sqlite.group_commit import GroupCommit
from kvref.server.planner import Planner
from kvref.server.planners.base import TextPlanner
from kvref.server.scheduler import Scheduler, Work
from kvref.storage.isolation import Isolation
from kvref.storage.sqlite.batched_rows import BatchedRows
from kvref.storage.sqlite.errors import BusyError
from kvref.storage.sqlite.planned_rows import SQLiteRows, unplanned
from kvref.storage.sqlite.row_cache import CachedTable
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.sqlite.transactions import LockedError, Transaction, Transactions
from kvref.storage.sqlite.wal import HEADER

SLICE: Final = 500  # operations of one command before the other connections have their turn
# Seconds between two checks whether the file was deleted or replaced, or can be read again. Commits are detected at
# once, and each transaction begins with a check.
REFRESH_INTERVAL: Final = 0.001
RETRY_AFTER: Final = 0.005  # seconds between two tries for SQLite's write lock


class _Command(Execution):
    """A command being carried out: its connection's transaction, and until when (loop time) it may wait for a lock."""

    __slots__ = ("deadline", "timer", "transaction")

    def __init__(
        self, begin: Callable[[], OperationGen], done: Callable[[Reply], None], transaction: Transaction
    ) -> None:
        super().__init__(begin, done)
        self.transaction = transaction
        self.deadline: float | None = None
        self.timer: asyncio.TimerHandle | None = None


class SQLiteExecutor:
    """Answer all operations from one SQLite file; a write waits `lock_wait` seconds for another writer.

    Args:
        alone: connections use no other store; else batches of writes run by steps, which commit in all stores.
    """

    def __init__(self, store: SQLiteStore, isolation: Isolation, lock_wait: float, *, alone: bool = True) -> None:
        self.store = store
        self._alone = alone
        self._lock_wait = lock_wait
        self._loop = asyncio.get_running_loop()
        self._isolation = isolation
        self._commits = GroupCommit(store, self)
        self.transactions = Transactions(store, isolation, self._commits.commit_store)
        # Where every write is a transaction, nothing outlives a command: one without content serves all connections.
        self._common = None if isolation.batches else Transaction()
        self._parked: deque[_Command] = deque()  # for the file's write lock
        self._retrying = False
        self._locked: list[_Command] = []  # for another transaction
        self._waking = False
        self._watch = store.wal_index
        self._refreshed_at = -math.inf  # loop time of the last check for changes by other processes
        self._valid = False  # the cached rows are current
        self.commands = 0  # how many ran so far
        self._down = ""  # why nothing can be answered from the store
        self._scheduler = Scheduler(self._commits, lock_wait)
        self._batch_scheduler = BatchScheduler(self, self._commits)
        self._works: dict[tuple[CachedTable, bool], Work[Any]] = {}  # by table and whether each write is a transaction
        self._lines: dict[Transaction, BatchLine] = {}  # of the connections whose writes are batches
        self.planners: dict[tuple[CachedTable, Right, bool], Planner] = {}

    def begin(self, reads: str = "") -> Transaction:  # noqa: ARG002 - see `Executor`
        return self._common or Transaction()

    def run(
        self, transaction: Transaction, begin: Callable[[], OperationGen], done: Callable[[Reply], None]
    ) -> Reply | None:
        self.refresh(self._loop.time())
        command = _Command(begin, done, transaction)
        return self._advance(command) if command.start() else command.reply

    def commits_of(self, transaction: Transaction) -> GroupCommit:  # noqa: ARG002 - see `Executor`
        return self._commits

    def planner(
        self, transaction: Transaction, session: Session, wire_rules: WireRules
    ) -> TextPlanner | None:  # fmt: skip
        isolation = self._isolation
        if isolation.keeps_snapshot or not (self._alone or isolation.direct):
            return None
        mapping = ordinary_mapping(session)
        if mapping is None:
            return None
        table = self.store.cache.table(mapping, dirty=self.store.dirty)
        kind = table, session.access.rights, session.bound
        if kind not in self.planners:
            self.planners = {each: planner for each, planner in self.planners.items() if each[0].live}
            self.planners[kind] = self._planner_of(table, session, wire_rules)
        found = self.planners[kind]
        if not found.live:
            return None
        if isolation.direct:
            if self._alone and session.batch.open:
                session.batch.reset()  # reads that see no snapshot, and writes that are committed: nothing is open
            return found
        line = self._lines.get(transaction)
        if line is None:
            line = self._lines[transaction] = BatchLine(session, transaction)
        return LinePlanner(found, self._works[table, False].rows, line, self._batch_scheduler, isolation)

    def _planner_of(self, table: CachedTable, session: Session, wire_rules: WireRules) -> Planner:
        mapping, direct = table.mapping, self._isolation.direct
        work = self._works.get((table, direct))
        if work is None:
            self._works = {each: work for each, work in self._works.items() if each[0].live}
            bound = Bound(session, mapping)
            rows: Any = SQLiteRows(self.store, table, bound, self._parked)
            if not direct:
                rows = BatchedRows(rows, bound, self.store, self.transactions, self._isolation)
            work = self._works[table, direct] = Work(bound, rows)
        by_steps = unplanned(self.store, mapping) or (not direct and self.store.has_rules(mapping))
        scheduler = self._scheduler if direct else self._batch_scheduler
        return Planner(work, Words(session, Get | Noop if by_steps else object), scheduler, wire_rules, self.refresh)

    def end(self, transaction: Transaction) -> None:
        self._lines.pop(transaction, None)
        self.transactions.roll_back(transaction)
        self.ended()

    async def read_directory(self) -> Directory:
        return self.store.read_directory()

    async def check(self) -> None:
        """Check the file; raises StoreError if it cannot be read."""
        self.refresh(self._loop.time())
        if self._down:
            raise StoreError(self._down)

    async def close(self) -> None:
        self._scheduler.run()
        self._batch_scheduler.run()
        self._commits.close()
        self.transactions.close()

    def refresh(self, now: float) -> bool:
        """Detect changes to the file by other processes; return whether its cached rows are valid at a loop time.

        Called whenever bytes arrive: the next command must see a commit that another process has made before it.
        """
        self.commands += 1
        if now - self._refreshed_at < REFRESH_INTERVAL:
            watch = self._watch
            if not self._valid or watch.index[:HEADER] == watch.header:
                return self._valid
        self._refreshed_at = now
        self._valid = False
        try:
            self.store.refresh()
        except BusyError:
            pass  # the next refresh checks again
        except StoreError as error:
            self._down = str(error)
        else:
            self._down, self._valid = "", True
        return self._valid

    def commit(self) -> None:
        """Commit the pending writes; commands that wait for them are notified when they are on disk."""
        self._commits.commit()

    def committed(self, *, lost: bool) -> int:
        """Handle a commit, which failed if `lost`; return how many pending writes were lost with it."""
        writes = self.transactions.settled(lost=lost) if self.transactions.touched else 0
        if lost:
            self.ended()
        return writes

    def _advance(self, command: _Command, error: Exception | None = None) -> Reply | None:
        """Answer operations, or raise an error in the command, until it has a reply or waits for a lock."""
        try:
            for _ in range(SLICE):
                answer: Any = None
                if error is None:
                    try:
                        answer = self._answer(command)
                    except (StoreError, TransactionLostError) as failure:
                        error = failure
                waits = command.send(answer, error)
                if not waits:
                    return command.reply
                error = None
                command.deadline = None
        except BusyError:
            self._park(command)
            self._commit_soon()
            return None
        except LockedError:
            self._await_lock(command)
            self._commit_soon()
            return None
        except Exception:  # noqa: BLE001 - logged whole
            command.fail()
            return command.reply
        self._loop.call_soon(self._go_on, command)
        return None

    def _answer(self, command: _Command) -> Any:
        operation = command.operation
        assert operation is not None, "a command that has ended is not carried out"
        if command.deadline is None and self._parked and not self.store.dirty and takes_lock(operation):
            raise BusyError("others wait for the write lock")
        if self._down and not isinstance(operation, RollBack):
            raise StoreError(self._down)
        try:
            answer = self.transactions.execute(command.transaction, operation)
        except LockedError as locked:
            try:
                self.transactions.wait(command.transaction, locked.holder)
            except TransactionLostError:
                self.ended()
                raise
            raise
        if isinstance(operation, Commit | RollBack):
            self.ended()
        return answer

    def _go_on(self, command: _Command, error: Exception | None = None) -> None:
        reply = self._advance(command, error)
        if reply is not None:
            command.done(reply)

    def _commit_soon(self) -> None:
        """Commit what a command that waits has committed of its connection's batch: no reply does it meanwhile."""
        number = self._commits.unsettled
        if number is not None:
            self._commits.when_settled(number, lambda _: None)

    def _await_lock(self, command: _Command) -> None:
        if command.deadline is None:
            command.deadline = self._loop.time() + self._lock_wait
        command.timer = self._loop.call_at(command.deadline, self._give_up, command)
        self._locked.append(command)

    def _give_up(self, command: _Command) -> None:
        self._locked.remove(command)
        command.transaction.waits_for = None
        self._go_on(command, LockWaitError())

    def ended(self) -> None:
        """Wake the commands that wait for a transaction, soon: one has ended."""
        if self._locked and not self._waking:
            self._waking = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = False
        locked, self._locked = self._locked, []
        for command in locked:
            assert command.timer is not None
            command.timer.cancel()
            command.transaction.waits_for = None
        for command in locked:
            self._go_on(command)

    def _park(self, command: _Command) -> None:
        if command.deadline is None:
            command.deadline = self._loop.time() + self._lock_wait
            self._parked.append(command)
        else:
            self._parked.appendleft(command)
        if not self._retrying:
            self._retrying = True
            self._loop.call_later(RETRY_AFTER, self._retry)

    def _retry(self) -> None:
        now = self._loop.time()
        while self._parked:
            command = self._parked.popleft()
            assert command.deadline is not None
            self._go_on(command, LockWaitError() if now >= command.deadline else None)
            if self._parked and self._parked[0] is command:
                break  # the lock is still taken: the others would fail too
        self._retrying = bool(self._parked)
        if self._retrying:
            self._loop.call_later(RETRY_AFTER, self._retry)
