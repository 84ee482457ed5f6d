"""Whether anything was committed to a file in WAL mode: one look at memory instead of a statement.

Each commit, by whatever connection, writes the header of the wal-index before it returns (sqlite.org/walformat.html,
2.1): where that is as it was, nobody has committed. Where it is not, `PRAGMA data_version` tells who.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
from typing import Final

from kvref.errors import StoreError

HEADER: Final = 48  # bytes; the second copy of it is the same


class Watch:
    """A look at the wal-index of a file.

    Args:
        connection: in WAL mode, stays open as long as this.

    Raises:
        StoreError: the wal-index cannot be read.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # makes the wal-index
        (_, _, path), *_ = connection.execute("PRAGMA database_list").fetchall()
        # SQLite's locks are on this file, and a process that closes it anywhere loses them (POSIX): see `close`.
        try:
            self._file = os.open(f"{path}-shm", os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"cannot read the wal-index {path}-shm: {error.strerror}") from error
        self._index = mmap.mmap(self._file, HEADER, access=mmap.ACCESS_READ)

    def header(self) -> bytes:
        """Return what every commit changes."""
        return self._index[:HEADER]

    def close(self) -> None:
        """Close the file; only when no connection of this process to it is open."""
        self._index.close()
        os.close(self._file)
