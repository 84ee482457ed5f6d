"""Between sessions and a database server where each command is a transaction: many commands travel together.

While a statement is on its way the look-ups of all other connections gather; then one SELECT answers all those of a
mapping. Writers share a transaction, see `write_group.py`; of plain gets and sets, `plain_groups.py`. Whatever is odd,
refused, locked by others or out of date goes one by one as in `pooled_driver.py`, and never comes back to a group, so
that it holds nobody else up.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

from kvref.engine import operations
from kvref.engine.fast_path import PlainVerbs, ordinary_mapping
from kvref.engine.mapping import Mapping
from kvref.engine.session import Session
from kvref.protocol.fast_path import PlainLines
from kvref.protocol.replies import Reply, ServerError
from kvref.protocol.rules import WireRules
from kvref.server.carried import Command
from kvref.server.gathered import Gathered
from kvref.server.own_link import OwnLink
from kvref.server.plain_groups import read_plain, write_plain
from kvref.server.plain_ways import Plain, PlainGet, PlainRead, PlainWays, PlainWrite
from kvref.server.pooled_driver import LOOK_EVERY, PooledDriver
from kvref.server.write_group import WriteGroup
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import Link
from kvref.storage.mysql.errors import AgainError, HangError, LostError
from kvref.storage.mysql.fast_path import PlainTable
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.server")

Found = tuple[dict[Spelling, operations.Row], bool]
Of = Mapping | PlainTable  # what the commands of one group are about

LINKS: Final = 2  # one reads, one writes
FEWEST_CONNECTIONS: Final = 4  # with fewer all of them are for single commands
FEWEST_TOGETHER: Final = 2
# Seconds for which the commands of a table go one by one after somebody had locked it whole: a group would hold up
# those of other tables.
AVOIDED: Final = 5.0
MOST_BYTES: Final = 16 << 20  # of rows that one SELECT returns, if no value is longer than the longest that is counted
_LONGEST: Final = 1 << 20
_BYTES_OF_KEY: Final = 1024  # in a statement


class CoalescingDriver(PooledDriver):
    """Answer the operations of all sessions from one database server, those of one moment by common statements.

    Args:
        store: where rows live.
        isolation: who sees what; without batches.
    """

    def __init__(self, store: MySQLStore, isolation: Isolation) -> None:
        super().__init__(store, isolation, apart=LINKS)
        self._reads: Gathered[Of, Command | Plain] = Gathered()
        self._writes: Gathered[Of, Command | Plain] = Gathered()
        self._reader = OwnLink(store, isolation, self._pool)
        self._writer = OwnLink(store, isolation, self._pool)
        self._plain: dict[tuple[Mapping, bool], PlainWays] = {}
        self._reading = self._writing = False
        self._avoided: dict[str, float] = {}  # until when (loop time), by table

    async def close(self) -> None:
        """Wait for the commands that run, then close the links."""
        while self._running:
            await asyncio.wait(self._running)
        await self._reader.close()
        await self._writer.close()
        await super().close()

    def _go_on(self, command: Command, *, stale: bool) -> None:
        operation = command.operation
        if stale or not isinstance(operation, operations.Lookup) or not self._goes_together(command, operation):
            super()._go_on(command, stale=stale)
        elif operation.for_update:
            self._writes.add(self.store.alike(operation.mapping), command)
            if not self._writing:
                self._start_writing()
        else:
            self._gather(operation.mapping, command)

    def _gather(self, mapping: Mapping, command: Command | PlainGet) -> None:
        self._reads.add(self.store.alike(mapping), command)
        if not self._reading:
            self._start_reading()

    def _start_reading(self) -> None:
        self._reading = True
        self._start(self._work(self._reads, self._reader, self._read))

    def _start_writing(self) -> None:
        self._writing = True
        self._start(self._work(self._writes, self._writer, self._write))

    def plain_ways(self, session: Session, wire_rules: WireRules) -> PlainWays | None:
        """Return what gathers the plain commands of a connection, None where none of them is."""
        mapping = ordinary_mapping(session)
        if mapping is None:
            return None
        kind = mapping, session.access.read_only
        found = self._plain.get(kind)
        if found is None or not found.live:
            self._plain = {each: ways for each, ways in self._plain.items() if ways.live}
            found = self._plain[kind] = PlainWays(PlainVerbs(session, mapping), PlainLines(wire_rules), self)
        return found

    @property
    def ready(self) -> bool:
        """Tell whether anything is plain just now: after a pause the tables are looked at first."""
        return self._loop.time() - self._looked <= LOOK_EVERY

    def table(self, mapping: Mapping) -> PlainTable:
        """Return the table of a mapping."""
        return self.store.plain(self.store.alike(mapping))

    def spelling(self, mapping: Mapping, key: operations.Cell) -> Spelling | None:
        """Return what tells a key from others; None where only the server knows."""
        places = self.store.places(mapping)
        return places.spelled(key) if places.known else None

    def gather_get(self, mapping: Mapping, get: PlainGet) -> bool:
        """Take a get; at other levels than the lowest it may lock."""
        if self._isolation.level or self._is_avoided(mapping):
            return False
        self._gather(mapping, get)
        return True

    def gather_read(self, table: PlainTable, read: PlainRead) -> bool:
        """Take a get of a plain word; as `gather_get`."""
        if self._isolation.level or (self._avoided and self._is_avoided(table.mapping)):
            return False
        self._reads.add(table, read)
        if not self._reading:
            self._start_reading()
        return True

    def gather_write(self, table: PlainTable, write: PlainWrite) -> bool:
        """Take a set."""
        if self._avoided and self._is_avoided(table.mapping):
            return False
        self._writes.add(table, write)
        if not self._writing:
            self._start_writing()
        return True

    def _is_avoided(self, mapping: Mapping) -> bool:
        return self._avoided.get(mapping.source, 0) > self._loop.time()

    def _goes_together(self, command: Command, lookup: operations.Lookup) -> bool:
        """Tell whether a look-up may travel with others, and note what tells its row from theirs."""
        rules = self._isolation
        if rules.level and not lookup.for_update and (rules.reads_lock or rules.shows_deletes):
            return False
        if self._is_avoided(lookup.mapping):
            return False
        spelling = self.spelling(lookup.mapping, lookup.key)
        if spelling is None:
            return False
        command.spelling = spelling
        if lookup.for_update:
            try:
                command.place = self.store.places(lookup.mapping).place(spelling)
            except UnicodeDecodeError:
                return False  # the server says what is wrong with it
        return True

    async def _work(
        self,
        waiting: Gathered[Of, Command | Plain],
        link: OwnLink,
        carry_out: Callable[[Of, list[Any]], Awaitable[None]],
    ) -> None:
        try:
            while waiting:
                await carry_out(*waiting.take(partial(self._width, link)))
                # Who was just answered asks again: after a turn of the loop they share the next statement.
                await asyncio.sleep(0)
        finally:
            if link is self._reader:
                self._reading = False
            else:
                self._writing = False

    def _width(self, link: OwnLink, of: Of) -> int:
        """Return how many commands of a mapping may go together, so that neither question nor answer is too large."""
        mapping = of.mapping if isinstance(of, PlainTable) else of
        width = min(self.store.login.together, MOST_BYTES // bytes_of_row(mapping))
        return max(1, width if link.longest is None else min(width, link.longest // _BYTES_OF_KEY))

    async def _read(self, of: Of, commands: list[Any]) -> None:
        if isinstance(of, PlainTable):
            await read_plain(self, of, commands)
        else:
            await self._read_rows(of, commands)

    async def _read_rows(self, mapping: Mapping, commands: list[Command | PlainGet]) -> None:
        asked = {each.spelling: each for each in commands}
        try:
            found, certain = await self._look_up(mapping, asked)
        except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
            self.give_up(mapping, commands, error)
            return
        for each in commands:
            row = found.get(each.spelling)
            sure = row is not None or certain
            if isinstance(each, PlainGet):
                each.answer(row) if sure else each.give_up()
            elif sure:
                self.advance(each, row)
            else:
                self.alone(each)

    async def _look_up(self, mapping: Mapping, asked: dict[Spelling, Command | PlainGet]) -> Found:
        """Return what is found, and whether there is no more for certain."""
        rows = await self._reader.call(Link.look_up_all, mapping, [each.key for each in asked.values()])
        places = self.store.places(mapping)
        return places.match(asked, [(places.spelled(row.key), row) for row in rows])

    async def look_up_plain(self, table: PlainTable, words: list[bytes]) -> tuple[dict[bytes, Cells], bool]:
        """Return the rows of some words, see `PlainTable.read`."""
        found: tuple[dict[bytes, Cells], bool] = await self._reader.call(_read, table, words)
        return found

    async def _write(self, of: Of, commands: list[Any]) -> None:
        if isinstance(of, PlainTable):
            left_over: list[Any] = await write_plain(self, self._writer, of, commands)
        else:
            left_over = await WriteGroup(self, self._writer, of, commands).carry_out()
        if left_over:
            self._writes.put_back(of, left_over)

    def give_up(self, mapping: Mapping, commands: Iterable[Command | Plain], error: Exception) -> None:
        """Go on with commands whose common look-up failed, where they stand, or with the reason.

        Args:
            mapping: whose.
            commands: each waits for a look-up.
            error: of the link.
        """
        if isinstance(error, operations.LockWaitError):
            self._avoided[mapping.source] = self._loop.time() + AVOIDED
        if isinstance(error, HangError):
            self.hang(commands, error)
            return
        stale = isinstance(error, AgainError | LostError)
        if stale:
            self._looked = -math.inf  # plain ones look at the tables first, too
        for each in commands:
            if isinstance(each, Plain):
                each.give_up()
            else:
                self.alone(each, stale=stale)

    def hang(self, commands: Iterable[Command | Plain], error: HangError) -> None:
        """Give commands the reason why there is no answer, and all that wait for their turn: theirs would hang too.

        Else who has waited for one group would wait for the next one, and those of many mappings for each other.
        """
        self._looked = self._loop.time()  # who asks again now would look at the tables first, and wait for that too
        for each in [*commands, *self._reads.take_all(), *self._writes.take_all()]:
            if isinstance(each, Plain):
                each.stop(error)
            else:
                self.stop(each, error)

    def alone(self, command: Command, *, stale: bool = False) -> None:
        """Carry a command out by itself; `stale`: it begins anew, after a look at the tables."""
        super()._go_on(command, stale=stale)

    def advance(self, command: Command, answer: object) -> None:
        """Give a command its answer, and go on with what it asks for next, or reply."""
        self._resume(command, partial(command.steps.send, answer))

    def stop(self, command: Command, error: Exception) -> None:
        """Give a command the reason why there is no answer, and go on as `advance` does."""
        self._resume(command, partial(command.steps.throw, error))

    def _resume(self, command: Command, resume: Callable[[], operations.Operation]) -> None:
        try:
            command.operation = resume()
            while self._does_nothing(command.transaction, command.operation):
                command.operation = command.steps.send(None)
        except StopIteration as stop:
            self.reply(command, stop.value)
        except Exception:  # noqa: BLE001 - logged whole
            self.fail(command)
        else:
            self._go_on(command, stale=False)

    def fail(self, command: Command) -> None:
        """Reply to a command that raised what no command should; the log has what to mend."""
        _log.exception("a command failed")
        self.reply(command, ServerError("internal error, see the server's log"))

    def reply(self, command: Command, reply: Reply) -> None:
        """Reply; what fails behind it is that connection's and not that of the others."""
        self._loop.call_soon(command.done, reply)


def bytes_of_row(mapping: Mapping) -> int:
    """Return how many bytes to count for the values of a row: no more than its columns hold."""
    return sum(_LONGEST if each.width is None else min(4 * each.width, _LONGEST) for each in mapping.values) or 1


def _read(link: Link, table: PlainTable, words: list[bytes]) -> tuple[dict[bytes, Cells], bool]:
    return table.read(link, words)
