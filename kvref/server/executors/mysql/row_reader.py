"""How the rows of many look-ups are read: by one SELECT, or through MariaDB's HandlerSocket where that can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingOf
from functools import partial
from typing import Any, Protocol

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, Row
from kvref.server.executors.mysql.dedicated_connection import DedicatedConnection
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.fast_path import PlainTable
from kvref.storage.mysql.handlersocket.reads import HELD, HandlerReads, Opened
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.store import MySQLStore

# What is found, and whether there is no more for certain.
Rows = tuple[dict[Spelling, Row], bool]
CellsOfWords = tuple[dict[bytes, Cells], bool]


class RowReader(Protocol):
    """Reads rows of many keys at once, for one batch at a time."""

    async def rows(self, mapping: Mapping, keys: MappingOf[Spelling, Cell]) -> Rows:
        """Return the rows of some keys.

        Args:
            mapping: the mapping of the keys.
            keys: keys by identity.

        Raises:
            KvrefError, LockWaitError: as `MySQLConnection.look_up_all`.
        """

    async def cells(self, table: PlainTable, words: list[bytes]) -> CellsOfWords:
        """Return the rows of some words, see `PlainTable.read`."""

    async def close(self) -> None:
        """Close the resources; no read may be running."""


class SQLReader:
    """Read rows by SELECT.

    Args:
        store: the store of the rows.
        connection: a dedicated connection.
    """

    def __init__(self, store: MySQLStore, connection: DedicatedConnection) -> None:
        self._store = store
        self._connection = connection

    async def rows(self, mapping: Mapping, keys: MappingOf[Spelling, Cell]) -> Rows:
        """See `RowReader`."""
        rows = await self._connection.call(MySQLConnection.look_up_all, mapping, [*keys.values()])
        identities = self._store.identities(mapping)
        return identities.match(keys, [(identities.spelled(row.key), row) for row in rows])

    async def cells(self, table: PlainTable, words: list[bytes]) -> CellsOfWords:
        """See `RowReader`."""
        found: CellsOfWords = await self._connection.call(_read, table, words)
        return found

    async def close(self) -> None:
        """See `RowReader`."""
        await self._connection.close()


class HandlerSocketReader:
    """Read rows through HandlerSocket, and by SQL if HandlerSocket cannot be used.

    An open index blocks DDL, so it is also closed soon after the last look-up.

    Args:
        store: the store of the rows; its login names the port.
        connection: a dedicated connection, for SQL.
        isolation: isolation settings.
    """

    def __init__(self, store: MySQLStore, connection: DedicatedConnection, isolation: Isolation) -> None:
        self._sql = SQLReader(store, connection)
        self._connection = connection
        self._isolation = isolation
        self._handler = HandlerReads(store)
        self._loop = asyncio.get_running_loop()
        self._asking = False
        self._releasing: asyncio.TimerHandle | None = None

    async def rows(self, mapping: Mapping, keys: MappingOf[Spelling, Cell]) -> Rows:
        """See `RowReader`."""
        found: dict[Spelling, Row] | None = await self._ask(self._handler.look_up, mapping, [*keys])
        return await self._sql.rows(mapping, keys) if found is None else (found, True)

    async def cells(self, table: PlainTable, words: list[bytes]) -> CellsOfWords:
        """See `RowReader`."""
        answer: tuple[Opened, list[Cells | None]] | None = await self._ask(self._handler.ask, table.mapping, words)
        if answer is None:
            return await self._sql.cells(table, words)
        return {word: cells for word, cells in zip(words, answer[1], strict=True) if cells is not None}, True

    async def close(self) -> None:
        """See `RowReader`."""
        if self._releasing is not None:
            self._releasing.cancel()
        await self._sql.close()
        self._handler.close()

    async def _ask(self, what: Callable[..., object], mapping: Mapping, keys: Sequence[Spelling]) -> Any:
        self._asking = True
        try:
            call = partial(what, uncommitted=self._isolation.reads_uncommitted)
            return await self._connection.call(call, mapping, keys)
        finally:
            self._asking = False
            if self._releasing is None:
                self._releasing = self._loop.call_later(HELD, self._release)

    def _release(self) -> None:
        self._releasing = None
        if self._asking:
            self._releasing = self._loop.call_later(HELD, self._release)
        else:
            self._handler.close()


def _read(link: MySQLConnection, table: PlainTable, words: list[bytes]) -> CellsOfWords:
    return table.read(link, words)
