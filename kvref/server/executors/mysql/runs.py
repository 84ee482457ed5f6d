"""Planned commands of a connection over a database server, from the planner to their replies: order, runs and tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, cast

from kvref.engine.plans import record
from kvref.engine.plans.plan import Plan
from kvref.protocol import commands as c
from kvref.server.executors.mysql.command import Transaction
from kvref.server.groups import may_begin
from kvref.server.slots import Replies
from kvref.server.work import Work
from kvref.storage.mysql.plans import MySQLRows


class Line:
    """The commands of one connection that are planned and have no reply yet, in order.

    Args:
        transaction: of the connection.

    Which may pass which says `may_begin`. A command that has left its group keeps all that follow it waiting.
    """

    __slots__ = ("alone", "running", "transaction", "waiting", "writes")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.running = 0  # commands in a group, or in the queue for one
        self.writes = False  # they may write
        self.waiting: deque[Run] = deque()
        self.alone: deque[Task] = deque()  # have left their groups

    def admits(self, run: Run) -> bool:
        """Return whether commands may be queued for a group now."""
        return may_begin(writes=run.writes, running=self.running, running_write=self.writes, waits=bool(self.alone))


class Run:
    """Planned commands of one connection behind each other that may all write, or all not.

    Args:
        work: of their mapping.
        line: of the connection.
        writes: they may write.

    Attributes:
        words: all keys.
    """

    __slots__ = ("line", "plans", "words", "work", "writes")

    def __init__(self, work: Work[MySQLRows], line: Line, *, writes: bool) -> None:
        self.work = work
        self.line = line
        self.writes = writes
        self.plans: list[Plan] = []
        self.words: list[bytes] = []

    def add(self, plan: Plan) -> None:
        """Add a command."""
        self.plans.append(plan)
        word = plan[1]
        if isinstance(word, tuple):
            self.words += word
        else:
            self.words.append(word)


class Task:
    """A planned command that writes, or leaves its group, on its way to its reply.

    Args:
        work: of its mapping.
        plan: the command.
        line: of its connection.
    """

    __slots__ = ("counted", "effects", "events", "identity", "line", "plan", "reply", "undo", "word", "work", "written")

    def __init__(self, work: Work[MySQLRows], plan: Plan, line: Line) -> None:
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
    """Return whether a get shows cas numbers."""
    command = record.record_of(plan)
    return isinstance(command, c.Get) and command.with_cas


def runs_of(
    work: Work[MySQLRows], plans: Sequence[Plan], lines: Mapping[Replies, Line], *, by_cas: bool
) -> Iterable[Run]:
    """Return plans as runs, each of one list of replies.

    Args:
        work, plans: to be carried out.
        lines: by the lists.
        by_cas: gets with cas numbers are apart from the others.
    """
    runs: dict[int, Run] = {}  # the last one of each list
    found: list[Run] = []
    for plan in plans:
        out = cast(Replies, plan[3])
        writes = out in work.writers and record.may_write(plan)
        run = runs.get(id(out))
        apart = by_cas and run is not None and not writes and has_cas(run.plans[-1]) is not has_cas(plan)
        if run is None or run.writes is not writes or apart:
            run = runs[id(out)] = Run(work, lines[out], writes=writes)
            found.append(run)
        run.add(plan)
    return found


def tasks_of(run: Run) -> list[Task]:
    return [Task(run.work, plan, run.line) for plan in run.plans]


def again(tasks: Iterable[Task]) -> list[Run]:
    """Return commands as they are carried out in another group; those of one list of replies stay in their order."""
    runs: list[Run] = []
    for each in tasks:
        run = Run(each.work, each.line, writes=record.may_write(each.plan))
        run.add(each.plan)
        runs.append(run)
    return runs
