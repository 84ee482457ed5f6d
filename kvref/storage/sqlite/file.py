"""SQLite's file: which one a DSN names, a connection to it, and the cas numbers that it reserves."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from kvref import collations
from kvref.errors import ConfigError, StoreError
from kvref.profiles import Profile
from kvref.storage.sqlite.errors import holders, is_busy

_log = logging.getLogger("kvref.storage")

SCHEME: Final = "sqlite:///"
CACHE_KIB: Final = 64 << 10  # of pages, at most, for each connection
# A page that is written often reaches the file once for all: the more, the longer the log may get (here 32 MB).
CHECKPOINT_PAGES: Final = 8192
OPEN_WAIT: Final = 10.0  # seconds to wait for another process while opening


def path_of(dsn: str) -> Path:
    """Return the file a DSN names; raises ConfigError if it is not of the form sqlite:///PATH."""
    if not dsn.startswith(SCHEME) or dsn.removeprefix(SCHEME) in ("", ":memory:"):
        raise ConfigError(f"store {dsn!r}: write sqlite:///PATH (sqlite:////absolute/path for an absolute one)")
    return Path(dsn.removeprefix(SCHEME))


def identity(path: Path | str) -> tuple[int, int] | None:
    """Return the identity of a file, which changes if it is replaced; None if there is no file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a text has no method, and takes less time than a Path
    except OSError:
        return None
    return found.st_dev, found.st_ino


def opened(path: Path, profile: Profile) -> sqlite3.Connection:
    """Open a connection; the file is created if it is missing. The profile decides whether CHECK constraints act.

    Raises:
        StoreError: the path is that of a directory, or its directory does not exist, or it cannot have the mode WAL.
        sqlite3.Error: the file cannot be opened or is not a database.
    """
    if path.is_dir():
        raise StoreError(f"store {path}: it is a directory: name a file")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"store {path}: there is no directory {path.parent}: create it, or name another file")
    connection = sqlite3.connect(path, isolation_level=None, timeout=OPEN_WAIT, cached_statements=512)
    try:
        collations.register(connection)
        # Text that is not UTF-8 came from SQL; it is shown as it is rather than hide its neighbours.
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        _use_wal(connection, path)
        connection.execute("PRAGMA synchronous = NORMAL")  # the rest of FULL is `wal.Log`
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA temp_store = MEMORY")  # of savepoints too, else in a file above 64 KiB
        connection.execute("PRAGMA foreign_keys = ON")
        if not profile.flag("store.checks_act"):
            connection.execute("PRAGMA ignore_check_constraints = ON")
        # From here on nothing waits inside SQLite: the executor parks a command that meets another writer.
        connection.execute("PRAGMA busy_timeout = 0")
    except (sqlite3.Error, StoreError):
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection, path: Path) -> None:
    """Set the journal mode WAL, which stays for all programs; it needs the file for itself for a moment.

    Raises sqlite3.Error, and StoreError: another program uses the file in its present mode, or it cannot have WAL.
    """
    (before,) = connection.execute("PRAGMA journal_mode").fetchone()
    if before == "wal":
        return
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    try:
        after = _set_wal(connection, path)
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        raise StoreError(
            f"store {path}: {error}: the journal mode of the file is {before}, and kvref needs WAL: {holders(path)}"
            f" uses the file: end its transactions, or change the mode when it is closed: sqlite3 {path}"
            " 'PRAGMA journal_mode = WAL'"
        ) from error
    if after != "wal":
        raise StoreError(
            f"store {path}: the journal mode of the file stays {after}, and kvref needs WAL: the file system has no"
            " shared memory: name a file on a local disk"
        )
    if pages:
        _log.warning(
            "store %s: the journal mode of the file was %s and is WAL from now on, for all programs; to change it back"
            " after kvref has stopped: sqlite3 %s 'PRAGMA journal_mode = %s'",
            path, before, path, before.upper(),
        )  # fmt: skip


def _set_wal(connection: sqlite3.Connection, path: Path) -> str:
    """Change the mode and return the one in force; raises sqlite3.OperationalError if others use the file too long."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        (after,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        _log.info("store %s: to set WAL mode, waiting up to %g s for another program to end its work", path, OPEN_WAIT)
        connection.execute(f"PRAGMA busy_timeout = {OPEN_WAIT * 1000:.0f}")
        (after,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {OPEN_WAIT * 1000:.0f}")
    return str(after)


# Types of file systems, as mountinfo has them, whose files several machines can open.
_NETWORK: Final = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "ocfs2", "gfs2",
    "davfs", "sshfs", "rclone", "s3fs", "gcsfuse", "juicefs", "ceph-fuse", "davfs2",
})  # fmt: skip


def network_of(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the type of the network file system that a file is on by proc(5); "" for none or an unknown one."""
    wanted, found, kind = path.absolute().parent.resolve(), Path(), ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        mount, _, source = line.partition(" - ")
        point = Path(mount.split()[4].replace("\\040", " "))
        if wanted.is_relative_to(point) and len(point.parts) >= len(found.parts):
            found, kind = point, source.split()[0]
    return kind if kind.removeprefix("fuse.") in _NETWORK else ""


def warn_of_network(path: Path) -> None:
    """Log that a file is on a network disk, where other machines do not see its wal-index (sqlite.org/wal.html)."""
    if kind := network_of(path):
        _log.warning(
            "store %s: it is on a network file system (%s): SQLite's WAL mode works on one machine only, and locks may"
            " fail there: use a local disk", path, kind,
        )  # fmt: skip


COUNTERS: Final = "kvref_counters"
CAS_BLOCK: Final = 1_000_000  # numbers reserved at once: those of a block that a crash leaves are not used again


class ReservedNumbers:
    """Numbers that no other server of the file returns.

    Every write that takes a number has the write lock: the commit that first uses a block also reserves it. Each of the
    `failures` of the store may have lost a reservation; `reserved` is called after one.
    """

    def __init__(self, connection: sqlite3.Connection, store: Any, reserved: Callable[[], None] = lambda: None) -> None:
        self._connection = connection
        self._store = store
        self._reserved = reserved
        self._before = 0
        self._block = iter(range(0))

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        """Return the next number; StoreError if a block cannot be reserved, and the next call tries again."""
        failures = self._store.failures
        if failures == self._before:  # else others could get these numbers too
            number = next(self._block, None)
            if number is not None:
                return number
        self._block = iter(_reserve_block(self._connection))
        self._before = failures
        self._reserved()
        return next(self._block)


def _reserve_block(connection: sqlite3.Connection) -> range:
    try:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {COUNTERS} (name TEXT PRIMARY KEY, next INTEGER NOT NULL)")
        (end,) = connection.execute(
            f"INSERT INTO {COUNTERS} VALUES ('cas', ?)"  # noqa: S608 - a constant
            " ON CONFLICT (name) DO UPDATE SET next = next + ? RETURNING next",
            (CAS_BLOCK + 1, CAS_BLOCK),
        ).fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"cannot reserve cas numbers: {error}") from error
    return range(end - CAS_BLOCK, end)
