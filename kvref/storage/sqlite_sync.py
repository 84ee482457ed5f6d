"""What `synchronous=FULL` does at each commit, apart from the commit: the write-ahead log is brought to the disk.

SQLite itself commits with `synchronous=NORMAL`, which orders log, file and checkpoints but does not wait for the disk.
The server waits: `sync` is the fdatasync that FULL would have run in the commit. It blocks and may run in a thread.
"""

from __future__ import annotations

import os
import sqlite3

from kvref.errors import StoreError


class Log:
    """The write-ahead log of an open file.

    Args:
        connection: in WAL mode, which keeps the log in place as long as it is open.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        (_, _, path), *_ = connection.execute("PRAGMA database_list").fetchall()
        self._path = f"{path}-wal"
        self._file: int | None = None  # SQLite makes it with the first commit

    def sync(self) -> None:
        """Return once everything committed so far is on the disk.

        Raises:
            StoreError: it may not be.
        """
        try:
            if self._file is None:
                # SQLite holds no lock on this file, so that closing it lets none go (POSIX locks are a process's).
                self._file = os.open(self._path, os.O_RDWR)
            os.fdatasync(self._file)
        except OSError as error:
            unknown = "it is not known whether it was written"
            raise StoreError(f"fdatasync of {self._path}: {error.strerror}: {unknown}") from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
