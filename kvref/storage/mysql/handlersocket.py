"""Read the rows of many keys through MariaDB's HandlerSocket, if it returns exactly what SQL would; calls block.

A line is fields between tabs. In a field each byte below 0x10 is 0x01 and the byte plus 0x40; NULL is one byte 0.

While a connection has an index open, the server lets no session alter, truncate, lock or drop that table (observed on
10.11). An index stays open for at most `HELD` seconds, and the table is described by SQL under the same metadata lock.
Therefore no DDL runs between the check of the mapping and the read. Reads return what is committed when the server
reads (on 10.11: 300 of 300 commits by SQL), or uncommitted rows, see `Threads`.

HandlerSocket is used for reads only. A write waits for a row lock in the single writer thread (10 s if SQL keeps the
lock for 10 s), which delays the writes of all connections; writes in the same batch as a deadlock victim are lost.
"""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from kvref.collations.charsets import CHARSETS
from kvref.engine import operations
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.errors import ConfigError, KvrefError, StoreError, cause_of
from kvref.storage.config.containers import Container, table_name
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.database import Database
from kvref.storage.mysql.login import SECRET, Login
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.statements import Statements
from kvref.storage.rows import text_of

_log = logging.getLogger("kvref.storage")

Field = bytes | None

_ESCAPE: Final = b"\x01"
_SHIFT: Final = 0x40
_CONTROL: Final = re.compile(rb"[\x00-\x0f]")
_ESCAPED: Final = re.compile(rb"\x01(.)", re.DOTALL)
_NULL: Final = b"\0"
_DONE: Final = b"0"


class HandlerError(KvrefError):
    """Nothing to be had from HandlerSocket now; the text says why."""


class RefusedError(HandlerError):
    """It answered a line with an error, or with what is no answer to it."""


class RefusedNameError(RefusedError):
    """It has no index, table or column of that name, or it cannot be said."""


def escaped(data: bytes) -> bytes:
    """Return bytes as they stand in a field."""
    return _CONTROL.sub(lambda found: _ESCAPE + bytes((found[0][0] + _SHIFT,)), data)


def plain(field: bytes) -> Field:
    """Return what a field says, None for NULL.

    Raises:
        RefusedError: no server writes that.
    """
    if _ESCAPE not in field:
        return None if field == _NULL else field
    try:
        return _ESCAPED.sub(lambda found: bytes((found[1][0] - _SHIFT,)), field)
    except ValueError as error:
        raise RefusedError(f"{field!r} is not a field") from error


def authorisation(secret: str) -> bytes:
    """Return the line that shows the secret."""
    return b"A\t1\t%s\n" % escaped(secret.encode())


def opening(number: int, names: Sequence[str], columns: Iterable[str]) -> bytes:
    """Return the line that opens an index for questions.

    Args:
        number: what the questions call it, from 0.
        names: of the schema, the table and the index.
        columns: whose cells a row is to have, in their order.

    Raises:
        RefusedNameError: a name cannot be said.
    """
    columns = list(columns)
    said = not any(_CONTROL.search(each.encode()) for each in (*names, *columns)) and all(names)
    # The server parts columns at commas, and takes an index that begins with a digit for a number.
    if not said or names[-1][0].isdigit() or any("," in each for each in columns):
        raise RefusedNameError(f"no way to name index {names} or columns {columns}")
    return b"P\t%d\t%s\t%s\n" % (number, "\t".join(names).encode(), ",".join(columns).encode())


def questions(number: int, keys: Iterable[bytes]) -> bytes:
    """Return one request line for each key, which looks up its row.

    Args:
        number: of the index.
        keys: in the column's character set, integers in decimal digits.
    """
    head = b"%d\t=\t1\t" % number
    return b"".join([b"%s%s\n" % (head, key if not _CONTROL.search(key) else escaped(key)) for key in keys])


