"""SQLite's file: which one a DSN names, a connection to it, and the cas numbers that it reserves."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from kvref import collations
from kvref.errors import ConfigError, StoreError
from kvref.profiles import Profile

SCHEME: Final = "sqlite:///"
CACHE_KIB: Final = 64 << 10  # of pages, at most, for each connection
# A page that is written often reaches the file once for all: the more, the longer the log may get (here 32 MB).
CHECKPOINT_PAGES: Final = 8192
OPEN_WAIT: Final = 10.0  # seconds to wait for another process while opening


def path_of(dsn: str) -> Path:
    """Return the file a DSN names.

    Raises:
        ConfigError: the DSN is not of the form sqlite:///PATH; nothing kept in memory survives the process.
    """
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
    """Open a connection; raises sqlite3.Error.

    Args:
        path: of the file; created when missing.
        profile: decides whether CHECK constraints act.
    """
    connection = sqlite3.connect(path, isolation_level=None, timeout=OPEN_WAIT, cached_statements=512)
    try:
        collations.register(connection)
        # Text that is no UTF-8 came from SQL; it is shown as it is rather than hide its neighbours.
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # the rest of FULL is `wal.Log`
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA foreign_keys = ON")
        if not profile.flag("store.checks_act"):
            connection.execute("PRAGMA ignore_check_constraints = ON")
        # From here on nothing waits inside SQLite: the executor parks a command that meets another writer.
        connection.execute("PRAGMA busy_timeout = 0")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


COUNTERS: Final = "kvref_counters"
CAS_BLOCK: Final = 1_000_000  # numbers reserved at once: those of a block that a crash leaves are not used again


class ReservedNumbers:
    """Numbers that no other server of the file returns.

    Every write that takes a number has the write lock: the commit that first uses a block also reserves it.

    Args:
        connection: connection to the file.
        failures: returns the number of failed commits, each of which may have lost a reservation.
        reserved: is called when the row of the counter was written.
    """

    def __init__(
        self, connection: sqlite3.Connection, failures: Callable[[], int], reserved: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        self._failures = failures
        self._reserved = reserved
        self._before = 0
        self._block = iter(range(0))

    def __iter__(self) -> Iterator[int]:
        """Return itself."""
        return self

    def __next__(self) -> int:
        """Return the next number.

        Raises:
            StoreError: a block cannot be reserved; the next call tries again.
        """
        failures = self._failures()
        number = next(self._block, None) if failures == self._before else None  # others could get these numbers too
        if number is None:
            self._block = iter(_reserve_block(self._connection))
            self._before = failures
            self._reserved()
            number = next(self._block)
        return number


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
