"""Writes of many commands in one transaction: of plain sets here, of verbs in `write_group.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Row
from kvref.server.executors.mysql.dedicated_connection import DedicatedConnection
from kvref.server.executors.mysql.fallback import Fallback
from kvref.server.executors.mysql.fast_path import PlainWrite
from kvref.server.executors.mysql.write_group import WriteGroup
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.fast_path import PlainTable
from kvref.storage.mysql.store import MySQLStore


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

    async def carry_out(self, about: Mapping | PlainTable, commands: list[Any]) -> None:
        """Run commands of one mapping, at least one, together or, if that fails, one by one."""
        left_over: list[Any]
        if isinstance(about, PlainTable):
            left_over = await self._write(about, commands)
        else:
            group = WriteGroup(self._store.identities(about), self._connection, self._fallback, about, commands)
            left_over = await group.carry_out()
        if left_over:
            self.put_back(about, left_over)

    async def _write(self, table: PlainTable, writes: list[PlainWrite]) -> list[PlainWrite]:
        """Run sets in one transaction and reply; return those that did not fit into it."""
        if not table.version.live:
            _give_up(writes)  # it was altered
            return []
        # How long a statement may be is not known before the first one.
        room = (self._connection.longest or 0) - sum([each.size for each in writes])
        left_over: list[PlainWrite] = []
        while room < 0 and len(writes) > 1:
            left_over.append(writes.pop())
            room += left_over[-1].size
        taken: dict[bytes, PlainWrite] = {}
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
            written, reason = (await self._connection.call(_write, table, rows, previous)) if rows else (set(), None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
            self._fallback.give_up(table.mapping, [*writes, *left_over], error)
            return []
        for word, each in taken.items():
            if word in written:
                each.answer(reason)
            else:
                each.give_up()
        _give_up(left)
        return left_over[::-1]


def _give_up(writes: Iterable[PlainWrite]) -> None:
    for each in writes:
        each.give_up()


def _write(
    link: MySQLConnection, table: PlainTable, rows: dict[bytes, Row], previous: dict[bytes, bytes]
) -> tuple[set[bytes | None], str | None]:
    return table.write(link, rows, previous)
