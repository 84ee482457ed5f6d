"""Look-ups of many commands by one SELECT, and rows that others have deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from typing import Any, Protocol

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, Lookup, Row, Scan
from kvref.server.executors.mysql.batch_queue import Fallback
from kvref.server.executors.mysql.command import Command
from kvref.server.executors.mysql.plain_commands import PlainGet, PlainLone, PlainRead, PlainReads
from kvref.server.executors.mysql.pool import Pool
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.fast_path import PlainTable
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.store import MySQLStore

# What is found, and whether there is no more for certain.
Rows = tuple[dict[Spelling, Row], bool]
CellsOfWords = tuple[dict[bytes, Cells], bool]
Shown = tuple[dict[bytes, Cells | bytes], bool]
# Reads the rows of some keys: what is found, and whether there is no more for certain.
Read = Callable[[MySQLConnection, list[Any]], tuple[dict[Any, Any], bool]]


class RowReader(Protocol):
    """Reads rows of many keys at once, for one batch at a time.

    A turn begins when the reader queries what all gets that have arrived by then may share. A batch belongs to the turn
    in which its last get arrived.
    """

    @property
    def turn(self) -> int:
        """Return the number of the current turn."""

    async def rows(self, mapping: Mapping, keys: MappingOf[Spelling, Cell], turn: int) -> Rows:
        """Return the rows of some keys.

        Args:
            mapping: the mapping of the keys.
            keys: keys by identity.
            turn: of the batch.

        Raises:
            KvrefError, LockWaitError: as `MySQLConnection.look_up_all`.
        """

    async def cells(self, table: PlainTable, words: list[bytes], turn: int) -> Shown:
        """Return the rows of some words, see `PlainTable.read`, or what a get replies.

        Args:
            table: of the words.
            words: plain; one may be there several times.
            turn: of the batch.
        """

    async def close(self) -> None:
        """Close the resources; no read may be running."""


class Caller(Protocol):
    """A connection used by one task at a time, see `DedicatedConnection`."""

    async def call(self, what: Callable[..., Any], *arguments: object) -> Any:
        """Call what blocks with the connection and further arguments."""

    async def close(self) -> None:
        """Close the connection; nothing else may run."""


class SQLReader:
    """Read rows by SELECT.

    Args:
        store: the store of the rows.
        connection: a dedicated connection.
    """

    def __init__(self, store: MySQLStore, connection: Caller) -> None:
        self._store = store
        self._connection = connection
        self.turn = 0

    def rows_of(
        self, mapping: Mapping, cells: MappingOf[Spelling, Cell]
    ) -> Callable[[MySQLConnection, list[Spelling]], Rows]:
        """Return what reads the rows of some of these keys; it blocks.

        Args:
            mapping: the mapping of the keys.
            cells: keys by identity.
        """
        identities = self._store.identities(mapping)

        def read(connection: MySQLConnection, keys: list[Spelling]) -> Rows:
            rows = connection.look_up_all(mapping, [cells[each] for each in keys])
            return identities.match(keys, [(identities.spelled(row.key), row) for row in rows])

        return read

    async def rows(self, mapping: Mapping, keys: MappingOf[Spelling, Cell], turn: int) -> Rows:  # noqa: ARG002
        """See `RowReader`."""
        found: Rows = await self._connection.call(self.rows_of(mapping, keys), [*keys])
        return found

    async def cells(self, table: PlainTable, words: list[bytes], turn: int) -> Shown:  # noqa: ARG002
        """See `RowReader`."""
        found: Shown = await self._connection.call(_read, table, [*dict.fromkeys(words)])
        return found

    async def close(self) -> None:
        """See `RowReader`."""
        await self._connection.close()


def in_parts(read: Read, width: int) -> Read:
    """Return what reads the rows of any number of keys.

    Args:
        read: reads those of at most `width` keys by one statement; returns what is found, and whether the other keys
            have no row for certain.
        width: at least 1.
    """

    def read_all(connection: MySQLConnection, keys: list[Any]) -> tuple[dict[Any, Any], bool]:
        parts = [read(connection, keys[at : at + width]) for at in range(0, len(keys), width)]
        found = {key: row for rows, _ in parts for key, row in rows.items()} if len(parts) > 1 else parts[0][0]
        return found, all(certain for _, certain in parts)

    return read_all


def _read(connection: MySQLConnection, table: PlainTable, words: list[bytes]) -> CellsOfWords:
    return table.read(connection, words)


class ReadBatcher:
    """Answers look-ups that lock nothing.

    Args:
        store: whose rows.
        reader: reads them.
        fallback: takes what cannot be answered together.
    """

    def __init__(self, store: MySQLStore, reader: RowReader, fallback: Fallback) -> None:
        self._store = store
        self._reader = reader
        self._fallback = fallback

    async def carry_out(self, about: Mapping | PlainTable, commands: list[Any]) -> None:
        """Answer look-ups of one mapping, at least one, or let them be answered one by one."""
        if isinstance(about, PlainTable) and not about.version.live:
            for each in commands:
                each.give_up()  # it was altered
            return
        try:
            found = await self.read(about, commands)
        except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
            self._fallback.give_up(about.mapping if isinstance(about, PlainTable) else about, commands, error)
            return
        self.answer(about, commands, found)

    async def read(self, about: Mapping | PlainTable, commands: list[Any]) -> Rows | Shown:
        """Return the rows that look-ups of one mapping find; raises as `RowReader.rows`."""
        turn = commands[-1].turn
        if not isinstance(about, PlainTable):
            return await self._reader.rows(about, {each.spelling: each.key for each in commands}, turn)
        words: list[bytes] = []
        for each in commands:
            if isinstance(each, PlainReads):
                words += each.words
            else:
                words.append(each.word)
        return await self._reader.cells(about, words, turn)

    def answer(self, about: Mapping | PlainTable, commands: list[Any], found: Rows | Shown) -> None:
        """Answer look-ups with what `read` has returned for them."""
        rows, certain = found
        if isinstance(about, PlainTable):
            self._answer_plain(about, commands, rows, certain=certain)
        else:
            self._answer_with_rows(commands, rows, certain=certain)

    def _answer_with_rows(
        self, commands: list[Command | PlainGet], found: MappingOf[Any, Any], *, certain: bool
    ) -> None:
        for each in commands:
            row = found.get(each.spelling)
            known = row is not None or certain
            if isinstance(each, PlainGet):
                each.answer(row) if known else each.give_up()
            elif known:
                self._fallback.runner.advance(each, row)
            else:
                self._fallback.runner.alone(each)

    def _answer_plain(
        self,
        table: PlainTable,
        reads: list[PlainLone | PlainRead | PlainReads],
        found: MappingOf[Any, Any],
        *,
        certain: bool,
    ) -> None:
        now = int(time.time())
        for each in reads:
            if isinstance(each, PlainReads):
                each.answer(table, found, now, certain=certain)
                continue
            cells = found.get(each.word)
            if cells is None and not certain:
                each.give_up()
            else:
                each.answer(table, cells, now)


async def without_deleted(
    pool: Pool, isolation: Isolation, connection: MySQLConnection, operation: Lookup | Scan, answer: Any
) -> Any:
    """Return the answer of a read less the rows that are gone since.

    Args:
        pool: gives a connection that sees what is not committed.
        isolation: in force.
        connection: what answered.
        operation: the read.
        answer: a row, None, or the rows of a scan, which are made up to their limit again.

    Raises:
        KvrefError: as `MySQLConnection.execute`.
    """
    if isolation.reads_lock:
        return answer  # it has waited for whoever deletes
    if isinstance(operation, Lookup):
        if answer is None or operation.for_update:
            return answer
        return answer if await _present(pool, connection, operation.mapping, [answer]) else None
    page: list[Row] = answer
    rows = await _present(pool, connection, operation.mapping, page)
    # A range ends at the first NULL key (more:nullrange-003, more:nullrange-006).
    while len(rows) < operation.limit == len(page) and page[-1].key is not None:
        operation = replace(operation, low=page[-1].key, low_inclusive=False)
        page = await pool.in_thread(connection.execute, operation)
        rows += await _present(pool, connection, operation.mapping, page)
    return rows[: operation.limit]


async def _present(pool: Pool, connection: MySQLConnection, mapping: Mapping, rows: list[Row]) -> list[Row]:
    keys = [row.key for row in rows if row.key is not None]
    if not keys:
        return rows
    if connection.in_transaction:
        found = await pool.call_outside(MySQLConnection.present, mapping, keys)
    else:
        found = await pool.in_thread(connection.present, mapping, keys)
    return [row for row in rows if row.key is None or row.key in found]  # NULL cannot be looked up
