"""Planned commands of connections with batches of writes: carried out in the open transaction of their connection.

Commands that a connection sends at once share statements: one locks and reads their rows, another one writes them, and
a full batch is committed with that. Their replies are those of commands by steps: `kvref/engine/batch.py` counts them
one after another. What cannot be carried out so runs by steps: a command whose row is locked or that the table
rejects, and one after an error, which it raises in place of its first operation. Gets outside a transaction form groups
with those of other connections, see `planned.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from functools import partial
from typing import Any, Final

from kvref.engine.batch import Batch, Ending
from kvref.engine.dispatch import execute
from kvref.engine.operations import Commit, LockWaitError, RollBack
from kvref.engine.plans import record
from kvref.engine.plans.arithmetic import Arithmetic
from kvref.engine.plans.bound import ProbedBound
from kvref.engine.plans.plan import ABSENT, CachedRow
from kvref.engine.plans.store import Deletion, Storage
from kvref.engine.session import Session
from kvref.engine.values import RefusedError
from kvref.errors import KvrefError
from kvref.protocol.replies import Reply, ServerError
from kvref.server.executors.base import count_write, decided_write, encoded_reply
from kvref.server.executors.mysql.cached_reads import read_parts
from kvref.server.executors.mysql.command import Command, RowLocks, Runner, Transaction, end
from kvref.server.executors.mysql.pool import Pool
from kvref.server.executors.mysql.runs import PlannedLine, Run, Task, noting, regrouped, settle, tasks_of
from kvref.server.scheduler import Work
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import HangError, LostError, RetryableError
from kvref.storage.mysql.planned_rows import Found, MySQLRows, UncertainError
from kvref.storage.mysql.write_batch import Operation, carry_out_whole

_log = logging.getLogger("kvref.server")

# What a command by steps would meet, too, or has met: it must not wait for the same lock or answer twice.
_MET_AGAIN: Final = (LockWaitError, RetryableError, LostError, HangError)


class OpenBatches:
    """The open transactions of all connections with batches of writes, and the commands that are carried out in them.

    Args:
        width: returns how many rows of a mapping one statement may read.
        finish: puts the replies of commands into their places.
        read_outside: takes gets that belong to no transaction.
    """

    def __init__(
        self,
        runner: Runner,
        pool: Pool,
        isolation: Isolation,
        locks: RowLocks,
        width: Callable[[MySQLRows], int],
        finish: Callable[[Sequence[Task]], None],
        read_outside: Callable[[Run], None],
    ) -> None:
        self._runner = runner
        self._pool = pool
        self._isolation = isolation
        self._locks = locks
        self._width = width
        self._finish = finish
        self._read_outside = read_outside
        self._loop = asyncio.get_running_loop()

    @staticmethod
    def takes(run: Run) -> bool:
        """Return whether commands are for the transaction of their connection: they write, or it is open."""
        return run.line.transaction.session is not None and _joins(run)

    def add(self, run: Run) -> None:
        """Carry out commands after those of their connection that were added before."""
        line = run.line
        if line.batched is not None:
            line.batched.append(run)
            return
        line.batched = deque((run,))
        self._runner.start(self._carry_out(line, line.batched))

    async def _carry_out(self, line: PlannedLine, runs: deque[Run]) -> None:
        while runs:
            run = runs.popleft()
            tasks = tasks_of(run)
            while runs and runs[0].work is run.work and runs[0].writes is run.writes:
                tasks += tasks_of(runs.popleft())
            waiting = deque(tasks)
            while waiting:
                if not _joins(run):
                    for each in regrouped(waiting):
                        self._read_outside(each)
                    break
                await self._advance(line, run.work, waiting, writes=run.writes)
        line.batched = None

    async def _advance(self, line: PlannedLine, work: Work[MySQLRows], waiting: deque[Task], *, writes: bool) -> None:
        """Carry out the first commands that wait, or the first one by steps."""
        error: Exception | None = None
        finished: Sequence[Task] = ()
        continues = line.transaction.open
        try:
            finished = await (self._write if writes else self._read)(line, work, waiting)
        except (KvrefError, LockWaitError) as failure:
            # A step may succeed where a statement that locks without waiting, or a savepoint, has not.
            gone = line.transaction.connection is None or (continues and not line.transaction.open)
            if gone or (isinstance(failure, _MET_AGAIN) and not isinstance(failure, UncertainError)):
                error = failure
        except Exception:  # noqa: BLE001 - a server never ends because of a request
            _log.exception("planned commands failed")
        if not finished:
            await self._step(line, waiting.popleft(), error)
            return
        for _ in finished:
            waiting.popleft()
        settle(work, finished)
        line.slots.owner.note_batch()
        self._finish(finished)
        if not line.transaction.open:
            await line.transaction.release(self._pool)

    async def _write(self, line: PlannedLine, work: Work[MySQLRows], waiting: deque[Task]) -> Sequence[Task]:
        """Carry out the first commands that may write; return those that are finished, none: the first runs by steps.

        Raises KvrefError or LockWaitError, which the first one is to meet.
        """
        transaction, batch = line.transaction, _session(line).batch
        tasks = self._apart(line, work, waiting)
        if not tasks:
            return ()
        found = await self._lock(line, work, tasks)
        if not found:
            return ()
        before, written = batch.writes, False
        finished: list[Task] = []
        operations: list[Operation] = []
        reason: str | None = None
        try:
            ending = _decide(batch, work, tasks, found, finished, operations)
            written = bool(finished)
            if operations or ending is not None:
                assert transaction.connection is not None, "it has locked the rows"
                written, reason = False, None
                written, reason = await self._pool.in_thread(_write_and_end, transaction.connection, operations, ending)
        finally:
            if not written:
                batch.writes = before
                line.single_until = batch.number + 1
                for each in finished:
                    _forget(each)
        if not written:
            return ()
        transaction.written = transaction.acknowledged = transaction.written or bool(operations)
        if ending is Ending.COMMIT:
            self._committed(work, batch, finished[-1], reason)
        elif ending is Ending.ROLL_BACK:
            batch.reset()
        if ending is not None:
            self._note_end(transaction)
        return finished

    def _apart(self, line: PlannedLine, work: Work[MySQLRows], waiting: deque[Task]) -> list[Task]:
        """Return the first commands that can be carried out in one step: of different rows, and of no locked one."""
        rows, transaction, batch = work.rows, line.transaction, _session(line).batch
        if not rows.live:
            return []
        single = rows.may_conflict or line.single_until > batch.number or not self._locks.are_known(transaction)
        most = 1 if single else min(batch.writes_left, self._width(rows))
        apart: list[Task] = []
        seen: set[Hashable] = set()
        for task in waiting:
            if len(apart) >= most:
                break
            row = task.identity = rows.locked_row(task.word)
            if row is None or row in seen or not self._locks.is_free(transaction, row):
                break
            if _stops_before(work, task):
                break
            seen.add(row)
            apart.append(task)
        return apart

    async def _lock(self, line: PlannedLine, work: Work[MySQLRows], tasks: Sequence[Task]) -> Mapping[bytes, Found]:
        """Return the rows of some commands, which are locked then; none if one of them must wait.

        Raises as `_write`.
        """
        transaction = line.transaction
        continues = transaction.open
        self._locks.take(transaction, [each.identity for each in tasks])
        connection = await self._connection(transaction)
        words = [each.word for each in tasks]
        found: Mapping[bytes, Found] | None = None
        try:
            found = await self._pool.in_thread(work.rows.lock_all, connection, words)
        except UncertainError:
            if len(tasks) == 1:
                raise
        if found is not None:
            return {word: found[word] for word in words}
        # Others of these rows may be locked now: what follows locks one row after another.
        line.single_until = _session(line).batch.number + 1
        if not continues:
            await self._pool.in_thread(MySQLConnection.roll_back, connection)
            self._locks.release(transaction)
        return {}

    async def _read(self, line: PlannedLine, work: Work[MySQLRows], waiting: deque[Task]) -> Sequence[Task]:
        """Carry out the first gets, up to one that fills the batch; returns and raises as `_write`."""
        transaction, batch, rows = line.transaction, _session(line).batch, work.rows
        if not rows.live or self._isolation.shows_deletes:
            return ()
        width, reads = self._width(rows), 0
        tasks: list[Task] = []
        words: dict[bytes, None] = {}
        for task in waiting:
            several = _words(task)
            if tasks and len(words) + len(several) > width:
                break
            tasks.append(task)
            words.update(dict.fromkeys(several))
            reads += batch.reads_of(len(several))
            if batch.fills(reads=reads):
                break
        connection = await self._connection(transaction)
        found, busy = await self._pool.in_thread(read_parts, connection, rows, [*words], width)
        finished = _decide_gets(batch, work, tasks, found, busy)
        if finished and batch.fills():
            reason: str | None = None
            if transaction.open:
                _, reason = await self._pool.in_thread(_write_and_end, connection, (), Ending.COMMIT)
            self._committed(work, batch, finished[-1], reason)
        if not transaction.open:
            self._note_end(transaction)
        return finished

    async def _connection(self, transaction: Transaction) -> MySQLConnection:
        """Return where a transaction is; raises as `Pool.take`, CycleError: the server has ended the transaction."""
        connection = transaction.connection = transaction.connection or await self._pool.take()
        if transaction.acknowledged:
            connection.require_open()
        return connection

    @staticmethod
    def _committed(work: Work[MySQLRows], batch: Batch, task: Task, reason: str | None) -> None:
        """Note that a batch was committed, or why not: the reply of the command that has filled it says so."""
        lost = batch.ended(reason)
        if lost is not None:
            _forget(task)
            task.reply = work.rejected(task.plan, ServerError(lost))

    def _note_end(self, transaction: Transaction) -> None:
        transaction.written = transaction.acknowledged = False
        self._locks.release(transaction)

    async def _step(self, line: PlannedLine, task: Task, error: Exception | None) -> None:
        """Run a command by steps, which wait for locks, in the transaction of its connection.

        Args:
            error: what the command meets first.
        """
        transaction, session, plan = line.transaction, _session(line), task.plan
        several = record.several_of(plan)
        if several is not None and several.ends_before(plan[2][1]):
            task.reply = b""  # a word of a gat behind one that was refused
        else:
            out: Any = plan[3]
            line.slots.send_before(out, plan[4])
            identified = self._locks.are_identified(transaction)
            replied: asyncio.Future[Reply] = self._loop.create_future()
            begin = partial(execute, session, record.record_of(plan), int(time.time()))
            command = Command(begin, replied.set_result, transaction)
            command.error = error
            if command.start():
                self._runner.run_unbatched(command)
                reply = await replied
            else:
                reply = command.reply
            session.settle()
            row = task.work.rows.locked_row(task.word) if isinstance(task.word, bytes) else None
            if identified and transaction.open and row is not None:
                self._locks.identify(transaction, row)
            task.reply = encoded_reply(plan, reply, session.written_cas)
        line.slots.owner.note_batch()
        self._finish([task])


def _session(line: PlannedLine) -> Session:
    session = line.transaction.session
    assert session is not None, "its batch is counted"
    return session


def _joins(run: Run) -> bool:
    return _session(run.line).batch.joins(writes=run.writes, is_open=run.line.transaction.open)


def _words(task: Task) -> Sequence[bytes]:
    return (task.word,) if isinstance(task.word, bytes) else task.word


def _forget(task: Task) -> None:
    """Forget what the decision on a command has noted, and take its marks back."""
    task.take_back()
    task.counted.clear()
    task.events.clear()
    task.effects.clear()


def _stops_before(work: Work[MySQLRows], task: Task) -> bool:
    """Return whether a command ends before it comes to its row and locks it, which nothing but the command decides."""
    decide, word, command, _, _ = task.plan
    decider = getattr(decide, "__self__", None)
    if isinstance(decider, Deletion | Arithmetic) or (
        isinstance(decider, Storage) and decider.has_usual_numbers(command)
    ):
        return False
    bound = work.bound
    assert isinstance(bound, ProbedBound), "its commands are in batches"
    try:
        return not bound.reaches_row(partial(noting, task, decide, ABSENT, word, command))
    except RefusedError:
        return True
    finally:
        _forget(task)


def _decide(
    batch: Batch,
    work: Work[MySQLRows],
    tasks: Sequence[Task],
    found: Mapping[bytes, Found],
    finished: list[Task],
    operations: list[Operation],
) -> Ending | None:
    """Decide and count commands up to one that ends the transaction; return how.

    Args:
        found: their rows.
        finished: receives the commands that are decided.
        operations: receives what they write.
    """
    work.bound.now = int(time.time())
    for task in tasks:
        row = found[task.word]
        finished.append(task)
        task.reply, new, parameters = noting(task, decided_write, work, task.plan, row.row)
        if not work.bound.writing:
            _forget(finished.pop())
            break
        if new is not None:
            operations.append(work.rows.operation(task.word, row, new, parameters))
        ending = count_write(work.bound, batch, task.plan[2], new)
        if ending is not None:
            return ending
    return None


def _decide_gets(
    batch: Batch, work: Work[MySQLRows], tasks: Sequence[Task], found: Mapping[bytes, CachedRow], busy: Set[bytes]
) -> list[Task]:
    """Decide and count gets up to one that must wait or is rejected; return those before it."""
    work.bound.now = int(time.time())
    finished: list[Task] = []
    for task in tasks:
        decide, word, command, _, _ = task.plan
        words = _words(task)
        if not busy.isdisjoint(words):
            break
        try:
            if isinstance(word, bytes):
                task.reply = noting(task, decide, found[word], word, command)[0]
            else:
                task.reply = noting(task, decide, [found[each] for each in words], word, command)
        except RefusedError:
            _forget(task)
            break
        finished.append(task)
        for _ in range(batch.reads_of(len(words))):
            batch.count_read()
    return finished


def _write_and_end(
    connection: MySQLConnection, operations: Sequence[Operation], ending: Ending | None
) -> tuple[bool, str | None]:
    """Write rows and end the transaction; return whether they are written, and why the commit has failed.

    If they are not written, the transaction goes on. Raises as `carry_out_whole`.
    """
    if operations and not carry_out_whole(connection, operations):
        return False, None
    if ending is None:
        return True, None
    return True, end(connection, Commit() if ending is Ending.COMMIT else RollBack(), acknowledged=True)
