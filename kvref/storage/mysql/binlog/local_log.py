"""The files of a server's binary log on this machine, whose end is the end of what the server has written.

A server writes a transaction to the file before it answers the client that commits it: MySQL in the flush stage of the
group commit (`MYSQL_BIN_LOG::ordered_commit`), MariaDB in `MYSQL_BIN_LOG::trx_group_commit_leader`. Whoever has read
the log up to the end of its newest file has therefore read every commit that was answered, without a query.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Final, NamedTuple

from kvref.storage.mysql.binlog.positions import LogEnd

_log = logging.getLogger("kvref.storage")

UNUSED: Final = "gets of cached rows query the position of the server: %s"  # the files are not used, and why
_MAGIC: Final = b"\xfebin"
RESTART: Final = 0.01  # seconds: a server takes longer to start again after a crash and to commit


class Mark(NamedTuple):
    """An end of the log; later ones are greater: how many files were opened before, and an offset in bytes."""

    file: int
    offset: int


class LocalLog:
    """The newest file of a log; raises OSError if the directory cannot be opened.

    `problem`: why the file of the last `read_to` is not used; empty if it is.
    """

    def __init__(self, directory: str) -> None:
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._file = -1
        self._next = b""  # name of the file after it
        self._of = "", b""
        self._number = 0
        self._offset = 0
        self._newest_at = 0.0
        self.problem = ""

    def read_to(self, end: LogEnd) -> None:
        """Take note of what was read: all up to an end, and all files before."""
        if (end.file, end.head) != self._of:
            self._open(end)
        self._offset = end.offset

    def is_read(self) -> bool:
        """Return whether all was read that the server has written by now."""
        return self._file >= 0 and os.lseek(self._file, 0, os.SEEK_END) == self._offset and self._is_newest()

    def written(self) -> Mark | None:
        """Return the end of what the server has written by now; None if it is not known."""
        # What is not read may end with the words that the server goes on in the next file.
        if self._file < 0 or self._has_next():
            return None
        return Mark(self._number, os.lseek(self._file, 0, os.SEEK_END))

    def has_read(self, mark: Mark) -> bool:
        """Return whether all before an end was read."""
        return self._file >= 0 and (self._number, self._offset) >= mark

    def close(self) -> None:
        """Close the files; nothing counts as read any more."""
        self._close_file()
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def _is_newest(self) -> bool:
        # Where all of a file is read: a server that goes on in the next one says so at its end, unless it has crashed.
        now = time.monotonic()
        if now - self._newest_at > RESTART:
            if self._has_next():
                return False
            self._newest_at = now
        return True

    def _has_next(self) -> bool:
        return os.access(self._next, os.F_OK, dir_fd=self._directory)

    def _open(self, end: LogEnd) -> None:
        self._close_file()
        self._of = end.file, end.head
        self._number += 1
        self._newest_at = 0.0
        base, _, digits = end.file.rpartition(".")
        problem = ""
        try:
            self._next = f"{base}.{int(digits) + 1:0{len(digits)}}".encode()
            self._file = os.open(end.file, os.O_RDONLY, dir_fd=self._directory)
            if os.read(self._file, len(_MAGIC) + len(end.head)) != _MAGIC + end.head:
                problem = f"{end.file} is encrypted or of another server"
        except ValueError:
            problem = f"{end.file} has no number"
        except OSError as error:
            problem = str(error)
        if problem:
            self._close_file()
            if not self.problem:
                _log.info(UNUSED, problem)
        self.problem = problem

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
