"""Planned commands over a database server: groups that are read by one statement, decided, and written in one commit.

One connection to the database reads for gets, another one carries out groups with writes. While a statement runs, the
commands of all clients queue for the next group. A command that is rejected, blocked by a lock or based on outdated
data leaves its group and runs alone, without delay for the others; a group that fails is carried out in halves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, cast

from kvref.engine.dispatch import execute
from kvref.engine.plans import record
from kvref.engine.plans.plan import CachedRow, Plan, RemovedError
from kvref.engine.values import RefusedError
from kvref.errors import KvrefError
from kvref.protocol.replies import Reply, ServerError
from kvref.server.executors.mysql.batching import MAX_BYTES, MIN_CONNECTIONS, Queued
from kvref.server.executors.mysql.command import Command, Runner, Transaction
from kvref.server.executors.mysql.pool import DedicatedConnection
from kvref.server.executors.mysql.writes import UNDONE
from kvref.server.slots import Replies, Slots
from kvref.server.work import Work
from kvref.storage.base import PRIMARY
from kvref.storage.isolation import Isolation
from kvref.storage.mysql import write_batch
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import AgainError, HangError, LostError
from kvref.storage.mysql.plans import Found, MySQLRows, Operation
from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.server")

# Turns of a group: commands of one row are carried out one after another, each reads what the one before has left.
MAX_TURNS: Final = 16
APART: Final = 2  # connections to the database


def takes_plans(store: MySQLStore, isolation: Isolation) -> bool:
    """Return whether commands over a store may be planned: there are connections for groups.

    With batches, each client has a transaction of its own. Rows that are cached, and those of secondaries, are read
    elsewhere.
    """
    enough = store.login.most(batches=False) >= MIN_CONNECTIONS + APART
    return enough and not isolation.batches and store.row_cache is None and store.login.reads == PRIMARY


class _Line:
    """The commands of one connection that are planned and have no reply yet, in order.

    The one rule of overtaking: gets pass gets, and writes go into the group of the writes before them; a command of the
    other kind waits for all before it, so that a connection reads what it has written and no later state. A command
    that has left its group keeps all that follow it waiting.
    """

    __slots__ = ("alone", "running", "waiting", "writes")

    def __init__(self) -> None:
        self.running = 0  # commands in a group, or in the queue for one
        self.writes = False  # they may write
        self.waiting: deque[_Run] = deque()
        self.alone: deque[_Task] = deque()  # have left their groups

    def admits(self, run: _Run) -> bool:
        """Return whether commands may be queued for a group now."""
        return not self.alone and (not self.running or self.writes is run.writes)


class _Run:
    """Planned commands of one connection behind each other that may all write, or all not.

    Args:
        work: of their mapping.
        line: of the connection.
        writes: they may write.
    """

    __slots__ = ("line", "plans", "work", "writes")

    def __init__(self, work: Work[MySQLRows], line: _Line, *, writes: bool) -> None:
        self.work = work
        self.line = line
        self.writes = writes
        self.plans: list[Plan] = []

    @property
    def words(self) -> list[bytes]:
        """Return the words of all keys."""
        words: list[bytes] = []
        for plan in self.plans:
            word = plan[1]
            if isinstance(word, tuple):
                words += word
            else:
                words.append(word)
        return words


class _Task:
    """A planned command that writes, or leaves its group, on its way to its reply.

    Args:
        work: of its mapping.
        plan: the command.
        line: of its connection.
    """

    __slots__ = ("counted", "effects", "events", "identity", "line", "plan", "reply", "word", "work", "written")

    def __init__(self, work: Work[MySQLRows], plan: Plan, line: _Line) -> None:
        self.work = work
        self.plan = plan
        self.line = line
        self.word: Any = plan[1]
        self.identity: Hashable = None
        self.reply = b""
        self.written = False
        self.counted: list[tuple[str, ...]] = []
        self.events: list[Any] = []
        self.effects: list[Callable[[], None]] = []


class MySQLScheduler:
    """Carry out the planned commands of all connections, see `kvref.server.scheduler.Scheduler`.

    Args:
        runner: starts tasks, and runs commands alone.
        connect: returns a connection for groups.
        begin, end: begin and end the transaction of a command that runs alone.
        together: maximum number of keys in one statement.
    """

    def __init__(
        self,
        runner: Runner,
        connect: Callable[[], DedicatedConnection],
        begin: Callable[[], Transaction],
        end: Callable[[Transaction], None],
        together: int,
    ) -> None:
        self._runner = runner
        self._begin, self._end = begin, end
        self._together = together
        self._loop = asyncio.get_running_loop()
        self._reading, self._writing = connect(), connect()
        self._reads = Queued(self._read, self._width, runner)
        self._writes = Queued(self._write, self._width, runner)
        self._works: list[Work[MySQLRows]] = []
        self._slots: list[Slots] = []
        self._lines: dict[int, _Line] = {}  # by the identity of the slots of a connection
        self._parts: dict[Replies, tuple[Slots, list[int]]] = {}
        self._scheduled = False

    async def close(self) -> None:
        """Close the connections; nothing may run."""
        await self._reading.close()
        await self._writing.close()

    def add(self, work: Work[MySQLRows], slots: Slots) -> None:
        """Carry out the plans of a mapping from the end of this turn on, see `Scheduler.add`."""
        slots.planned = True
        self._slots.append(slots)
        if work not in self._works:
            self._works.append(work)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.run)

    def run(self) -> None:
        """Queue all plans for groups."""
        self._scheduled = False
        slots, self._slots = self._slots, []
        lines: dict[Replies, _Line] = {}
        for each in slots:
            part = each.part()
            self._parts[part] = each, [0]
            lines[part] = self._lines.setdefault(id(each), _Line())
        works, self._works = self._works, []
        for work in works:
            plans, work.plans = work.plans, []
            for run in _runs(work, plans, lines):
                out = cast(Replies, run.plans[0][3])
                self._parts[out][1][0] += len(run.plans)
                if run.line.waiting or not run.line.admits(run):
                    run.line.waiting.append(run)
                else:
                    self._queue(run)
            work.writers.clear()

    def _queue(self, run: _Run) -> None:
        line = run.line
        line.running += len(run.plans)
        line.writes = run.writes
        (self._writes if run.writes else self._reads).add(run.work, run, len(run.words))  # type: ignore[arg-type]

    def _finish(self, task: _Task, reply: bytes) -> None:
        """Put a reply into its place, and queue the commands that have waited for it."""
        task.plan[3][task.plan[4]] = reply
        self._completed(task.line, cast(Replies, task.plan[3]), 1)

    def _completed(self, line: _Line, out: Replies, count: int) -> None:
        """Send the replies of a list if that many more places complete it, and queue what has waited for them."""
        line.running -= count
        while line.waiting and line.admits(line.waiting[0]):
            self._queue(line.waiting.popleft())
        slots, left = self._parts[out]
        left[0] -= count
        if not left[0]:
            del self._parts[out]
            slots.completed(out)
            if not slots.open:
                self._lines.pop(id(slots), None)

    def _width(self, work: Work[MySQLRows]) -> int:
        """Return how many keys of a mapping one statement may have."""
        return max(1, min(self._together, MAX_BYTES // work.rows.largest))

    async def _read(self, work: Work[MySQLRows], runs: list[_Run]) -> None:
        """Carry out gets of one mapping."""
        runs = self._without_blocked(runs)
        if not runs:
            return
        words = [*dict.fromkeys(chain.from_iterable([each.words for each in runs]))]
        try:
            work.rows.require_live()
            rows: dict[bytes, CachedRow] = await self._reading.call(_read_parts, work.rows, words, self._width(work))
        except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
            await self._retry(self._read, work, runs, error)
            return
        bound = work.bound
        bound.now = int(time.time())
        for run in runs:
            for plan in run.plans:
                decide, word, command, out, place = plan
                try:
                    if isinstance(word, bytes):
                        out[place] = decide(rows[word], word, command)[0]
                    else:
                        out[place] = decide([rows[each] for each in word], word, command)
                except RefusedError as refused:
                    out[place] = work.rejected(plan, refused.reply)
        bound.settle()
        for run in runs:
            self._completed(run.line, cast(Replies, run.plans[0][3]), len(run.plans))

    async def _write(self, work: Work[MySQLRows], runs: list[_Run]) -> None:
        """Carry out commands of one mapping that may write, in one transaction."""
        runs = self._without_blocked(runs)
        if not runs:
            return
        group = _Group(work, self._writing, self._width(work))
        try:
            work.rows.require_live()
            await group.carry_out([task for run in runs for task in _tasks(run)], self._decide)
            reason, hang = await group.end()
        except Exception as error:  # noqa: BLE001 - as for reads
            if self._writing.in_transaction:
                await self._writing.call(MySQLConnection.roll_back)
            await self._retry(self._write, work, runs, error)
            return
        lost = {each for each in group.done if each.written or each.identity in group.written} if reason else set()
        torn = {record.several_of(each.plan) for each in lost} - {None}  # a gat has one reply
        lost |= {each for each in group.done if record.several_of(each.plan) in torn}
        for each in group.done:
            if each in lost:
                continue
            work.bound.counted += each.counted
            work.bound.events += each.events
            work.bound.effects += each.effects
        work.bound.settle()  # before the next command of a client, which may be for `stats`
        for each in group.done:
            if each in lost:
                self._reject(each, ServerError(reason or ""))
            else:
                self._finish(each, each.reply)
        if hang is not None:
            self._hang([*group.left, *group.rest], hang)
            return
        self._leave(group.left)
        if group.rest:
            self._writes.queue.put_back(work, _again(group.rest))  # type: ignore[arg-type]

    def _without_blocked(self, runs: list[_Run]) -> list[_Run]:
        """Return commands but those of connections of which an earlier one runs alone: they follow it."""
        kept: list[_Run] = []
        for run in runs:
            if run.line.alone:
                self._leave(_tasks(run))
            else:
                kept.append(run)
        return kept

    async def _retry(
        self,
        carry_out: Callable[[Work[MySQLRows], list[_Run]], Any],
        work: Work[MySQLRows],
        runs: list[_Run],
        error: Exception,
    ) -> None:
        """Carry out a group that has failed in halves, and a single command alone."""
        tasks = [task for run in runs for task in _tasks(run)]
        if isinstance(error, HangError):
            self._hang(tasks, error)
            return
        if not work.rows.live or isinstance(error, LostError) or len(tasks) == 1:
            if not isinstance(error, KvrefError):
                _log.debug("a group failed: %r", error)
            stale = isinstance(error, AgainError | LostError)
            if stale:
                self._runner.looked(anew=True)
            self._leave(tasks, stale=stale)
            return
        half = len(tasks) // 2
        for part in (tasks[:half], tasks[half:]):
            await carry_out(work, _again(part))

    def _hang(self, tasks: Iterable[_Task], error: HangError) -> None:
        """Fail commands, and all that wait for a group: they would time out too."""
        self._runner.looked(anew=False)
        failed = [*tasks, *self._queued()]
        while failed:
            for each in failed:
                self._reject(each, ServerError(str(error)))
            failed = self._queued()  # what has waited for them

    def _queued(self) -> list[_Task]:
        """Take all commands that wait for a group."""
        runs = cast("list[_Run]", [*self._reads.queue.take_all(), *self._writes.queue.take_all()])
        return [task for run in runs for task in _tasks(run)]

    def _decide(self, task: _Task, found: dict[bytes, Found]) -> Operation | None:
        """Decide a command and keep its reply; return what it writes."""
        bound = task.work.bound
        decide, word, command, _, _ = task.plan
        assert isinstance(word, bytes), "only gets have several words"
        counted, bound.counted = bound.counted, []
        events, bound.events = bound.events, []
        effects, bound.effects = bound.effects, []
        operation: Operation | None = None
        try:
            row = found[word]
            task.reply, new, parameters = decide(row.row, word, command)
            if new is not None:
                operation = task.work.rows.operation(word, row, new, parameters)
        except RefusedError as refused:
            task.reply = task.work.rejected(task.plan, refused.reply)
            if isinstance(refused, RemovedError):
                operation = task.work.rows.operation(word, found[word], found[word].row, None)
        task.counted, bound.counted = bound.counted, counted
        task.events, bound.events = bound.events, events
        task.effects, bound.effects = bound.effects, effects
        return operation

    def _reject(self, task: _Task, reply: Reply) -> None:
        shown = task.work.rejected(task.plan, reply)
        task.work.bound.settle()
        self._finish(task, shown)

    def _leave(self, tasks: Sequence[_Task], *, stale: bool = False) -> None:
        """Run commands that have left their groups alone, those of one connection one after another."""
        for each in tasks:
            each.line.alone.append(each)
            if len(each.line.alone) == 1:
                self._alone(each, stale=stale)

    def _alone(self, task: _Task, *, stale: bool) -> None:
        """Run a command on the general path, which waits for locks and tries again."""
        transaction = self._begin()
        command = record.record_of(task.plan)
        session = task.work.bound.session.twin()
        begin = partial(execute, session, command, int(time.time()))

        def done(reply: Reply) -> None:
            self._end(transaction)
            if isinstance(reply, ServerError):
                cast(Replies, task.plan[3]).owner.rejected(reply)
            line = task.line
            line.alone.popleft()
            following = line.alone[0] if line.alone else None
            self._finish(task, record.encoded(task.plan, command, reply, session.written_cas))
            if following is not None:
                self._alone(following, stale=stale)

        running = Command(begin, done, transaction)
        if stale or running.start():
            self._runner.alone(running, stale=stale)
        else:
            self._runner.reply(running)


class _Group:
    """Commands of one mapping that share a transaction.

    Args:
        work: of the mapping.
        connection: for the transaction.
        width: maximum number of keys in one statement.

    Attributes:
        done: commands with a reply, which wait for the commit.
        left: commands that must run alone, in the order of each connection.
        rest: commands for the next group.
        written: identities of the rows that are written.
    """

    def __init__(self, work: Work[MySQLRows], connection: DedicatedConnection, width: int) -> None:
        self._work = work
        self._rows = work.rows
        self._connection = connection
        self._width = width
        self.done: list[_Task] = []
        self.left: list[_Task] = []
        self.rest: list[_Task] = []
        self._outcome: tuple[str | None, HangError | None] | None = None
        self.written: set[Hashable] = set()
        self._lines_left: set[_Line] = set()

    async def carry_out(
        self, tasks: Sequence[_Task], decide: Callable[[_Task, dict[bytes, Found]], Operation | None]
    ) -> None:
        """Carry out commands up to the commit, those of one row one after another; raises as `MySQLConnection`."""
        waiting = list(tasks)
        for each in waiting:
            each.written = False
            each.identity = self._rows.identity(each.word)
        for turn in range(MAX_TURNS + 1):
            if not waiting:
                return
            if turn == MAX_TURNS:
                self.rest = waiting
                return
            first: dict[Hashable, _Task] = {}
            rest: list[_Task] = []
            later: set[_Line] = set()  # of connections whose commands keep their order
            for each in waiting:
                if each.line in self._lines_left or each.identity is None:
                    self._leave([each])
                elif (
                    len(first) >= self._width or each.line in later or first.setdefault(each.identity, each) is not each
                ):
                    later.add(each.line)
                    rest.append(each)
            waiting = rest
            if first:
                await self._take_turn(list(first.values()), decide, last=not rest)

    async def _take_turn(
        self, tasks: list[_Task], decide: Callable[[_Task, dict[bytes, Found]], Operation | None], *, last: bool
    ) -> None:
        words = [each.word for each in tasks]
        found, missing = await self._connection.call(self._rows.lock_many, words)
        self._work.bound.now = int(time.time())
        writers: list[_Task] = []
        operations: list[Operation] = []
        for each in tasks:
            if each.word in missing or each.line in self._lines_left:
                self._leave([each])
                continue
            operation = decide(each, found)
            if operation is None:
                self.done.append(each)
            else:
                writers.append(each)
                operations.append(operation)
        if not operations:
            return
        write: Callable[[MySQLConnection, Sequence[Operation]], list[Any]] = write_batch.carry_out
        if self._rows.in_order:
            write = partial(_write_in_order, [each.line for each in writers])
        if last:
            answers, self._outcome = await self._connection.call(_write_and_commit, write, operations, self.written)
        else:
            answers = await self._connection.call(write, operations)
        for each, answer in zip(writers, answers, strict=True):
            if answer is None:
                each.written = True
                self.written.add(each.identity)
                self.done.append(each)
            else:
                self._leave([each])

    def _leave(self, tasks: Iterable[_Task]) -> None:
        for each in tasks:
            self.left.append(each)
            self._lines_left.add(each.line)

    async def end(self) -> tuple[str | None, HangError | None]:
        """Commit what is written, or free the locks; return why it is lost, and the error of a server that hangs."""
        if self._outcome is not None:
            return self._outcome
        if not self._connection.in_transaction:
            if self.written:
                raise LostError("the server has ended the transaction")
            return None, None
        outcome: tuple[str | None, HangError | None] = await self._connection.call(
            _commit if self.written else _free_locks
        )
        return outcome


def _runs(work: Work[MySQLRows], plans: Sequence[Plan], lines: Mapping[Replies, _Line]) -> Iterable[_Run]:
    """Return plans as runs, each of one list of replies."""
    runs: dict[int, _Run] = {}  # the last one of each list
    found: list[_Run] = []
    for plan in plans:
        out = cast(Replies, plan[3])
        writes = out in work.writers and record.may_write(plan)
        run = runs.get(id(out))
        if run is None or run.writes is not writes:
            run = runs[id(out)] = _Run(work, lines[out], writes=writes)
            found.append(run)
        run.plans.append(plan)
    return found


def _tasks(run: _Run) -> list[_Task]:
    return [_Task(run.work, plan, run.line) for plan in run.plans]


def _again(tasks: Iterable[_Task]) -> list[_Run]:
    """Return commands as they are carried out in another group; those of one list of replies stay in their order."""
    runs: list[_Run] = []
    for each in tasks:
        run = _Run(each.work, each.line, writes=record.may_write(each.plan))
        run.plans.append(each.plan)
        runs.append(run)
    return runs


def _write_in_order(lines: Sequence[_Line], connection: MySQLConnection, operations: Sequence[Operation]) -> list[Any]:
    """Write rows one by one, see `write_batch.carry_out`, but none of a connection behind one that is not written."""
    answers: list[Any] = []
    failed: set[_Line] = set()
    for line, operation in zip(lines, operations, strict=True):
        answer = AgainError(UNDONE) if line in failed else write_batch.carry_out(connection, [operation])[0]
        if answer is not None:
            failed.add(line)
        answers.append(answer)
    return answers


def _read_parts(connection: MySQLConnection, rows: MySQLRows, words: list[bytes], width: int) -> dict[bytes, CachedRow]:
    found: dict[bytes, CachedRow] = {}
    for at in range(0, len(words), width):
        found |= rows.read_many(connection, words[at : at + width])
    return found


def _write_and_commit(
    connection: MySQLConnection,
    write: Callable[[MySQLConnection, Sequence[Operation]], list[Any]],
    operations: Sequence[Operation],
    written: set[Hashable],
) -> tuple[list[Any], tuple[str | None, HangError | None]]:
    """Write the last rows of a transaction and end it; `written` names rows that were written in it before."""
    answers = write(connection, operations)
    connection.require_open()
    return answers, (_commit if written or None in answers else _free_locks)(connection)


def _commit(connection: MySQLConnection) -> tuple[str | None, HangError | None]:
    return connection.commit(), connection.hang


def _free_locks(connection: MySQLConnection) -> tuple[str | None, HangError | None]:
    connection.roll_back()
    return None, connection.hang
