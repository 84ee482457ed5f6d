"""Translate errors of SQLite into errors of the store, and report errors of the disk."""

from __future__ import annotations

import logging
import os
import resource
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from kvref.errors import KvrefError, StoreError
from kvref.log_throttle import LogThrottle


class BusyError(KvrefError):
    """Another process is writing to the file: try the operation again."""


class StatementError(StoreError):
    """A table is gone, or is no longer what the statement was made for."""


# What a statement raises: SQLite refuses it, a number has more than 64 bits, or text is not UTF-8.
ERRORS: Final = (sqlite3.Error, OverflowError, UnicodeEncodeError, UnicodeDecodeError)
Failure = sqlite3.Error | OverflowError | UnicodeEncodeError | UnicodeDecodeError


_T = TypeVar("_T")
_P = ParamSpec("_P")


def translating(method: Callable[Concatenate[Any, _P], _T]) -> Callable[Concatenate[Any, _P], _T]:
    """Raise errors of SQLite in a method as what `translated` of its object returns for them."""

    @wraps(method)
    def translated(self: Any, /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        try:
            return method(self, *arguments, **named)
        except ERRORS as error:
            raise self.translated(error) from error

    return translated


_log = logging.getLogger("kvref.storage")

LOG_INTERVAL: Final = 10.0  # seconds between two lines of the log, however many writes fail
# Errors of the disk, and not of a statement or another writer.
_OF_DISK: Final = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
}
# The bytes that SQLite locks in a file (os_unix.c, PENDING_BYTE and behind it), and in its wal-index.
_LOCK_BYTES: Final = range(0x40000000, 0x40000200)
_INDEX_BYTES: Final = range(120, 128)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_WRITE: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another connection has the lock that a statement needs."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


def of_opening(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the error of a file that cannot be opened or read, with its cause and the fix."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    fix = ""
    if code in _BUSY:
        fix = f": {holders(path)} has a lock on the file: end its transactions, or stop it"
    elif code in _WRITE:
        fix = (
            f": the user of this process needs permission to read and write {path} and its folder, where"
            f" SQLite keeps {path.name}-wal and {path.name}-shm"
        )
    elif code == sqlite3.SQLITE_NOTADB:
        fix = ": it is of another program, or encrypted: name a SQLite file"
    elif code == sqlite3.SQLITE_CORRUPT:
        fix = f": restore the file from a backup, or save what is left: sqlite3 {path} .recover"
    elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        disk = os.statvfs(path.parent)
        fix = f": check the disk of {path.parent}, where {disk.f_bavail * disk.f_frsize} bytes are free"
    return StoreError(f"store {path}: {error}{fix}")


def holders(path: Path) -> str:
    """Return who has locks on a file, as far as the kernel shows processes (proc(5), /proc/locks)."""
    files = {}
    for each, locked in ((path, _LOCK_BYTES), (path.with_name(f"{path.name}-shm"), _INDEX_BYTES)):
        with suppress(OSError):
            files[str(each.stat().st_ino)] = locked
    found: dict[int, str] = {}
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            fields = line.replace(" -> ", " ").split()
            inode, first = fields[5].rpartition(":")[2], int(fields[6])
            pid = int(fields[4])
            if inode in files and first in files[inode] and pid not in (-1, 0, os.getpid()):
                found[pid] = f"process {pid} ({_name(pid)})"
    return ", ".join(found.values()) or "another program"


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"


_NEAR: Final = 1 << 20  # bytes: what one commit may add to a file


class DiskErrors:
    """The disk's errors of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._throttle = LogThrottle(LOG_INTERVAL)
        self.open = False  # the log's last line is of an error

    def describe(self, error: sqlite3.Error) -> str:
        """Return the text of an error for the client; log it if the disk is the cause."""
        text = str(error)
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in _OF_DISK:
            return text
        if code == sqlite3.SQLITE_IOERR:
            text = f"{text}{self._limit()}"
        self.record(text)
        return text

    def record(self, text: str) -> None:
        suppressed = self._throttle.suppressed()
        if suppressed is None:
            return
        more = f" ({suppressed} more such errors before)" if suppressed else ""
        self.open = True
        _log.error("store %s: %s%s", self._path, text, more)

    def record_success(self) -> None:
        """Record a write that succeeded after errors."""
        if self.open:
            self.open = False
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