def done(reply: bytes) -> None:
    """Check the reply to a request that returns no rows.

    Args:
        reply: without the line's end.

    Raises:
        RefusedError: the server rejected the request.
    """
    if not reply.startswith(b"0\t"):
        raise RefusedError(_reason(reply))


def row(reply: bytes, head: bytes, width: int) -> list[Field] | None:
    """Read the answer to a question; None where there is no row.

    Args:
        reply: without the line's end.
        head: what `no_row` returns for the width.
        width: how many cells a row has.

    Raises:
        RefusedError: it was refused.
    """
    if reply == head:
        return None
    fields = reply.split(b"\t")
    if len(fields) != width + 2 or fields[:2] != head.split(b"\t"):
        raise RefusedError(_reason(reply))
    if _ESCAPE in reply or _NULL in reply:
        return [plain(each) for each in fields[2:]]
    return [*fields[2:]]


def no_row(width: int) -> bytes:
    """Return the answer to a question where there is no row.

    Args:
        width: how many cells a row would have.
    """
    return b"0\t%d" % width


def _reason(reply: bytes) -> str:
    code, *fields = reply.split(b"\t")
    if code in (_DONE, b""):
        return "a reply to another request"
    return f"{code[:20].decode('ascii', 'replace')} {b' '.join(fields[1:])[:80].decode('utf-8', 'replace')}".strip()


LOOPBACK: Final = "127.0.0.1"
_CHUNK: Final = 1 << 18


