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
from weakref import WeakSet

from kvref import collations
from kvref.errors import ConfigError, KvrefError, StoreError
from kvref.profiles import Profile
from kvref.semantics import ports
from kvref.semantics.mapping import Directory, Mapping, Naming
from kvref.semantics.values import to_bytes
from kvref.storage import catalog
from kvref.storage.containers import check_again
from kvref.storage.rows import REFERENCED, PerMapping, from_sql
from kvref.storage.sqlite_counter import reserved_numbers
from kvref.storage.sqlite_schema import SQLiteCatalog, create
from kvref.storage.sqlite_statements import Statements

_log = logging.getLogger("kvref.storage")

SCHEME: Final = "sqlite:///"
OPEN_WAIT: Final = 10.0  # seconds to wait for another process while opening
IGNORED: Final = "the table ignored the write (a trigger or ON CONFLICT IGNORE)"


class BusyError(KvrefError):
    """Another process is writing to the file: try the operation again."""


def path_of(dsn: str) -> Path:
    """Return the file a DSN names.

    Raises:
        ConfigError: the DSN is not of the form sqlite:///PATH; nothing kept in memory survives the process.
    """
    if not dsn.startswith(SCHEME) or dsn.removeprefix(SCHEME) in ("", ":memory:"):
        raise ConfigError(f"store {dsn!r}: write sqlite:///PATH (sqlite:////absolute/path for an absolute one)")
    return Path(dsn.removeprefix(SCHEME))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
        self._sql = PerMapping(Statements)
        self._mappings: WeakSet[Mapping] = WeakSet()
        self._schema_version = 0
        self._naming = Naming()
        self._writing = False
        self._failures = 0  # commits that failed
        self._lost = ""  # why the open transaction was rolled back by SQLite itself
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=OPEN_WAIT, cached_statements=512)
        except sqlite3.Error as error:
            raise StoreError(f"store {path}: {error}") from error
        try:
            collations.register(self._connection)
            # Text that is no UTF-8 came from SQL; it is shown as it is rather than hide its neighbours.
            self._connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            if not profile.flag("store.checks_act"):
                self._connection.execute("PRAGMA ignore_check_constraints = ON")
            # From here on nothing waits inside SQLite: the driver parks a command that meets another writer.
            self._connection.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error as error:
            self._connection.close()
            raise StoreError(f"store {path}: {error}") from error
        self._catalog = SQLiteCatalog(self._connection, profile)
        self._file = _identity(path)

    def initialise(self) -> bool:
        """Create the configuration tables with the demo rows where they are missing; tell whether that was needed.

        Raises:
            StoreError: the file cannot be written.
        """
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {OPEN_WAIT * 1000:.0f}")
            created = create(self._connection, str(self.profile["store.default_collation"]))
            self._connection.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error as error:
            raise StoreError(f"store {self.path}: {error}") from error
        return created

    def close(self) -> None:
        """Commit what is open and close the file."""
        self.commit()
        self._connection.close()

    def read_directory(self) -> Directory:
        """Read the configuration; `problems` then says which rows cannot be used and why.

        Raises:
            ConfigError: nothing usable, see `catalog.read_directory`.
        """
        self._sql.clear()
        directory, self.problems = catalog.read_directory(self._catalog, self.profile)
        self._naming = directory.naming
        self._mappings.add(directory.default)
        return directory

    def refresh(self) -> None:
        """Notice what others did to the file: DDL, or its loss. Asked once before the operations of a tick.

        Mappings in force are brought up to date in place, see `check_again`.

        Raises:
            BusyError: not to be read just now.
            StoreError: the file is gone or was replaced, or SQLite failed.
        """
        if _identity(self.path) != self._file:
            raise StoreError(f"store {self.path} was deleted or replaced: restart the server")
        try:
            (version,) = self._connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            raise self._translated(error) from error
        if version != self._schema_version:
            self._sql.clear()
            for mapping in list(self._mappings):
                check_again(mapping, self._catalog, self.profile)
            self._schema_version = version

    def cas_numbers(self) -> Iterator[int]:
        """Return the counter of cas numbers: from 1 as the plugin has it, or from a block never used before."""
        if self.profile["cas.start"] == "one":
            return itertools.count(1)
        return reserved_numbers(self._connection, lambda: self._failures)

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
        except (UnicodeEncodeError, UnicodeDecodeError) as error:
            raise StoreError(f"the row holds text that is no UTF-8: {error.reason}") from error

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
            self._failures += 1
            raise StoreError(cause)
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._failures += 1
            self._roll_back()
            raise StoreError(str(error)) from error

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                _log.exception("store %s: cannot roll back", self.path)

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
                return self._write(text, [*sql.parameters(operation.row), sql.key(operation.key)])
            case ports.Remove():
                sql = self._sql(operation.mapping)
                return self._write(sql.remove, [sql.key(operation.key)])
            case ports.Clear():
                return self._clear(operation)
            case ports.ReadAlong():
                return self._read_along(operation)
            case ports.LoadMapping():
                return self._load(operation.name)

    def _lookup(self, operation: ports.Lookup) -> ports.Row | None:
        if operation.for_update:
            self._begin()
        sql = self._sql(operation.mapping)
        key = sql.key(operation.key)
        cells = self._connection.execute(sql.lookup, (key,)).fetchone()
        if cells is None and isinstance(key, str):
            # A program may have written its keys as BLOB, which no text equals.
            cells = self._connection.execute(sql.lookup, (to_bytes(operation.key),)).fetchone()
        return None if cells is None else sql.row(cells)

    def _scan(self, operation: ports.Scan) -> list[ports.Row]:
        sql = self._sql(operation.mapping)
        bounds = operation.bounds()
        asked = sql.scan([sign for sign, _ in bounds], descending=operation.descending)
        parameters = [*(sql.key(cell) for _, cell in bounds), operation.limit]
        return [sql.row(cells) for cells in self._connection.execute(asked, parameters)]

    def _begin(self) -> None:
        if self._lost:
            raise StoreError(self._lost)
        if not self._writing:
            self._connection.execute("BEGIN IMMEDIATE")
            self._writing = True

    def _write(self, sql: str, parameters: list[ports.Cell]) -> str | None:
        changed, cause = self._change(sql, parameters)
        return cause if cause or changed else IGNORED

    def _read_along(self, operation: ports.ReadAlong) -> tuple[ports.Cell, ...]:
        sql = self._sql(operation.mapping)
        cells = self._connection.execute(sql.along(operation.columns), (sql.key(operation.key),)).fetchone()
        return () if cells is None else from_sql(operation.columns, cells)

    def _clear(self, operation: ports.Clear) -> str | None:
        sql = self._sql(operation.mapping)
        if operation.on_reference == "table-kept" and self._catalog.referenced(operation.mapping.source):
            return REFERENCED
        _, cause = self._change(sql.clear, [])
        if cause is not None and operation.on_reference == "rows-kept":
            for key in self._connection.execute(sql.keys).fetchall():
                self._change(sql.remove_exactly, list(key))
            return None
        return cause or (IGNORED if self._connection.execute(sql.any_row).fetchone() else None)

    def _change(self, sql: str, parameters: list[ports.Cell]) -> tuple[int, str | None]:
        self._begin()
        try:
            return self._connection.execute(sql, parameters).rowcount, None
        except sqlite3.IntegrityError as error:
            if not self._connection.in_transaction:
                raise  # ON CONFLICT ROLLBACK took the whole tick with it
            return 0, str(error)

    def _load(self, name: str) -> Mapping | None:
        try:
            mapping, problem = catalog.find(self._catalog, self.profile, self._naming, name)
        except ConfigError as error:
            mapping, problem = None, str(error)
        if mapping is None:
            _log.debug("mapping %r: %s", name, problem)  # a client chooses how often: no louder
        else:
            self._mappings.add(mapping)
        return mapping

    def _translated(self, error: sqlite3.Error) -> KvrefError:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BusyError(str(error))
        if self._writing and not self._connection.in_transaction:
            self._lost = str(error)
        return StoreError(str(error))
