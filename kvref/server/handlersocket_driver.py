"""As `coalescing_driver.py`, with the look-ups of many connections through MariaDB's HandlerSocket where that can.

An open index is in the way of DDL, so that what is held is let go of soon after the last look-up, too.
"""

from __future__ import annotations

import asyncio
from functools import partial

from kvref.engine import operations
from kvref.engine.mapping import Mapping
from kvref.server.carried import Command
from kvref.server.coalescing_driver import CoalescingDriver, Found
from kvref.server.plain_ways import PlainGet
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.fast_path import PlainTable
from kvref.storage.mysql.handlersocket.reads import HELD, HandlerReads, Opened
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.store import MySQLStore


class HandlerSocketDriver(CoalescingDriver):
    """Answer the operations of all sessions from one MariaDB server.

    Args:
        store: where rows live; its login names the port.
        isolation: who sees what; without batches.
    """

    def __init__(self, store: MySQLStore, isolation: Isolation) -> None:
        super().__init__(store, isolation)
        self._handler = HandlerReads(store)
        self._letting_go: asyncio.TimerHandle | None = None

    async def close(self) -> None:
        """Wait for the commands that run, then close the links."""
        if self._letting_go is not None:
            self._letting_go.cancel()
        await super().close()
        self._handler.close()

    async def _look_up(self, mapping: Mapping, asked: dict[Spelling, Command | PlainGet]) -> Found:
        look_up = partial(self._handler.look_up, uncommitted=self._isolation.reads_uncommitted)
        found: dict[Spelling, operations.Row] | None = await self._reader.call(look_up, mapping, list(asked))
        self._let_go_soon()
        return await super()._look_up(mapping, asked) if found is None else (found, True)

    async def look_up_plain(self, table: PlainTable, words: list[bytes]) -> tuple[dict[bytes, Cells], bool]:
        """Return the rows of some words, see `PlainTable.read`."""
        ask = partial(self._handler.ask, uncommitted=self._isolation.reads_uncommitted)
        answer: tuple[Opened, list[Cells | None]] | None = await self._reader.call(ask, table.mapping, words)
        self._let_go_soon()
        if answer is None:
            return await super().look_up_plain(table, words)
        return {word: cells for word, cells in zip(words, answer[1], strict=True) if cells is not None}, True

    def _let_go_soon(self) -> None:
        if self._letting_go is None:
            self._letting_go = self._loop.call_later(HELD, self._let_go)

    def _let_go(self) -> None:
        self._letting_go = None
        if self._reading:
            # Its next look-up sees to it.
            self._letting_go = self._loop.call_later(HELD, self._let_go)
        else:
            self._handler.close()
