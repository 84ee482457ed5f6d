"""What others did to a file in WAL mode: whether they committed, one look at memory, and whether it is still there.

Each commit, by whatever connection, writes the header of the wal-index before it returns (sqlite.org/walformat.html,
2.1): where that is as it was, nobody has committed. Where it is not, `PRAGMA data_version` tells who.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
from pathlib import Path
from typing import Final, NamedTuple

from kvref.errors import StoreError
from kvref.storage.sqlite_file import identity

HEADER: Final = 48  # bytes; the second copy of it is the same


class Seen(NamedTuple):
    """How a file is: header of the wal-index, data_version, schema_version."""

    header: bytes
    data: int
    schema: int


class Watch:
    """A look at the wal-index of a file, and at what commits of others changed.

    Args:
        path: of the file.
        connection: to it, in WAL mode; stays open as long as this.

    Raises:
        StoreError: the wal-index cannot be read.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._identity = identity(path)
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # makes the wal-index
        (_, _, name), *_ = connection.execute("PRAGMA database_list").fetchall()
        # SQLite's locks are on this file, and a process that closes it anywhere loses them (POSIX): see `close`.
        try:
            self._file = os.open(f"{name}-shm", os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"cannot read the wal-index {name}-shm: {error.strerror}") from error
        self._index = mmap.mmap(self._file, HEADER, access=mmap.ACCESS_READ)
        self._seen: Seen | None = None

    def unchanged(self) -> bool:
        """Tell whether nobody has committed since what `accept` took."""
        return self._seen is not None and self._index[:HEADER] == self._seen.header

    def look(self) -> Seen:
        """Return how the file is now; raises sqlite3.Error, and StoreError where it is gone or another one."""
        if identity(self._path) != self._identity:
            raise StoreError(f"store {self._path} was deleted or replaced: restart the server")
        if self._seen is not None and self.unchanged():
            return self._seen
        header = self._index[:HEADER]
        data = self.data_version()
        if self._seen is not None and data == self._seen.data:
            return self._seen._replace(header=header)
        (schema,) = self._connection.execute("PRAGMA schema_version").fetchone()
        return Seen(header, data, schema)

    def data_version(self) -> int:
        """Return a number that every commit of another connection changes, and no other; raises sqlite3.Error."""
        version: int
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return version

    def changes(self, now: Seen) -> tuple[bool, bool]:
        """Tell whether others have committed, and whether tables are others, since what `accept` took."""
        before = self._seen
        return before is None or now.data != before.data, before is None or now.schema != before.schema

    def accept(self, now: Seen) -> None:
        """Take what `look` returned for known."""
        self._seen = now

    @property
    def known_data(self) -> int | None:
        """Return the `data_version` of what `accept` took."""
        return None if self._seen is None else self._seen.data

    def close(self) -> None:
        """Close the file; only when no connection of this process to it is open."""
        self._index.close()
        os.close(self._file)
