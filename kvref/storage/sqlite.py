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
# cas numbers are reserved in the file in blocks of this size, so that none comes back after a crash.
CAS_BLOCK: Final = 1_000_000
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
        self._statements: dict[Mapping, Statements] = {}
        self._writing = False
        self._failures = 0  # commits that failed
        self._lost = ""  # why the open transaction was rolled back by SQLite itself
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=OPEN_WAIT, cached_statements=512)
        except sqlite3.Error as error:
            raise StoreError(f"store {path}: {error}") from error
        try:
            # Text that is no UTF-8 came from SQL; it is shown as it is rather than hide its neighbours.
            self._connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            # From here on nothing waits inside SQLite: the driver parks a command that meets another writer.
            self._connection.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error as error:
            self._connection.close()
            raise StoreError(f"store {path}: {error}") from error
        self._catalog = SQLiteCatalog(self._connection)

    def initialise(self) -> bool:
        """Create the configuration tables with the demo rows where they are missing; tell whether that was needed.

        Raises:
            StoreError: the file cannot be written.
        """
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {OPEN_WAIT * 1000:.0f}")
            created = create(self._connection)
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
        self._statements.clear()
        directory, self.problems = catalog.read_directory(self._catalog, self.profile)
        return directory

    def cas_numbers(self) -> Iterator[int]:
        """Return the counter of cas numbers: from 1 as the plugin has it, or from a block never used before."""
        if self.profile["cas.start"] == "one":
            return itertools.count(1)
        return self._reserved_numbers()

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
        except UnicodeEncodeError as error:
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
                return self._write(text, [*sql.parameters(operation.row), operation.key])
            case ports.Remove():
                return self._write(self._sql(operation.mapping).remove, [operation.key])
            case ports.Clear():
                return self._clear(self._sql(operation.mapping))
            case ports.LoadMapping():
                return self._load(operation.name)

    def _lookup(self, operation: ports.Lookup) -> ports.Row | None:
        if operation.for_update:
            self._begin()
        sql = self._sql(operation.mapping)
        cells = self._connection.execute(sql.lookup, (operation.key,)).fetchone()
        if cells is None and isinstance(operation.key, str):
            # A program may have written its keys as BLOB, which no text equals.
            cells = self._connection.execute(sql.lookup, (operation.key.encode(),)).fetchone()
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
        parameters = [*(cell for _, cell in bounds), operation.limit]
        return [
            sql.row(cells) for cells in self._connection.execute(sql.scan([sign for sign, _ in bounds]), parameters)
        ]

    def _begin(self) -> None:
        if self._lost:
            raise StoreError(self._lost)
        if not self._writing:
            self._connection.execute("BEGIN IMMEDIATE")
            self._writing = True

    def _write(self, sql: str, parameters: list[ports.Cell]) -> str | None:
        changed, cause = self._change(sql, parameters)
        return cause if cause or changed else IGNORED

    def _clear(self, sql: Statements) -> str | None:
        _, cause = self._change(sql.clear, [])
        return cause or (IGNORED if self._connection.execute(sql.any_row).fetchone() else None)

    def _change(self, sql: str, parameters: list[ports.Cell]) -> tuple[int, str | None]:
        self._begin()
        try:
            return self._connection.execute(sql, parameters).rowcount, None
        except sqlite3.IntegrityError as error:
            if not self._connection.in_transaction:
                raise  # ON CONFLICT ROLLBACK took the whole tick with it
            return 0, str(error)

    def _sql(self, mapping: Mapping) -> Statements:
        statements = self._statements.get(mapping)
        if statements is None:
            statements = self._statements[mapping] = Statements(mapping)
        return statements

    def _load(self, name: str) -> Mapping | None:
        try:
            mapping, problem = catalog.find(self._catalog, self.profile, name)
        except ConfigError as error:
            mapping, problem = None, str(error)
        if mapping is None:
            _log.debug("mapping %r: %s", name, problem)  # a client chooses how often: no louder
        return mapping

    def _reserved_numbers(self) -> Iterator[int]:
        while True:
            failures = self._failures
            for number in self._reserve_block():
                yield number
                if self._failures != failures:
                    break  # the reservation may have been lost with the tick: others could get these numbers too

    def _reserve_block(self) -> range:
        # Asked for by a write, which has the write lock: the block is reserved by the commit that first uses it.
        try:
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS kvref_counters (name TEXT PRIMARY KEY, next INTEGER NOT NULL)"
            )
            (end,) = self._connection.execute(
                "INSERT INTO kvref_counters VALUES ('cas', ?)"
                " ON CONFLICT (name) DO UPDATE SET next = next + ? RETURNING next",
                (CAS_BLOCK + 1, CAS_BLOCK),
            ).fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"cannot reserve cas numbers: {error}") from error
        return range(end - CAS_BLOCK, end)

    def _translated(self, error: sqlite3.Error) -> KvrefError:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BusyError(str(error))
        if self._writing and not self._connection.in_transaction:
            self._lost = str(error)
        return StoreError(str(error))
