"""What `synchronous=FULL` does at each commit, apart from the commit: the write-ahead log is brought to the disk.

SQLite itself commits with `synchronous=NORMAL`, which orders log, file and checkpoints but does not wait for the disk.
The server waits: `sync` is the fdatasync that FULL would have run in the commit. It blocks and may run in a thread.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress

from kvref.errors import StoreError


class Log:
    """The write-ahead log of an open file.

    Args:
        connection: in WAL mode, which keeps the log in place as long as it is open.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        (_, _, path), *_ = connection.execute("PRAGMA database_list").fetchall()
        self._path = f"{path}-wal"
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # makes the log
        self._file: int | None = None
        # Now, since there may be no descriptor left when the first commit comes.
        with suppress(OSError):  # a file that is only to be read may have none
            self._file = self._opened()

    def sync(self) -> None:
        """Return once everything committed so far is on the disk.

        Raises:
            StoreError: it may not be.
        """
        try:
            if self._file is None:
                self._file = self._opened()
            os.fdatasync(self._file)
        except OSError as error:
            unknown = "it is not known whether it was written"
            raise StoreError(f"fdatasync of {self._path}: {error.strerror}: {unknown}") from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)

    def _opened(self) -> int:
        # SQLite holds no lock on this file, so that closing it lets none go (POSIX locks are a process's).
        return os.open(self._path, os.O_RDWR)
