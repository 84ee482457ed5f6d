"""Planned commands over a database server, from the planner to their replies: order, runs, their queue, and tasks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from kvref.engine.plans import record
from kvref.engine.plans.plan import Plan
from kvref.protocol import commands as c
from kvref.server.executors.mysql.command import Runner, Transaction
from kvref.server.scheduler import BaseScheduler, Work, may_begin
from kvref.server.slots import Replies, Slots
from kvref.storage.mysql.planned_rows import MySQLRows

T = TypeVar("T")


class PlannedLine:
    """The commands of one connection that are planned and have no reply yet, in order.

    `may_begin` has the rule of their order. A command that has left its group delays all that follow it.

    Args:
        owner: the scheduler that carries them out; that of another store has another line for the connection.
        transaction: of the connection, or of one with the same planner: no command of theirs is in a transaction.
        slots: of the connection.
    """

    __slots__ = (
        "batched", "owner", "running", "single_until", "slots", "transaction", "unbatched", "waiting", "writes",
    )  # fmt: skip

    def __init__(self, owner: BaseScheduler[MySQLRows], transaction: Transaction, slots: Slots) -> None:
        self.owner = owner
        self.transaction = transaction
        self.slots = slots
        self.running = 0  # commands in a group, or in the queue for one
        self.writes = False  # they may write
        self.waiting: list[Run] = []
        self.unbatched: list[Task] = []  # have left their groups
        self.batched: deque[Run] | None = None  # for its own transaction; None: nothing is carried out there
        self.single_until = 0  # number of the batch from which on it locks several rows at once

    def admits(self, run: Run) -> bool:
        """Return whether commands may be queued for a group now."""
        if not (self.running or self.unbatched):
            return True
        return may_begin(writes=run.writes, running=self.running, running_write=self.writes, waits=bool(self.unbatched))


class Run:
    """Planned commands of one list of replies, one after another, that all write, or all read; `words` has all keys."""

    __slots__ = ("line", "out", "plans", "words", "work", "writes")

    def __init__(self, work: Work[MySQLRows], line: PlannedLine, plan: Plan, *, writes: bool) -> None:
        self.work = work
        self.line = line
        self.writes = writes
        self.plans = [plan]
        word = plan[1]
        self.words = [word] if isinstance(word, bytes) else [*word]
        self.out: Any = plan[3]


class RunQueue:
    """A queue of runs by mapping, and the task that carries them out in groups while there are any.

    The number of connections limits its length: each stops reading after what it has planned in one iteration of the
    loop. `gather` queues what has arrived meanwhile, before the queue is found to be empty.

    Attributes:
        carry_out: carries out runs of one mapping that were taken from the queue.
    """

    def __init__(
        self,
        carry_out: Callable[[Work[MySQLRows], list[Run]], Awaitable[None]],
        width: Callable[[MySQLRows], int],
        runner: Runner,
        gather: Callable[[], None] | None = None,
    ) -> None:
        self.carry_out = carry_out
        self._width = width
        self._gather = gather
        self._runner = runner
        self._running = False
        self._waiting: dict[Work[MySQLRows], deque[Run]] = {}
        self._further = 0  # keys of the queued runs in addition to one of each

    def add(self, run: Run) -> None:
        self._further += len(run.words) - 1
        waiting = self._waiting.get(run.work)
        if waiting is None:
            waiting = self._waiting[run.work] = deque()
        waiting.append(run)
        if not self._running:
            self._running = True
            self._runner.start(self._run())

    def put_back(self, work: Work[MySQLRows], runs: list[Run]) -> None:
        """Queue runs in front of the others of their mapping, in their order."""
        self._further += sum([len(run.words) - 1 for run in runs])
        self._waiting.setdefault(work, deque()).extendleft(reversed(runs))

    def take_all(self) -> list[Run]:
        waiting, self._waiting, self._further = self._waiting, {}, 0
        return [run for runs in waiting.values() for run in runs]

    def _take(self) -> tuple[Work[MySQLRows], list[Run]]:
        work = next(iter(self._waiting))
        waiting = self._waiting.pop(work)
        if len(waiting) == 1:  # it is taken whatever its width
            self._further -= len(waiting[0].words) - 1
            return work, list(waiting)
        width = self._width(work.rows)
        if not self._further and len(waiting) <= width:
            return work, list(waiting)
        taken: list[Run] = []
        while waiting and (not taken or width >= len(waiting[0].words)):
            run = waiting.popleft()
            taken.append(run)
            width -= len(run.words)
            self._further -= len(run.words) - 1
        if waiting:
            self._waiting[work] = waiting
        return work, taken

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self.carry_out(*self._take())
                await self._fill()
        finally:
            self._running = False

    async def _fill(self) -> None:
        """Give the event loop turns as long as each brings commands for the next group, up to its width.

        Clients that just received a reply send the next command, and one turn reads what some of them have sent.
        """
        before, queued, width = -1, 0, 1
        while before < queued < width:
            before = queued
            await asyncio.sleep(0)
            if self._gather is not None:
                self._gather()
            queued = sum(map(len, self._waiting.values())) + self._further
            if queued:
                width = self._width(next(iter(self._waiting)).rows)


class Task:
    """A planned command that writes, or leaves its group, on its way to its reply."""

    __slots__ = ("counted", "effects", "events", "identity", "line", "plan", "reply", "undo", "word", "work", "written")

    def __init__(self, work: Work[MySQLRows], plan: Plan, line: PlannedLine) -> None:
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
        self.undo: list[Callable[[], None]] = []

    def take_back(self) -> None:
        """Take back the marks that its decision has set: it is decided again."""
        while self.undo:
            self.undo.pop()()


def has_cas(plan: Plan) -> bool:
    command = record.record_of(plan)
    return isinstance(command, c.Get) and command.with_cas


def runs_of(
    work: Work[MySQLRows], plans: Sequence[Plan], lines: Mapping[Replies, PlannedLine], *, by_cas: bool
) -> Iterable[Run]:
    """Return plans as runs, each of one list of replies, and with `by_cas` of gets with cas numbers or others."""
    runs: dict[Replies, Run] = {}  # the last one of each list
    found: list[Run] = []
    writers, decided, decided_write = work.writers, None, False
    for plan in plans:
        out: Any = plan[3]
        if writers and out in writers:
            if plan[0] is not decided:  # most commands of a packet have the same decider
                decided, decided_write = plan[0], record.may_write(plan)
            writes = decided_write
        else:
            writes = False
        run = runs.get(out)
        differs = by_cas and run is not None and not writes and has_cas(run.plans[-1]) is not has_cas(plan)
        if run is None or run.writes is not writes or differs:
            run = runs[out] = Run(work, lines[out], plan, writes=writes)
            found.append(run)
        else:
            run.plans.append(plan)
            run.words += (plan[1],) if isinstance(plan[1], bytes) else plan[1]
    return found


def tasks_of(run: Run) -> list[Task]:
    return [Task(run.work, plan, run.line) for plan in run.plans]


def regrouped(tasks: Iterable[Task]) -> list[Run]:
    """Return commands as they are carried out in another group; those of one list of replies stay in their order."""
    return [Run(each.work, each.line, each.plan, writes=record.may_write(each.plan)) for each in tasks]


def noting(task: Task, decide: Callable[..., T], *arguments: object) -> T:
    """Decide a command, whose counters, accesses and marks are noted apart from those of others, also if that fails."""
    bound = task.work.bound
    shared = bound.counted, bound.events, bound.effects, bound.undo
    bound.counted, bound.events, bound.effects, bound.undo = task.counted, task.events, task.effects, task.undo
    try:
        return decide(*arguments)
    finally:
        bound.counted, bound.events, bound.effects, bound.undo = shared


def settle(work: Work[MySQLRows], tasks: Sequence[Task]) -> None:
    """Count commands that are carried out, before the next command of a client, which may be for `stats`."""
    bound = work.bound
    bound.counted += chain.from_iterable([each.counted for each in tasks])
    bound.events += chain.from_iterable([each.events for each in tasks])
    bound.effects += chain.from_iterable([each.effects for each in tasks])
    bound.settle()
