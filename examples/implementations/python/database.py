"""The SQLite file: one connection, with collations that are registered when a statement needs them."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from collations import register
from columns import Cell
from refusal import Refusal

NO_COLLATION = re.compile(r"no such collation sequence: (.+)")


class Busy(Exception):
    """Another connection holds the lock; the command is tried again."""


class Database:
    """A connection to the SQLite file."""

    def __init__(self, path: str) -> None:
        """Open the file and prepare it for several readers and one writer."""
        self.connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
        self.connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("PRAGMA foreign_keys = ON")

    def impatient(self) -> None:
        """Stop waiting inside SQLite, so that the server can wait for locks without blocking other clients."""
        self.connection.execute("PRAGMA busy_timeout = 0")

    def execute(self, sql: str, cells: Sequence[Cell] = ()) -> sqlite3.Cursor:
        """Run a statement; a collation that it lacks is registered first."""
        for _ in range(50):
            try:
                return self.connection.execute(sql, cells)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise Busy from error
                missing = NO_COLLATION.search(str(error))
                if missing is None:
                    raise
                register(self.connection, missing[1])
        raise Refusal("SERVER_ERROR too many unknown collations")

    def rows(self, sql: str, cells: Sequence[Cell] = ()) -> list[tuple[Cell, ...]]:
        """Run a query and give all its rows."""
        try:
            return self.execute(sql, cells).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Busy from error
            raise

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a transaction that writes; an error undoes it."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def version(self) -> int:
        """Give the number that changes with each change of a table."""
        return int(str(self.rows("PRAGMA schema_version")[0][0]))
