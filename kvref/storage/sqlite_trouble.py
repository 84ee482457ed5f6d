"""A file that takes no writes: what its log and its clients are told of the disk."""

from __future__ import annotations

import logging
import resource
import sqlite3
from pathlib import Path
from typing import Final

from kvref.seldom import Seldom

_log = logging.getLogger("kvref.storage")

TELL_EVERY: Final = 10.0  # seconds between two lines of the log, however many writes fail
# Errors of the disk, and not of a statement or another writer.
_OF_DISK: Final = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
}
_NEAR: Final = 1 << 20  # bytes: what one commit may add to a file


class Trouble:
    """The disk's errors of one file.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seldom = Seldom(TELL_EVERY)
        self._open = False  # the log's last line is of an error

    def explained(self, error: sqlite3.Error) -> str:
        """Return what a client is told of an error; where it is the disk's, the log is told too."""
        text = str(error)
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in _OF_DISK:
            return text
        if code == sqlite3.SQLITE_IOERR:
            text = f"{text}{self._limit()}"
        self.met(text)
        return text

    def met(self, text: str) -> None:
        """Take note of an error of the disk."""
        untold = self._seldom.left_out()
        if untold is None:
            return
        more = f" ({untold} more such errors before)" if untold else ""
        self._open = True
        _log.error("store %s: %s%s", self._path, text, more)

    def over(self) -> None:
        """Take note of a write that succeeded after errors."""
        if self._open:
            self._open = False
            _log.info("store %s: writes go on", self._path)

    def _limit(self) -> str:
        """Return words on the limit of a file's size where one of the store's files has come near it."""
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if limit == resource.RLIM_INFINITY:
            return ""
        files = [self._path, self._path.with_name(f"{self._path.name}-wal")]
        if all(each.exists() and each.stat().st_size + _NEAR < limit for each in files):
            return ""
        return f": no file may have more than {limit} bytes: raise `ulimit -f`"
