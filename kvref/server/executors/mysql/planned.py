"""Planned commands over a database server: groups that are read by one statement, decided, and written in one commit.

One connection to the database reads for gets, another one carries out groups with writes. While a statement runs, the
commands of all clients queue for the next group. A command that is rejected, blocked by a lock or based on outdated
data leaves its group and runs alone, without delay for the others; a group that fails is carried out in halves.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from enum import Enum, auto
from functools import partial
from itertools import chain
from typing import Any, Final, cast

from kvref.engine.dispatch import execute
from kvref.engine.operations import LockWaitError
from kvref.engine.plans import record
from kvref.engine.plans.plan import CachedRow
from kvref.engine.values import RefusedError
from kvref.errors import ConfigError, KvrefError
from kvref.protocol.replies import Reply, ServerError
from kvref.server.executors.base import encoded_reply
from kvref.server.executors.mysql.batches import OpenBatches
from kvref.server.executors.mysql.cached_reads import CachingReader, read_parts
from kvref.server.executors.mysql.command import Command, RowLocks, Runner, Transaction
from kvref.server.executors.mysql.group import Group
from kvref.server.executors.mysql.pool import DedicatedConnection, Pool
from kvref.server.executors.mysql.replica_reads import Secondary
from kvref.server.executors.mysql.runs import (
    PlannedLine,
    Run,
    RunQueue,
    Task,
    has_cas,
    regrouped,
    runs_of,
    settle,
    tasks_of,
)
from kvref.server.scheduler import BaseScheduler, Work, halves, refused
from kvref.server.slots import Replies, Slots
from kvref.storage.base import PRIMARY
from kvref.storage.isolation import READ_COMMITTED, Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import HangError, LostError, RetryableError
from kvref.storage.mysql.planned_rows import MySQLRows
from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.server")

MIN_CONNECTIONS: Final = 4  # with fewer all of them are for single commands
MIN_GROUP: Final = 2
MAX_BYTES: Final = 16 << 20  # of rows that one SELECT returns, if no value is longer than those that were read
# Cached rows need no statement: so many times as many gets may be answered in one group.
CACHED_GROUP_FACTOR: Final = 8
_BYTES_OF_KEY: Final = 1024  # in a statement
# Seconds for which the commands of a table run one by one after a session had locked the whole table: in a group they
# would block commands for other tables.
BACK_OFF: Final = 5.0


class Planned(Enum):
    """Which commands of a connection may be planned."""

    NONE = auto()
    GETS_OUTSIDE = auto()  # gets outside transactions
    IN_BATCH = auto()  # all, in the open transaction of their connection; gets outside transactions form groups
    IN_GROUP = auto()  # all, in groups with those of other connections


# Connections that carry out groups: one reads, another one writes. In a batch, each client writes on its own one.
_CONNECTIONS: Final = {Planned.NONE: 0, Planned.GETS_OUTSIDE: 1, Planned.IN_BATCH: 1, Planned.IN_GROUP: 2}


def planned(isolation: Isolation, *, cached: bool, alone: bool) -> Planned:
    """Return which commands may be planned with these settings.

    Args:
        cached: there is a row cache.
        alone: connections use no other store.
    """
    if cached and isolation.batches:
        return Planned.GETS_OUTSIDE
    if isolation.ends_with_command:
        return Planned.IN_GROUP
    if isolation.reads_begin or not alone:
        return Planned.NONE
    return Planned.GETS_OUTSIDE if isolation.level > READ_COMMITTED else Planned.IN_BATCH


def connections_of_groups(store: MySQLStore, isolation: Isolation, *, alone: bool) -> int:
    """Return how many connections carry out groups; 0: each command runs alone.

    With batches, another connection must be left for the transactions of clients.

    Args:
        alone: connections use no other store.

    Raises:
        ConfigError: too few connections for the row cache, or for secondaries.
    """
    login, cached = store.login, store.row_cache is not None
    few = login.max_connections(batches=isolation.batches) < MIN_CONNECTIONS or login.together < MIN_GROUP
    if login.reads != PRIMARY and isolation.batches:
        raise ConfigError(
            f"store {login.text}: reads={login.reads} needs daemon_memcached_r_batch_size=1 and"
            " daemon_memcached_w_batch_size=1, because batches are transactions on the primary"
        )
    if store.vitess and isolation.batches:
        raise ConfigError(
            f"store {login.text}: Vitess needs daemon_memcached_r_batch_size=1 and daemon_memcached_w_batch_size=1,"
            " because a batch may have rows of several shards, which no transaction commits together"
        )
    if few and (cached or login.reads != PRIMARY):
        what = "the row cache" if cached else f"reads={login.reads}"
        raise ConfigError(
            f"store {login.text}: {what} needs connections={MIN_CONNECTIONS} and coalesce={MIN_GROUP} or more"
        )
    if few or (isolation.batches and not cached and login.max_connections(batches=True) <= MIN_CONNECTIONS):
        return 0
    return _CONNECTIONS[planned(isolation, cached=cached, alone=alone)]


class MySQLScheduler(BaseScheduler[MySQLRows]):
    """Carry out the planned commands of all connections; `connect` returns a connection for groups."""

    def __init__(
        self,
        runner: Runner,
        store: MySQLStore,
        isolation: Isolation,
        connect: Callable[[], DedicatedConnection],
        pool: Pool,
        locks: RowLocks,
    ) -> None:
        self._runner = runner
        self._isolation = isolation
        self._group_limit = store.login.together
        super().__init__()
        self._reading, self._writing = connect(), connect()
        cache = store.row_cache
        self.caching = None if cache is None else CachingReader(store, self._reading, isolation, cache, self._width)
        self._reads = RunQueue(self._read, self._reads_width, runner, self.run)
        self._writes = RunQueue(self._write, self._width, runner, self.run)
        self._replica = None if store.login.reads == PRIMARY else Secondary(store)
        self._from_secondary = None if self._replica is None else RunQueue(self._read_secondary, self._width, runner)
        self._batches = OpenBatches(
            runner, pool, isolation, locks, self._width, self._finish, self._reads.add
        )  # fmt: skip
        self._backed_off: dict[str, float] = {}  # until when (loop time), by table

    async def close(self) -> None:
        """Close the connections; nothing may run."""
        if self.caching is not None:
            await self.caching.close()
        if self._replica is not None:
            await self._replica.close()
        await self._reading.close()
        await self._writing.close()

    def run(self) -> None:
        """Queue all plans for groups."""
        self._scheduled = False
        lines = {each.detach(): each.background for each in self._slots}
        self._slots.clear()
        works, self._works = self._works, []
        for work in works:
            plans, work.plans = work.plans, []
            for run in runs_of(work, plans, lines, by_cas=self._replica is not None):
                run.out.unfilled += len(run.plans)
                if run.line.waiting or not run.line.admits(run):
                    run.line.waiting.append(run)
                else:
                    self._queue(run)
            work.writers.clear()

    def _queue(self, run: Run) -> None:
        line = run.line
        line.running += len(run.plans)
        line.writes = run.writes
        if self._batches.takes(run):
            self._batches.add(run)
            return
        queue = self._writes if run.writes else self._reads
        if self._from_secondary is not None and self._isolation.reads_together:
            primary = run.writes or line.transaction.primary_only or has_cas(run.plans[0])
            queue = queue if primary else self._from_secondary
        queue.add(run)

    def _finish(self, tasks: Sequence[Task], *, block_gets: bool = True) -> None:
        """Put replies into their places, and queue the commands that have waited for them.

        Args:
            block_gets: gets of the rows wait for these commands, see `record.blocks_gets`.
        """
        places: dict[Replies, int] = {}
        lines: dict[Replies, PlannedLine] = {}
        for task in tasks:
            out: Any = task.plan[3]
            out[task.plan[4]] = task.reply
            places[out] = places.get(out, 0) + 1
            lines[out] = task.line
        if block_gets and self.caching is not None:
            for task in tasks:
                task.work.rows.written(task.word)
        for out, count in places.items():
            self._completed(lines[out], out, count)

    def _completed(self, line: PlannedLine, out: Replies, count: int) -> None:
        """Send the replies of a list if that many more places complete it, and queue what has waited for them."""
        line.running -= count
        while line.waiting and line.admits(line.waiting[0]):
            self._queue(line.waiting.pop(0))
        out.unfilled -= count
        if not out.unfilled:
            line.slots.completed(out)

    def _width(self, rows: MySQLRows) -> int:
        """Return how many rows of a mapping one statement may read, so that neither it nor its answer is too large."""
        width = min(self._group_limit, MAX_BYTES // rows.largest)
        longest = self._reading.longest or self._writing.longest
        return max(1, width if longest is None else min(width, longest // _BYTES_OF_KEY))

    def _reads_width(self, rows: MySQLRows) -> int:
        """Return how many keys of a mapping gets may be answered at once: cached rows need no statement."""
        return self._width(rows) * (1 if self.caching is None else CACHED_GROUP_FACTOR)

    async def _read(self, work: Work[MySQLRows], runs: list[Run]) -> None:
        runs = self._without_blocked(work, runs)
        if not runs:
            return
        try:
            work.rows.require_live()
            rows, busy = await self._rows_of(work, [*chain.from_iterable([each.words for each in runs])])
        except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
            await self._retry(self._reads, work, runs, error)
            return
        self._answer_gets(work, runs, rows, busy)

    def _answer_gets(
        self, work: Work[MySQLRows], runs: list[Run], rows: Mapping[bytes, CachedRow], busy: Set[bytes]
    ) -> None:
        work.bound.now = int(time.time())
        left = [self._decide_gets(work, run, rows, busy) for run in runs]
        work.bound.settle()
        for run, waiting in zip(runs, left, strict=True):
            if run.line.transaction.batch is not None:
                run.line.slots.owner.note_batch()
            if waiting:
                self._leave(waiting)
            if len(waiting) < len(run.plans):
                self._completed(run.line, run.out, len(run.plans) - len(waiting))

    async def _read_secondary(self, work: Work[MySQLRows], runs: list[Run]) -> None:
        """Carry out gets of one mapping on a secondary, on the primary those that it cannot answer."""
        assert self._replica is not None, "only then gets are queued for it"
        secondary, counts = self._replica, self._replica.counts
        runs = self._without_blocked(work, runs)
        on_time: list[Run] = []
        try:
            if secondary.ready and work.rows.live:
                writes = {run.line.transaction.last_write for run in runs}
                late = await secondary.late({each for each in writes if each is not None})
                on_time = [run for run in runs if run.line.transaction.last_write not in late]
                counts.behind += sum([len(run.words) for run in runs]) - sum([len(run.words) for run in on_time])
                words = [*dict.fromkeys(chain.from_iterable([each.words for each in on_time]))]
                if words:
                    rows, busy = await secondary.call(read_parts, work.rows, words, self._width(work.rows))
            else:
                counts.unavailable += sum([len(run.words) for run in runs])
        except Exception:  # noqa: BLE001 - logged; the primary answers, or reports its own error
            counts.unavailable += sum([len(run.words) for run in on_time or runs])
            on_time = []
        for run in runs:
            if run not in on_time:
                self._reads.add(run)
        if on_time:
            counts.gets += sum([len(run.words) for run in on_time])
            self._answer_gets(work, on_time, rows, busy)

    def _rows_of(
        self, work: Work[MySQLRows], words: list[bytes]
    ) -> Awaitable[tuple[Mapping[bytes, CachedRow], Set[bytes]]]:
        if self.caching is not None:
            return self.caching.read(work.rows, words)
        return self._reading.call(read_parts, work.rows, [*dict.fromkeys(words)], self._width(work.rows))

    @staticmethod
    def _decide_gets(work: Work[MySQLRows], run: Run, rows: Mapping[bytes, CachedRow], busy: Set[bytes]) -> list[Task]:
        """Decide the gets of a run, and return those that must wait for a lock: a row of theirs is `busy`."""
        left: list[Task] = []
        batch, cached = run.line.transaction.batch, work.rows.cached is not None
        for plan in run.plans:
            decide, word, command, out, place = plan
            if busy and not busy.isdisjoint(word if isinstance(word, tuple) else (word,)):
                left.append(Task(work, plan, run.line))
                continue
            try:
                if isinstance(word, bytes):
                    out[place] = decide(rows[word], word, command)[0]
                else:
                    out[place] = decide([rows[each] for each in word], word, command)
            except RefusedError as refusal:
                out[place], _, _ = refused(work, plan, refusal)
            else:
                if batch is not None and not batch.reads_unbatched:
                    batch.read_apart(1 if isinstance(word, bytes) else batch.reads_of(len(word)))
            if cached and record.blocks_gets(plan):
                work.rows.written(plan[1])  # type: ignore[arg-type]  # a word: no get of several shows accesses
        return left

    async def _write(self, work: Work[MySQLRows], runs: list[Run]) -> None:
        """Carry out commands of one mapping that may write, in one transaction."""
        runs = self._without_blocked(work, runs)
        if not runs:
            return
        group = Group(work, self._writing, self._width(work.rows))
        tasks = [task for run in runs for task in tasks_of(run)]
        try:
            work.rows.require_live()
            await group.carry_out(tasks)
            reason, hang = await group.end()
        except Exception as error:  # noqa: BLE001 - as for reads
            for each in reversed(tasks):
                each.take_back()
            if self._writing.in_transaction:
                await self._writing.call(MySQLConnection.roll_back)
            await self._retry(self._writes, work, runs, error)
            return
        if self._replica is not None:
            for line in {each.line for each in group.done if each.written}:
                if line.transaction.last_write is not None:
                    line.transaction.last_write.note(self._writing.last_gtid)
        lost = [each for each in group.done if each.written or each.identity in group.written] if reason else []
        torn = {record.several_of(each.plan) for each in lost} - {None}  # a gat has one reply
        if torn:
            lost = [each for each in group.done if each in lost or record.several_of(each.plan) in torn]
        committed = [each for each in group.done if each not in lost] if lost else group.done
        settle(work, committed)
        for each in lost:
            self._reject(each, ServerError(reason or ""))
        self._finish(committed)
        if hang is not None:
            self._hang([*group.left, *group.rest], hang)
            return
        self._leave(group.left)
        if group.rest:
            self._writes.put_back(work, regrouped(group.rest))

    def _without_blocked(self, work: Work[MySQLRows], runs: list[Run]) -> list[Run]:
        """Return commands without those that run alone: after one of the same connection, or of a locked table."""
        locked = self._backed_off.get(work.rows.mapping.source, 0) > self._loop.time()
        free: list[Run] = []
        for run in runs:
            if locked or run.line.unbatched:
                self._leave(tasks_of(run))
            else:
                free.append(run)
        return free

    async def _retry(self, queue: RunQueue, work: Work[MySQLRows], runs: list[Run], error: Exception) -> None:
        """Carry out a group that has failed in halves, and a single command alone."""
        tasks = [task for run in runs for task in tasks_of(run)]
        if isinstance(error, HangError):
            self._hang(tasks, error)
            return
        if isinstance(error, LockWaitError):  # a session has locked the whole table
            self._backed_off[work.rows.mapping.source] = self._loop.time() + BACK_OFF
            self._leave(tasks)
            return
        if not work.rows.live or isinstance(error, LostError) or len(tasks) == 1:
            if not isinstance(error, KvrefError):
                _log.error("a group of commands failed", exc_info=error)
            stale = isinstance(error, RetryableError | LostError)
            if stale:
                self._runner.set_schema_checked(anew=True)
            self._leave(tasks, stale=stale)
            return
        first, second = halves(tasks)
        queue.put_back(work, regrouped(second))  # behind what the first half leaves for the next group
        await queue.carry_out(work, regrouped(first))

    def _hang(self, tasks: Iterable[Task], error: HangError) -> None:
        """Fail commands, and all that wait for a group: they would time out too."""
        self._runner.set_schema_checked(anew=False)
        failed = [*tasks, *self._take_queued()]
        while failed:
            for each in failed:
                self._reject(each, ServerError(str(error)))
            failed = self._take_queued()  # what has waited for them

    def _take_queued(self) -> list[Task]:
        queues = [each for each in (self._reads, self._writes, self._from_secondary) if each is not None]
        return [task for queue in queues for run in queue.take_all() for task in tasks_of(run)]

    def _reject(self, task: Task, reply: Reply) -> None:
        task.reply = task.work.rejected(task.plan, reply)
        task.work.bound.settle()
        self._finish([task], block_gets=record.blocks_gets(task.plan))

    def _leave(self, tasks: Sequence[Task], *, stale: bool = False) -> None:
        """Run commands that have left their groups alone, those of one connection one after another."""
        for each in tasks:
            each.line.unbatched.append(each)
            if len(each.line.unbatched) == 1:
                self._run_unbatched(each, stale=stale)

    def _run_unbatched(self, task: Task, *, stale: bool) -> None:
        """Run a command by steps, which waits for locks and tries again."""
        if self._replica is None:  # else gets before it may still be read from a secondary
            task.line.slots.send_before(cast(Replies, task.plan[3]), task.plan[4])
        of_line = task.line.transaction
        if of_line.session is not None:  # a get, which its batch counts
            transaction, session = of_line, of_line.session
        else:
            transaction, session = self._runner.begin(), task.work.bound.session.clone()
            transaction.last_write, transaction.primary_only = of_line.last_write, of_line.primary_only
        begin = partial(execute, session, record.record_of(task.plan), int(time.time()))

        def done(reply: Reply) -> None:
            session.settle()
            if transaction is not of_line:
                self._runner.end(transaction)
            else:
                task.line.slots.owner.note_batch()
            task.reply = encoded_reply(task.plan, reply, session.written_cas)
            line = task.line
            line.unbatched.pop(0)
            following = line.unbatched[0] if line.unbatched else None
            self._finish([task], block_gets=record.blocks_gets(task.plan))
            if following is not None:
                self._run_unbatched(following, stale=stale)

        running = Command(begin, done, transaction)
        if stale or running.start():
            self._runner.run_unbatched(running, stale=stale)
        else:
            self._runner.reply(running)


class PlansOfConnection:
    """Takes the plans of the connection with a transaction, see `PlanQueue`."""

    def __init__(self, scheduler: MySQLScheduler, transaction: Transaction) -> None:
        self._scheduler = scheduler
        self._transaction = transaction

    def add(self, work: Work[MySQLRows], slots: Slots) -> None:
        line = slots.background
        # Connections share planners, and with each change of a table or setting the transaction of another one serves
        # them: what is planned then still waits for what was planned before.
        if line is None or line.owner is not self._scheduler:
            slots.background = PlannedLine(self._scheduler, self._transaction, slots)
        self._scheduler.add(work, slots)
