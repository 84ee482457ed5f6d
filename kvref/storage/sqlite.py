"""The embedded store: one SQLite file, one connection, one write transaction for all commands of an event-loop tick.

The first write of a tick takes SQLite's write lock; `commit` makes the tick durable (journal WAL, synchronous FULL).
While another process holds that lock a write raises BusyError and is tried again by the caller; reads never wait.
"""

from __future__ import annotations

import itertools
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kvref.errors import ConfigError, KvrefError, StoreError
from kvref.profiles import Profile
from kvref.semantics import ports
from kvref.semantics.mapping import Directory, Mapping
from kvref.storage import catalog
from kvref.storage.sqlite_schema import SQLiteCatalog, create
from kvref.storage.sqlite_statements import Statements

_log = logging.getLogger("kvref.storage")

SCHEME: Final = "sqlite:///"
# cas numbers are reserved in blocks of this size, one at each start: with 2^31 starts none repeats below 2^63.
CAS_BLOCK: Final = 1 << 32


class BusyError(KvrefError):
    """Another process is writing to the file: try the operation again."""


def path_of(dsn: str) -> Path:
    """Return the file a DSN names.

    Raises:
        ConfigError: the DSN is not of the form sqlite:///PATH.
    """
    if not dsn.startswith(SCHEME) or len(dsn) == len(SCHEME):
        raise ConfigError(f"store {dsn!r}: write sqlite:///PATH (sqlite:////absolute/path for an absolute one)")
    return Path(dsn.removeprefix(SCHEME))


class SQLiteStore:
    """Answer operations from one SQLite file.

    Args:
        path: the file; created when missing, without configuration until `initialise`.
        profile: decides what is read from the configuration and where cas numbers start.

    Raises:
        StoreError: the file cannot be opened or is no database.
    """

    def __init__(self, path: Path, profile: Profile) -> None:
        self.path = path
        self.profile = profile
        self.problems: list[str] = []
        self._statements: dict[int, Statements] = {}
        self._writing = False
        self._lost = ""  # why the open transaction was rolled back by SQLite itself
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=0, cached_statements=512)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error as error:
            raise StoreError(f"store {path}: {error}") from error
        self._catalog = SQLiteCatalog(self._connection)

    def initialise(self) -> bool:
        """Create the configuration tables with the demo rows where they are missing; tell whether that was needed."""
        try:
            return create(self._connection)
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def close(self) -> None:
        """Commit what is open and close the file."""
        self.commit()
        self._connection.close()

    def read_directory(self) -> Directory:
        """Read the configuration; `problems` then says which rows cannot be used and why.

        Raises:
            ConfigError: nothing usable, see `catalog.read_directory`.
        """
        self._statements.clear()
        directory, self.problems = catalog.read_directory(self._catalog, self.profile)
        return directory

    def cas_numbers(self) -> Iterator[int]:
        """Return the counter of cas numbers: from 1 as the plugin has it, or from a block never used before."""
        if self.profile["cas.start"] == "one":
            return itertools.count(1)
        try:
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS kvref_counters (name TEXT PRIMARY KEY, next INTEGER NOT NULL)"
            )
            (first,) = self._connection.execute(
                "INSERT INTO kvref_counters VALUES ('cas', ?)"
                " ON CONFLICT (name) DO UPDATE SET next = next + ? RETURNING next",
                (CAS_BLOCK + 1, CAS_BLOCK),
            ).fetchone()
        except sqlite3.Error as error:
            raise self._translated(error) from error
        return itertools.count(first - CAS_BLOCK)

    def execute(self, operation: ports.Operation) -> Any:
        """Answer one operation.

        Raises:
            BusyError: the write lock is held by another process; nothing was changed.
            StoreError: SQLite failed; the text is its cause.
        """
        try:
            return self._answer(operation)
        except sqlite3.Error as error:
            raise self._translated(error) from error
        except OverflowError as error:
            raise StoreError(f"SQLite cannot hold this number: {error}") from error

    @property
    def dirty(self) -> bool:
        """Tell whether there are writes that no commit has made durable yet."""
        return self._writing

    def commit(self) -> None:
        """Make the writes since the last commit durable.

        Raises:
            StoreError: they are not, and are gone: whoever waits for them must be told.
        """
        if not self._writing:
            return
        self._writing = False
        cause, self._lost = self._lost, ""
        if cause:
            raise StoreError(cause)
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise StoreError(str(error)) from error

    def _answer(self, operation: ports.Operation) -> Any:
        match operation:
            case ports.Lookup():
                return self._lookup(operation)
            case ports.Scan():
                return self._scan(operation)
            case ports.Insert():
                sql = self._sql(operation.mapping)
                text = sql.insert_cleared if operation.clear_unmapped else sql.insert
                return self._write(text, sql.parameters(operation.row))
            case ports.Update():
                sql = self._sql(operation.mapping)
                text = sql.update_cleared if operation.clear_unmapped else sql.update
                return self._write(text, [*sql.parameters(operation.row), operation.key])
            case ports.Remove():
                return self._write(self._sql(operation.mapping).remove, [operation.key])
            case ports.Clear():
                return self._write(self._sql(operation.mapping).clear, [])
            case ports.LoadMapping():
                return self._load(operation.name)

    def _lookup(self, operation: ports.Lookup) -> ports.Row | None:
        if operation.for_update:
            self._begin()
        sql = self._sql(operation.mapping)
        cells = self._connection.execute(sql.lookup, (operation.key,)).fetchone()
        return None if cells is None else sql.row(cells)

    def _scan(self, operation: ports.Scan) -> list[ports.Row]:
        sql = self._sql(operation.mapping)
        bounds = [
            (f"{sign}{'=' if inclusive else ''}", cell)
            for sign, cell, inclusive in (
                (">", operation.low, operation.low_inclusive),
                ("<", operation.high, operation.high_inclusive),
            )
            if cell is not None
        ]
        found = self._connection.execute(sql.scan([sign for sign, _ in bounds]), [cell for _, cell in bounds])
        return [sql.row(cells) for cells in found]

    def _begin(self) -> None:
        if self._lost:
            raise StoreError(self._lost)
        if not self._writing:
            self._connection.execute("BEGIN IMMEDIATE")
            self._writing = True

    def _write(self, sql: str, parameters: list[ports.Cell]) -> str | None:
        self._begin()
        try:
            self._connection.execute(sql, parameters)
        except sqlite3.IntegrityError as error:
            return str(error)
        return None

    def _sql(self, mapping: Mapping) -> Statements:
        statements = self._statements.get(id(mapping))
        if statements is None or statements.mapping is not mapping:
            statements = self._statements[id(mapping)] = Statements(mapping)
        return statements

    def _load(self, name: str) -> Mapping | None:
        mapping, problem = catalog.find(self._catalog, self.profile, name)
        if mapping is None:
            _log.info("mapping %r: %s", name, problem)
        return mapping

    def _translated(self, error: sqlite3.Error) -> KvrefError:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BusyError(str(error))
        if self._writing and not self._connection.in_transaction:
            self._lost = str(error)
        return StoreError(str(error))
