"""Writes of many commands in one transaction: rows of one mapping are locked, written and committed together.

Commands of the same row follow one another, and each looks up what the one before has left: triggers see every write.
Each command gets what statements of its own would have been answered. One whose row is locked, or for which something
came in between, leaves before the commit and goes one by one; where the transaction cannot be committed all do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final

from kvref.engine import operations as ports
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Row
from kvref.server.executors.mysql.batch_queue import Fallback
from kvref.server.executors.mysql.command import Command
from kvref.server.executors.mysql.plain_commands import PlainChange
from kvref.server.executors.mysql.pool import DedicatedConnection
from kvref.storage.mysql import write_batch
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import AgainError, HangError
from kvref.storage.mysql.fast_path import PlainRemovals, PlainTable
from kvref.storage.mysql.row_identity import RowIdentities
from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.server")

# So many commands of one row: those of the other rows wait for the same commit.
MAX_IN_TURN: Final = 8
UNDONE: Final = "the common transaction is undone"

# Of a commit: why it is lost or in doubt, None if it is durable; and the error of what waits for a server that has not
# replied to it in time.
Outcome = tuple[str | None, HangError | None]


class WriteGroup:
    """Commands that share a transaction.

    Args:
        identities: which keys are the same row.
        connection: for the transaction.
        fallback: carries out what leaves the group.
        mapping: whose rows.
        commands: each waits for the look-up that locks its row.
    """

    def __init__(
        self,
        identities: RowIdentities,
        connection: DedicatedConnection,
        fallback: Fallback,
        mapping: Mapping,
        commands: list[Command],
    ) -> None:
        self._identities = identities
        self._connection = connection
        self._fallback = fallback
        self._runner = fallback.runner
        self._mapping = mapping
        self._waiting = commands
        # Those that are in it, in their order: each waits for an answer, or for the commit.
        self._inside: dict[Command, None] = {}
        self._dirty = False  # something is written and not committed
        self._ended: list[Command] = []  # without a write, after they saw what is not committed

    async def carry_out(self) -> list[Command]:
        """Reply to each command, or hand it back to the executor; returns those for whom there was no room."""
        try:
            for _ in range(MAX_IN_TURN):
                if not self._waiting:
                    break
                await self._take_turn()
            reason, hang = await self._end_transaction()
        except HangError as error:
            self._tell(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
            _log.debug("%s: %r", UNDONE, error)
            if isinstance(error, ports.LockWaitError):
                self._fallback.avoid(self._mapping)
            await self._roll_back()
            self._begin_anew(self._inside)
            self._begin_anew(self._ended)
        else:
            for each in self._inside:
                if each.written and each.last_write is not None:
                    each.last_write.note(self._connection.last_gtid)
                each.written = False
                self._runner.advance(each, reason)
            if hang is not None:
                self._hang(hang)
            elif reason is not None:
                self._begin_anew(self._ended)
            else:
                for each in self._ended:
                    self._runner.reply(each)
        return self._waiting

    async def _take_turn(self) -> None:
        """Run the first command of each row up to the commit."""
        first: dict[Hashable, Command] = {}
        self._waiting = [each for each in self._waiting if first.setdefault(each.identity, each) is not each]
        turn = list(first.values())
        try:
            keys = [each.key for each in turn]
            rows, all_of_them = await self._connection.call(write_batch.lock, self._mapping, keys)
        except Exception as error:
            self._fallback.give_up(self._mapping, [*turn, *self._waiting], error)
            self._waiting = []
            if self._inside:
                raise
            return
        self._inside.update(dict.fromkeys(turn))
        self._answer_look_ups(turn, rows, all_of_them=all_of_them)
        while asking := [each for each in self._inside if not isinstance(each.operation, ports.Commit)]:
            await self._answer(asking)

    def _answer_look_ups(self, turn: list[Command], rows: list[ports.Row], *, all_of_them: bool) -> None:
        spelled = [(self._identities.spelled(row.key), row) for row in rows]
        found, certain = self._identities.match([each.spelling for each in turn], spelled)
        for each in turn:
            row = found.get(each.spelling)
            if row is None and not (certain and all_of_them):
                del self._inside[each]
                self._runner.alone(each)
            else:
                self._step(each, row)

    async def _answer(self, asking: list[Command]) -> None:
        operations = [each.operation for each in asking]
        answers = await self._connection.call(write_batch.carry_out, operations)
        for each, operation, answer in zip(asking, operations, answers, strict=True):
            if isinstance(answer, Exception):
                self._leave(each)
                continue
            reads = isinstance(operation, ports.Lookup | ports.ReadAlong)
            if answer is None and not reads:
                each.written = self._dirty = True
            self._step(each, answer)

    def _step(self, command: Command, answer: Any) -> None:
        """Give a command its answer; it then waits for something else about its row, for the commit, or has ended."""
        mapping = getattr(command.operation, "mapping", None)
        waits = command.send(answer)
        while waits and (
            isinstance(command.operation, ports.FixSnapshot)
            or (isinstance(command.operation, ports.RollBack) and not command.written)
        ):
            waits = command.send(None)
        if not waits:
            self._end(command)
        elif not (isinstance(command.operation, ports.Commit) or self._is_of_its_row(command, mapping)):
            self._leave(command)

    def _end(self, command: Command) -> None:
        """Reply to a command that has ended, or keep it for the end of the transaction."""
        assert command.failed or not command.written, "what is written is committed before the reply"
        del self._inside[command]
        if self._dirty and not command.failed:
            self._ended.append(command)
            return
        self._runner.reply(command)
        if command.written:
            raise AgainError(UNDONE)

    def _is_of_its_row(self, command: Command, before: Mapping | None) -> bool:
        operation = command.operation
        match operation:
            case ports.Insert(mapping, row):
                key = row.key
            case (
                ports.Lookup(mapping, key)
                | ports.ReadAlong(mapping, key)
                | ports.Update(mapping, key)
                | ports.Remove(mapping, key)
            ):
                pass
            case _:
                return False
        spelling = self._identities.spelled(key)
        if mapping is not before or spelling is None:
            return False
        return spelling == command.spelling or self._identities.identity(spelling) == command.identity

    def _leave(self, command: Command) -> None:
        """Restart a command outside the group; raises AgainError if undoing its writes would undo the whole group."""
        if command.written:
            raise AgainError(UNDONE)
        del self._inside[command]
        self._begin_anew([command])

    async def _end_transaction(self) -> Outcome:
        outcome: Outcome = await self._connection.call(_commit if self._dirty else _free_locks)
        return outcome

    async def _roll_back(self) -> None:
        if self._connection.in_transaction:
            await self._connection.call(MySQLConnection.roll_back)

    def _tell(self, error: HangError) -> None:
        for each in self._inside:
            each.written = False
            if isinstance(each.operation, ports.Commit):
                self._runner.advance(each, str(error))
            else:
                self._runner.stop(each, error)
        self._hang(error)

    def _hang(self, error: HangError) -> None:
        """Stop the commands that have written nothing: another statement would hang too."""
        stopped, self._waiting = self._waiting, []
        for each in self._ended:
            if each.start():
                stopped.append(each)
            else:
                self._runner.reply(each)
        self._fallback.hang(stopped, error)

    def _begin_anew(self, commands: Iterable[Command]) -> None:
        for each in commands:
            if isinstance(each.operation, ports.Commit):
                _close_batch(each)
            each.written = False
            self._runner.alone(each, stale=True)


def _close_batch(command: Command) -> None:
    """Let a command count its batch as lost, so that its connection begins another."""
    answer: str | None = UNDONE
    while command.send(answer):
        answer = None


class WriteBatcher:
    """Runs commands that write.

    Args:
        store: the store of the rows.
        connection: a dedicated connection.
        fallback: runs commands that cannot be batched.
    """

    # Queues commands for which there was no room in front of the others.
    put_back: Callable[[Any, Iterable[Any]], None]

    def __init__(self, store: MySQLStore, connection: DedicatedConnection, fallback: Fallback) -> None:
        self._store = store
        self._connection = connection
        self._fallback = fallback

    async def carry_out(self, about: Mapping | PlainTable | PlainRemovals, commands: list[Any]) -> None:
        """Run commands of one mapping, at least one, together or, if that fails, one by one."""
        left_over: list[Any]
        if isinstance(about, Mapping):
            group = WriteGroup(self._store.identities(about), self._connection, self._fallback, about, commands)
            left_over = await group.carry_out()
        else:
            left_over = await self._write(about, commands)
        if left_over:
            self.put_back(about, left_over)

    async def _write(self, table: PlainTable | PlainRemovals, writes: list[PlainChange]) -> list[PlainChange]:
        """Run sets, or deletes, in one transaction and reply; return those that did not fit into it."""
        if not table.version.live:
            _give_up(writes)  # it was altered
            return []
        # How long a statement may be is not known before the first one.
        room = (self._connection.longest or 0) - sum([each.size for each in writes])
        left_over: list[PlainChange] = []
        while room < 0 and len(writes) > 1:
            left_over.append(writes.pop())
            room += left_over[-1].size
        taken: dict[bytes, PlainChange] = {}
        for each in writes:
            # Of one row each is written by itself, as triggers see it; words that only the server takes for one it
            # refuses. What follows a command of its connection that is left waits for that.
            if each.word in taken or (each.previous is not None and each.previous.left):
                each.left = True
            else:
                taken[each.word] = each
        left = [each for each in writes if each.left]
        previous = {
            word: before.word
            for word, each in taken.items()
            if (before := each.previous) is not None and taken.get(before.word) is before
        }
        try:
            rows = {word: each.row() for word, each in taken.items()}
            written, (reason, hang) = (
                (await self._connection.call(_write, table, rows, previous)) if rows else ({}, (None, None))
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
            self._fallback.give_up(table.mapping, [*writes, *left_over], error)
            return []
        for word, each in taken.items():
            has_written = written.get(word)
            if has_written is None:
                each.give_up()
                continue
            if has_written and each.last_write is not None:
                each.last_write.note(self._connection.last_gtid)
            each.answer(reason, has_written)
        if hang is not None:
            self._fallback.hang([*left, *left_over], hang)
            return []
        _give_up(left)
        return left_over[::-1]


def _give_up(writes: Iterable[PlainChange]) -> None:
    for each in writes:
        each.give_up()


def _commit(connection: MySQLConnection) -> Outcome:
    return connection.commit(), connection.hang


def _free_locks(connection: MySQLConnection) -> Outcome:
    connection.roll_back()
    return None, connection.hang


def _write(
    connection: MySQLConnection,
    table: PlainTable | PlainRemovals,
    rows: dict[bytes, Row],
    previous: dict[bytes, bytes],
) -> tuple[dict[bytes, bool], Outcome]:
    written, reason = table.write(connection, rows, previous)
    return written, (reason, connection.hang)
