"""Read the rows of many keys through MariaDB's HandlerSocket, if it returns exactly what SQL would; calls block.

An index stays open for at most `HELD` seconds, and the table is described by SQL under the same metadata lock.
Therefore no DDL runs between the check of the mapping and the read. Reads return what is committed when the server
reads (on 10.11: 300 of 300 commits by SQL), or uncommitted rows, see `connection.py`.

HandlerSocket is used for reads only. A write waits for a row lock in the single writer thread (10 s if SQL keeps the
lock for 10 s), which delays the writes of all connections; writes in the same batch as a deadlock victim are lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref.collations.charsets import CHARSETS
from kvref.engine import operations
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.storage.config.containers import Container, table_name
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.handlersocket.connection import (
    DIRTY,
    HandlerError,
    HandlerSocketConnection,
    RefusedNameError,
    Threads,
    threads,
)
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.statements import Statements

if TYPE_CHECKING:
    from kvref.storage.mysql.store import MySQLStore

_log = logging.getLogger("kvref.storage")

HELD: Final = 0.25  # seconds for which DDL may have to wait
PATIENCE: Final = 1.0  # timeout of a reply in seconds, after which SQL is used
PAUSES: Final = (1.0, 60.0)  # seconds without it after a failure: the first one, and at most


@dataclass(frozen=True, slots=True)
class Opened:
    """An open index: its number, the key's column, how many cells a row has and which are integers, and its row."""

    number: int
    key: Column
    width: int
    integers: tuple[int, ...]
    row: Callable[[tuple[operations.Cell, ...]], operations.Row]


class HandlerReads:
    """Look up rows through HandlerSocket for one thread, next to its SQL connection.

    Args:
        store: the store of the rows.
    """

    def __init__(self, store: MySQLStore) -> None:
        self._store = store
        self._asked: MySQLConnection | None = None
        self._threads = Threads(uncommitted=None, pads=True)
        self._connection: HandlerSocketConnection | None = None
        self._since = self._not_before = 0.0
        self._pause = PAUSES[0]
        self._opened: dict[Mapping, Opened | None] = {}

    def look_up(
        self, connection: MySQLConnection, mapping: Mapping, keys: Sequence[Spelling], *, uncommitted: bool
    ) -> dict[Spelling, operations.Row] | None:
        """Return the rows of those keys that have one, or None if the caller must use SQL.

        Args:
            connection: the SQL connection, outside a transaction.
            mapping: the mapping of the keys.
            keys: as `RowIdentities.spelled` returns them.
            uncommitted: whether uncommitted rows of other transactions must be visible.

        Raises:
            KvrefError, LockWaitError: an error of the SQL connection, as from `MySQLConnection.look_up_all`.
        """
        answer = self.ask(connection, mapping, keys, uncommitted=uncommitted)
        return None if answer is None else _rows(keys, *answer)

    def ask(
        self, connection: MySQLConnection, mapping: Mapping, keys: Sequence[Spelling], *, uncommitted: bool
    ) -> tuple[Opened, list[list[bytes | None] | None]] | None:
        """Return the open index and each key's cells as the server sends them, or None if the caller must use SQL.

        Arguments and errors are those of `look_up`; a key without a row has None.
        """
        now = time.monotonic()
        if connection is not self._asked:
            # Another connection may be one to another server, started with other settings.
            self.close()
            self._threads = threads(connection, self._store.login)
            self._asked = connection
            self._warn(uncommitted=uncommitted)
        if now < self._not_before or self._threads.uncommitted is not uncommitted:
            return None
        if now - self._since > HELD:
            self.close()
            self._since = now
        try:
            return self._cells(connection, mapping, keys)
        except HandlerError as error:
            _log.warning("%s: reads use SQL for %g s", error, self._pause)
            self.close()
            self._not_before, self._pause = now + self._pause, min(2 * self._pause, PAUSES[1])
            return None

    def close(self) -> None:
        """Let go of every table."""
        self._opened.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _warn(self, *, uncommitted: bool) -> None:
        if self._threads.uncommitted is None:
            _log.warning(
                "reads use SQL: the isolation level of HandlerSocket is unknown because SET GLOBAL changed it"
                " after the server started: add the level at start to the DSN, handlersocket_level=%s or another",
                DIRTY,
            )
        elif self._threads.uncommitted is not uncommitted:
            _log.warning(
                "reads use SQL: HandlerSocket reads %scommitted rows, which innodb_api_trx_level does not allow:"
                " start the server with --transaction-isolation=%s for level 0, or with another one for levels 1"
                " and 2",
                "un" if self._threads.uncommitted else "",
                DIRTY,
            )

    def _cells(
        self, connection: MySQLConnection, mapping: Mapping, keys: Sequence[Spelling]
    ) -> tuple[Opened, list[list[bytes | None] | None]] | None:
        if mapping not in self._opened:
            self._opened[mapping] = self._open(connection, mapping, keys[0])
        opened = self._opened[mapping]
        said = None if opened is None else _said(opened.key, keys)
        if opened is None or said is None or self._connection is None:
            return None
        found = self._connection.look_up(opened.number, said, opened.width)
        self._pause = PAUSES[0]
        return opened, found

    def _open(self, connection: MySQLConnection, mapping: Mapping, key: Spelling) -> Opened | None:
        """Open a table that is as its mapping says; None for one that SQL reads."""
        sql = self._store.statements(mapping)
        where = _where(mapping, self._store)
        if where is None or not all(self._shows(column) for column in sql.columns):
            return None
        connection.begin()
        try:
            # No session can alter the table until this transaction ends; after that, the open index prevents it.
            connection.look_up_all(mapping, [key])
            ((_, found),) = connection.look([mapping])
            if not isinstance(found, Mapping) or not _same(found, sql):
                return None
            self._connection = self._connection or HandlerSocketConnection(self._store.login, PATIENCE)
            number = self._connection.open(where, [column.name for column in sql.columns])
        except RefusedNameError as error:
            _log.debug("%s by SQL: %s", mapping.source, error)
            return None
        finally:
            connection.roll_back()
        integers = tuple(at for at, column in enumerate(sql.columns) if column.kind is Kind.INTEGER)
        return Opened(number, sql.columns[0], len(sql.columns), integers, sql.row)

    def _shows(self, column: Column) -> bool:
        """Return whether a cell is what SQL shows as the bytes of a text, as bytes, or as a number."""
        if column.kind is Kind.TEXT:
            # PAD_CHAR_TO_FULL_LENGTH shows CHAR otherwise, and nothing here says which text is CHAR.
            return not self._threads.pads
        # What has a form is of a type that SQL shows as text of its own; without width it may be GEOMETRY.
        return column.codec is None and (column.kind is Kind.INTEGER or column.width is not None)


