"""The write-ahead log of SQLite: detect commits of other connections by a look at memory, and make own ones durable.

Each commit, by whatever connection, writes the header of the wal-index before it returns (sqlite.org/walformat.html,
2.1). While the header is unchanged, no connection has committed; otherwise `PRAGMA data_version` shows whether another
connection did.

SQLite itself commits with `synchronous=NORMAL`, which orders log, file and checkpoints but does not wait for the disk.
The server waits: `Log.sync` runs the fdatasync that FULL would run in the commit. It blocks and can run in a thread.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kvref.errors import StoreError
from kvref.storage.sqlite.file import identity

# The number that it returns changes with every commit of another connection, and with no other.
DATA_VERSION: Final = "PRAGMA data_version"
HEADER: Final = 48  # bytes; the second copy of it is the same


class FileState(NamedTuple):
    """How a file is: header of the wal-index, data_version, schema_version."""

    header: bytes
    data: int
    schema: int


class WalIndex:
    """The wal-index of a file, and what commits of others changed. StoreError: the wal-index cannot be read.

    Args:
        path: of the file.
        connection: to it, in WAL mode; stays open as long as this.

    Attributes:
        index: the wal-index.
        header: its beginning as long as no other connection has committed since the state that `accept` recorded.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = str(path)
        self._connection = connection
        self._identity = identity(self._path)
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # makes the wal-index
        (_, _, name), *_ = connection.execute("PRAGMA database_list").fetchall()
        # SQLite's locks are on this file, and a process that closes it anywhere loses them (POSIX): see `close`.
        try:
            self._file = os.open(f"{name}-shm", os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"cannot read the wal-index {name}-shm: {error.strerror}") from error
        self.index = mmap.mmap(self._file, HEADER, access=mmap.ACCESS_READ)
        self.accepted: FileState | None = None  # the state that `accept` recorded
        self.accepted_data_version: int | None = None  # the `data_version` of it
        self.header = b""

    def check(self) -> None:
        """Raise StoreError if the file was deleted or replaced."""
        try:  # as `identity`
            found = os.stat(self._path)  # noqa: PTH116
            replaced = (found.st_dev, found.st_ino) != self._identity
        except OSError:
            replaced = True
        if replaced:
            raise StoreError(f"store {self._path} was deleted or replaced: restart the server")

    def state(self) -> FileState:
        """Return the state of the file, `accepted` if no other connection has committed; raises sqlite3.Error too."""
        self.check()
        header = self.index[:HEADER]
        if self.accepted is not None and header == self.header:
            return self.accepted
        data: int
        (data,) = self._connection.execute(DATA_VERSION).fetchone()
        if self.accepted is not None and data == self.accepted.data:
            self.header = header  # this connection has committed
            return self.accepted
        (schema,) = self._connection.execute("PRAGMA schema_version").fetchone()
        return FileState(header, data, schema)

    def changes(self, now: FileState) -> tuple[bool, bool]:
        """Return whether other connections have committed, and whether tables differ, since the state of `accept`."""
        before = self.accepted
        return before is None or now.data != before.data, before is None or now.schema != before.schema

    def accept(self, now: FileState) -> None:
        self.accepted, self.accepted_data_version = now, now.data
        self.header = now.header

    def close(self) -> None:
        """Close the file; only when no connection of this process to it is open."""
        self.index.close()
        os.close(self._file)


class WriteAheadLog:
    """The write-ahead log of an open file; a connection in WAL mode keeps it in place as long as it is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        (_, _, path), *_ = connection.execute("PRAGMA database_list").fetchall()
        self._path = f"{path}-wal"
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # makes the log
        self._file: int | None = None
        # Now, since there may be no descriptor left when the first commit comes.
        with suppress(OSError):  # a file that is only to be read may have none
            self._file = self._opened()

    def sync(self) -> None:
        """Return once everything committed so far is on the disk; raises StoreError if it may not be."""
        try:
            if self._file is None:
                self._file = self._opened()
            os.fdatasync(self._file)
        except OSError as error:
            unknown = "it is not known whether it was written"
            raise StoreError(f"fdatasync of {self._path}: {error.strerror}: {unknown}") from error

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def _opened(self) -> int:
        # SQLite holds no lock on this file, so that closing it lets none go (POSIX locks are a process's).
        return os.open(self._path, os.O_RDWR)
