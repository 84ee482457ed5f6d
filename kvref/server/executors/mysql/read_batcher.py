"""Look-ups of many commands by one statement, in one call of a thread."""

from __future__ import annotations

import time
from typing import Any

from kvref.engine.mapping import Mapping
from kvref.server.executors.mysql.command import Command
from kvref.server.executors.mysql.fallback import Fallback
from kvref.server.executors.mysql.fast_path import PlainGet, PlainRead
from kvref.server.executors.mysql.row_reader import RowReader
from kvref.storage.mysql.fast_path import PlainTable
from kvref.storage.mysql.store import MySQLStore


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
        if isinstance(about, PlainTable):
            await self._read_cells(about, commands)
        else:
            await self._read_rows(about, commands)

    async def _read_rows(self, mapping: Mapping, commands: list[Command | PlainGet]) -> None:
        try:
            found, certain = await self._reader.rows(mapping, {each.spelling: each.key for each in commands})
        except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
            self._fallback.give_up(mapping, commands, error)
            return
        for each in commands:
            row = found.get(each.spelling)
            known = row is not None or certain
            if isinstance(each, PlainGet):
                each.answer(row) if known else each.give_up()
            elif known:
                self._fallback.runner.advance(each, row)
            else:
                self._fallback.runner.alone(each)

    async def _read_cells(self, table: PlainTable, reads: list[PlainRead]) -> None:
        if not table.version.live:
            for each in reads:
                each.give_up()  # it was altered
            return
        words = list(dict.fromkeys([each.word for each in reads]))
        try:
            found, certain = await self._reader.cells(table, words)
        except Exception as error:  # noqa: BLE001 - as above
            self._fallback.give_up(table.mapping, reads, error)
            return
        now = int(time.time())
        for each in reads:
            cells = found.get(each.word)
            if cells is None and not certain:
                each.give_up()
            else:
                each.answer(table, cells, now)