def _rows(
    keys: Sequence[Spelling], opened: Opened, found: list[list[bytes | None] | None]
) -> dict[Spelling, operations.Row]:
    rows: dict[Spelling, operations.Row] = {}
    for key, fields in zip(keys, found, strict=True):
        if fields is not None:
            cells: list[operations.Cell] = [*fields]
            for at in opened.integers:
                number = fields[at]
                cells[at] = None if number is None else int(number)
            rows[key] = opened.row(tuple(cells))
    return rows


def _where(mapping: Mapping, store: MySQLStore) -> tuple[str, str, str] | None:
    row = mapping.row
    assert isinstance(row, Container)
    name = table_name(row, store.profile)
    index = row.unique_idx_name_on_key
    return None if name is None or not index else (*name, index)


def _same(found: Mapping, sql: Statements) -> bool:
    """Return whether a table is the one of its statements; another thread may have changed the mapping since."""
    options = (each for each in (found.flags, found.cas, found.expiry) if each is not None)
    return (found.key, *found.values, *options) == sql.columns


def _said(column: Column, keys: Sequence[Spelling]) -> list[bytes] | None:
    """Return keys as the server takes them, None where it would look for another one.

    It cuts a key at its column's width and at what is no text, and moves a number into its column's range (seen:
    `abcdef` found `abcde` in VARCHAR(5), 300 found 127 in TINYINT).
    """
    if column.kind is Kind.INTEGER:
        numbers = [key for key in keys if isinstance(key, int) and column.low <= key <= column.high]
        return [b"%d" % number for number in numbers] if len(numbers) == len(keys) else None
    charset = CHARSETS.get(column.charset.name)
    if column.kind is not Kind.TEXT or charset is None or column.width is None:
        return None
    said = [key for key in keys if isinstance(key, bytes)]
    for key in said:
        if charset.unit == 0 and key.isascii():
            if len(key) > column.width:
                return None
        elif charset.malformed_at(key) is not None or len(charset.decode(key)) > column.width // (charset.unit or 1):
            return None
    return said