class HandlerSocketConnection:
    """An authorised connection.

    Args:
        login: where the server is.
        patience: timeout of a reply in seconds.

    Raises:
        HandlerError: the port is not reachable or the server does not reply.
        RefusedError: the secret is wrong.
    """

    def __init__(self, login: Login, patience: float) -> None:
        address = login.host or LOOPBACK, login.handlersocket
        self._where = f"HandlerSocket at {address[0]}:{address[1]}"
        try:
            self._socket = socket.create_connection(address, patience)
        except OSError as error:
            raise HandlerError(f"{self._where}: {cause_of(error)}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opened = 0
        try:
            self._do(authorisation(login.secret))
        except RefusedError as error:
            self.close()
            fix = f"put the server's handlersocket_plain_secret into {SECRET}, or into handlersocket_secret_file=PATH"
            raise RefusedError(f"{self._where} refuses the secret ({error}): {fix}") from error
        except BaseException:
            self.close()
            raise

    def open(self, names: Sequence[str], columns: Iterable[str]) -> int:
        """Open an index; returns its number.

        Args:
            names: of the schema, the table and the index.
            columns: whose cells each row has.

        Raises:
            HandlerError: no answer.
            RefusedNameError: no such table, index or column.
        """
        line = opening(self._opened, names, columns)
        try:
            self._do(line)
        except RefusedError as error:
            raise RefusedNameError(f"{self._where} does not open {names}: {error}") from error
        self._opened += 1
        return self._opened - 1

    def look_up(self, number: int, keys: Sequence[bytes], width: int) -> list[list[Field] | None]:
        """Return the row of each key, None where there is none.

        Args:
            number: of the index.
            keys: at least one, see `questions`.
            width: number of requested columns.

        Raises:
            HandlerError: no answer.
            RefusedError: the server cannot read.
        """
        replies = self._ask(questions(number, keys), len(keys))
        head = no_row(width)
        try:
            return [row(each, head, width) for each in replies]
        except RefusedError as error:
            raise RefusedError(f"{self._where}: {error}") from error

    def close(self) -> None:
        """Close it, and with it all tables."""
        self._socket.close()

    def _do(self, line: bytes) -> None:
        (reply,) = self._ask(line, 1)
        done(reply)

    def _ask(self, lines: bytes, count: int) -> list[bytes]:
        chunks: list[bytes] = []
        missing = count
        try:
            self._socket.sendall(lines)
            while missing > 0:
                chunk = self._socket.recv(_CHUNK)
                if not chunk:
                    raise HandlerError(f"{self._where} closed the connection")
                chunks.append(chunk)
                missing -= chunk.count(b"\n")
        except OSError as error:
            raise HandlerError(f"{self._where}: {cause_of(error)}") from error
        replies = b"".join(chunks).split(b"\n")
        if missing < 0 or replies.pop():
            raise HandlerError(f"{self._where} sent more replies than requests")
        return replies


DIRTY: Final = "READ-UNCOMMITTED"
_WHAT: Final = ("HANDLERSOCKET_PORT", "TX_ISOLATION", "SQL_MODE")
_CHANGED: Final = "SQL"  # the origin of a value that SET GLOBAL has put there
_PADS: Final = "PAD_CHAR_TO_FULL_LENGTH"


@dataclass(frozen=True, slots=True)
class Threads:
    """Settings that HandlerSocket's threads read when the server started.

    Args:
        uncommitted: the threads read uncommitted rows; None: unknown, or there are no threads.
        pads: they may show CHAR with its padding.
    """

    uncommitted: bool | None
    pads: bool


def threads(connection: MySQLConnection, login: Login) -> Threads:
    """Query the server; a server that does not meet the conditions of `check` counts as one without HandlerSocket.

    Raises:
        KvrefError: of the connection.
    """
    variables = _variables(connection)
    if variables.get("HANDLERSOCKET_PORT", ("",))[0] != str(login.handlersocket):
        return Threads(uncommitted=None, pads=True)
    (level, origin), (mode, whence) = variables["TX_ISOLATION"], variables["SQL_MODE"]
    if login.handlersocket_level:
        level, origin = login.handlersocket_level, ""
    # The values of the start are gone; the threads still have them (seen: SET GLOBAL changes nothing for them).
    uncommitted = None if origin == _CHANGED else level == DIRTY
    return Threads(uncommitted, pads=whence == _CHANGED or _PADS in mode)


def check(login: Login, connect: Callable[[], MySQLConnection]) -> None:
    """Try HandlerSocket once.

    Args:
        login: names its port.
        connect: opens a connection for SQL.

    Raises:
        ConfigError: the server has none at that port, or the secret is another one.
        StoreError: the server or the port is not reached.
    """
    what = f"store {login.text}: handlersocket={login.handlersocket}"
    with closing(connect()) as connection:
        port = _variables(connection).get("HANDLERSOCKET_PORT")
    if port is None:
        fix = "start MariaDB with --plugin-load-add=handlersocket, or leave the option out"
        raise ConfigError(f"{what}: this server has no HandlerSocket: {fix}")
    if port[0] != str(login.handlersocket):
        raise ConfigError(f"{what}: this server's handlersocket_port is {port[0] or 'not set'}: name that one")
    try:
        HandlerSocketConnection(login, login.timeout).close()
    except RefusedError as error:
        raise ConfigError(f"{what}: {error}") from error
    except HandlerError as error:
        raise StoreError(f"{what}: {error}: does the server listen there, see its handlersocket_address?") from error


def _variables(connection: MySQLConnection) -> dict[str, tuple[str, str]]:
    """Return values in force and where they come from; nothing of a server that is not MariaDB."""
    ((version,),) = connection.say("SELECT VERSION()")
    if "MariaDB" not in str(version):
        return {}
    names = ", ".join(f"'{each}'" for each in _WHAT)
    rows = connection.say(
        "SELECT variable_name, COALESCE(global_value, ''), global_value_origin"  # noqa: S608 - constants
        f" FROM information_schema.system_variables WHERE variable_name IN ({names})"
    )
    return {text_of(name).upper(): (text_of(value), text_of(origin)) for name, value, origin in rows}


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

    def __init__(self, store: Database) -> None:
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


def _where(mapping: Mapping, store: Database) -> tuple[str, str, str] | None:
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
