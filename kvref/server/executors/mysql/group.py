"""A group: planned commands of one mapping that share a transaction on a database server."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final

from kvref.engine.values import RefusedError
from kvref.server.executors.mysql.pool import DedicatedConnection
from kvref.server.executors.mysql.runs import PlannedLine, Task, noting
from kvref.server.scheduler import Work, refused
from kvref.storage.mysql import write_batch
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import HangError, LostError, RetryableError
from kvref.storage.mysql.planned_rows import MySQLRows
from kvref.storage.mysql.write_batch import Operation

# Turns of a group: commands of one row are carried out one after another, each reads what the one before has left.
MAX_TURNS: Final = 16


class Group:
    """Commands of one mapping that share a transaction.

    Args:
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
        self.done: list[Task] = []
        self.left: list[Task] = []
        self.rest: list[Task] = []
        self._outcome: tuple[str | None, HangError | None] | None = None
        self.written: set[Hashable] = set()
        self._lines_left: set[PlannedLine] = set()

    async def carry_out(self, tasks: list[Task]) -> None:
        """Carry out commands up to the commit, those of one row one after another; raises as `MySQLConnection`."""
        waiting, others = await self._of_one_shard(tasks) if self._rows.mapping.vindex else (tasks, [])
        for each, identity in zip(waiting, self._rows.identities([each.word for each in waiting]), strict=True):
            each.identity = identity
        identities = {each.identity for each in waiting}
        self.rest = others
        if len(identities) == len(waiting) <= self._width and None not in identities:
            await self._take_turn(waiting, last=True)
            return
        for turn in range(MAX_TURNS + 1):
            if not waiting:
                return
            if turn == MAX_TURNS:
                self.rest = [*waiting, *others]
                return
            first: dict[Hashable, Task] = {}
            rest: list[Task] = []
            later: set[PlannedLine] = set()  # of connections whose commands stay in order
            for each in waiting:
                if each.line in self._lines_left or each.identity is None:
                    self._leave(each)
                elif (
                    len(first) >= self._width or each.line in later or first.setdefault(each.identity, each) is not each
                ):
                    later.add(each.line)
                    rest.append(each)
            waiting = rest
            if first:
                await self._take_turn(list(first.values()), last=not rest)

    async def _of_one_shard(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        """Return the commands of the first one's shard of Vitess, and the others for the next groups.

        So no commit is of several shards. The commands of a connection stay in their order.
        """
        shards = await self._connection.call(self._rows.shards_of, [*{each.word: None for each in tasks}])
        first = shards[tasks[0].word]
        mine: list[Task] = []
        others: list[Task] = []
        later: set[PlannedLine] = set()
        for each in tasks:
            if shards[each.word] in (None, first) and each.line not in later:
                mine.append(each)
            else:
                later.add(each.line)
                others.append(each)
        return mine, others

    async def _take_turn(self, tasks: list[Task], *, last: bool) -> None:
        words = [each.word for each in tasks]
        found, missing = await self._connection.call(self._rows.lock_many, words)
        self._work.bound.now = int(time.time())
        writers: list[Task] = []
        operations: list[Operation] = []
        for task in tasks:
            if task.word in missing or task.line in self._lines_left:  # others may have locked the row
                self._leave(task)
                continue
            row = found[task.word]
            try:
                task.reply, new, parameters = noting(task, task.plan[0], row.row, task.word, task.plan[2])
            except RefusedError as refusal:
                task.reply, new, parameters = noting(task, refused, self._work, task.plan, refusal)
            if new is None:
                self.done.append(task)
            else:
                writers.append(task)
                operations.append(self._rows.operation(task.word, row, new, parameters))
        if operations:
            await self._write(writers, operations, last=last)

    async def _write(self, writers: Sequence[Task], operations: Sequence[Operation], *, last: bool) -> None:
        """Write rows; with the last ones, commit."""
        write: Callable[[MySQLConnection, Sequence[Operation]], list[Any]] = write_batch.carry_out
        if self._rows.in_order(operations):
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
                self._leave(each)

    def _leave(self, task: Task) -> None:
        task.take_back()
        self.left.append(task)
        self._lines_left.add(task.line)

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


def _write_in_order(
    lines: Sequence[PlannedLine], connection: MySQLConnection, operations: Sequence[Operation]
) -> list[Any]:
    """Write rows one by one, see `write_batch.carry_out`, but none of a connection after one that is not written."""
    answers: list[Any] = []
    failed: set[PlannedLine] = set()
    undone = RetryableError("the common transaction is undone")
    for line, operation in zip(lines, operations, strict=True):
        (answer,) = [undone] if line in failed else write_batch.carry_out(connection, [operation])
        if answer is not None:
            failed.add(line)
        answers.append(answer)
    return answers


def _write_and_commit(
    connection: MySQLConnection,
    write: Callable[[MySQLConnection, Sequence[Operation]], list[Any]],
    operations: Sequence[Operation],
    written: set[Hashable],
) -> tuple[list[Any], tuple[str | None, HangError | None]]:
    """Write the last rows of a transaction and end it; `written` names rows that were written in it before."""
    answers = write(connection, operations)
    if written or None in answers:
        return answers, (connection.commit(), connection.hang)
    connection.require_open()
    return answers, _free_locks(connection)


def _commit(connection: MySQLConnection) -> tuple[str | None, HangError | None]:
    return connection.commit(), connection.hang


def _free_locks(connection: MySQLConnection) -> tuple[str | None, HangError | None]:
    connection.roll_back()
    return None, connection.hang
