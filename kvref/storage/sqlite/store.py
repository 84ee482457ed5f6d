"""The embedded store: one SQLite file, one connection, one write transaction for all commands between two commits.

The first write after a commit takes SQLite's write lock; `commit` and then `sync` make it durable, as
`synchronous=FULL` does in one. While another process holds it a write raises BusyError, for the caller to
try again; reads never wait.
"""

from __future__ import annotations

import itertools
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from kvref.engine import operations
from kvref.engine.mapping import Directory, Mapping, Naming
from kvref.errors import ConfigError, KvrefError, StoreError
from kvref.profiles import Profile
from kvref.storage.base import PRIMARY, Store
from kvref.storage.config import catalog
from kvref.storage.config.containers import Container, check_again
from kvref.storage.rows import PerMapping
from kvref.storage.sqlite.errors import ERRORS, BusyError, DiskErrors, Failure, StatementError, of_opening, translating
from kvref.storage.sqlite.file import COUNTERS, OPEN_WAIT, SCHEME, ReservedNumbers, opened
from kvref.storage.sqlite.row_cache import RowCache
from kvref.storage.sqlite.rows import Rows, estimate
from kvref.storage.sqlite.schema import SQLiteCatalog, create, create_cache
from kvref.storage.sqlite.statements import Statements
from kvref.storage.sqlite.wal import DATA_VERSION, WalIndex, WriteAheadLog

_log = logging.getLogger("kvref.storage")


def _row_of(mapping: Mapping) -> Container:
    assert isinstance(mapping.row, Container)
    return mapping.row


class SQLiteStore(Store):
    """Answer operations from one SQLite file, which is created when missing, without configuration until `initialise`.

    Raises StoreError: the file cannot be opened or is not a database.
    """

    def __init__(self, path: Path, profile: Profile) -> None:
        self.path = path
        self.dsn = f"{SCHEME}{path}"
        self.profile = profile
        self.reads = frozenset((PRIMARY,))
        self.problems: list[str] = []
        self.cache = RowCache(0)
        self.shared_mappings: catalog.SharedMappings | None = None
        self.when_committed: Callable[[float], None] | None = None  # called by `sync`, in its thread, with its seconds
        # The SQL of a mapping as its table is now, and how the file compares its keys.
        self.statements = PerMapping(Statements)
        # Whether a table can refuse a row for more than its key, or does something of its own with it.
        self.has_rules = PerMapping(lambda each: self.catalog.has_rules(each.source, each.written))
        self._rolls_back: bool | None = None  # see `can_roll_back`; None: not looked yet
        self._mappings: WeakSet[Mapping] = WeakSet()
        self._of_row: WeakValueDictionary[Container, Mapping] = WeakValueDictionary()  # made since the tables changed
        self._naming = Naming()
        self.dirty = False  # there are writes that no commit has made durable yet
        self.failures = 0  # commits that failed
        self._lost = ""  # why the open transaction was rolled back by SQLite itself
        self._holds_writes = False  # the open transaction
        self._batch_only = False  # the open transaction holds nothing but the batch that is written
        self._disk_errors = DiskErrors(path)
        try:
            self._connection = opened(self.path, self.profile)
            self._log = WriteAheadLog(self._connection)
            self.wal_index = WalIndex(path, self._connection)
        except sqlite3.Error as error:
            raise of_opening(path, error) from error
        self.catalog = SQLiteCatalog(self._connection, profile)
        self._rows = Rows(self._connection, self.statements, self.catalog.referenced)

    def initialise(self, *, demo: bool = True) -> bool:
        with self._waiting_for_locks():
            return create(self._connection, str(self.profile["store.default_collation"]), demo=demo)

    def add_cache(self, name: str) -> bool:
        with self._waiting_for_locks():
            return create_cache(self._connection, name)

    @contextmanager
    def _waiting_for_locks(self) -> Iterator[None]:
        """Let statements of the block wait for another process; raises StoreError if SQLite fails."""
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {OPEN_WAIT * 1000:.0f}")
            yield
            self._connection.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error as error:
            raise of_opening(self.path, error) from error

    def close(self) -> None:
        if self.dirty:
            self.commit()
            self.sync()
        self._log.close()
        self._connection.close()
        self.wal_index.close()

    def sync(self) -> None:
        """Bring what is committed to the disk, which may take a while; any thread may. Raises StoreError."""
        started = time.monotonic()
        try:
            self._log.sync()
        except StoreError as error:
            self._disk_errors.record(str(error))
            raise
        if self._disk_errors.open:
            self._disk_errors.record_success()
        if self.when_committed is not None:
            self.when_committed(time.monotonic() - started)

    def read_directory(self) -> Directory:
        directory, self.problems = catalog.read_directory(self.catalog, self.profile)
        # The default mapping is the first usable one, and the only one that is known so far, if any is.
        directory.default = self._in_use(directory.default)
        directory.known = dict.fromkeys(directory.known, directory.default)
        directory.usable = (directory.default, *directory.usable[1:])
        return self.adopt(directory)

    def adopt(self, directory: Directory) -> Directory:
        self._naming = directory.naming
        self._mappings.add(directory.default)
        return directory

    def limit_row_cache(self, size: int, *, keeps_rows: bool = False) -> None:
        if keeps_rows:
            self.cache.renew()
        else:
            self.cache.retire()
        self.cache.limit = size

    def follow_binary_log(self, staleness: float, mappings: Iterable[Mapping]) -> list[str]:  # noqa: ARG002
        raise ConfigError(f"store {self.dsn}: row_cache_binlog=1 is for stores mysql://: leave it out")

    def refresh(self) -> None:
        """Detect commits and DDL by other processes, or the loss of the file. Runs before operations.

        Mappings in use are updated in place, see `check_again`. Raises BusyError: the file cannot be read now.
        StoreError: it is gone or was replaced, or SQLite failed.
        """
        try:
            now = self.wal_index.state()
        except sqlite3.Error as error:
            raise self.translated(error) from error
        if now is self.wal_index.accepted:
            return
        written, altered = self.wal_index.changes(now)
        if written:
            self.cache.clear()
        if altered:
            self._forget_tables()
            for mapping in list(self._mappings):
                check_again(mapping, self.catalog, self.profile)
                if not mapping.fault:
                    self._of_row[_row_of(mapping)] = mapping
        self.wal_index.accept(now)

    def _in_use(self, mapping: Mapping) -> Mapping:
        """Return the mapping that was made of the same row while the tables were the same, or else this one."""
        row = _row_of(mapping)
        try:
            _, altered = self.wal_index.changes(self.wal_index.state())
        except (sqlite3.Error, StoreError):
            altered = True  # the next command reports it
        if altered:
            self._of_row.clear()
        found = self._of_row.get(row, mapping)
        if found.store:
            return mapping  # there are several stores, and whoever placed the other one there places this one
        self._of_row[row] = found
        return found

    def _forget_tables(self) -> None:
        self._of_row.clear()
        self.cache.retire()
        self.statements.clear()
        self.has_rules.clear()
        self._rolls_back = None

    def cas_numbers(self) -> Iterator[int]:
        """Return the counter of cas numbers: from 1 as the plugin has it, or from a block never used before."""
        if self.profile["cas.start"] == "one":
            return itertools.count(1)
        # A mapping may show the table of the counters.
        return ReservedNumbers(self._connection, self, lambda: self.cache.wrote_any(COUNTERS))

    @translating
    def execute(self, operation: operations.Operation) -> Any:
        """Answer one operation; a write is made durable by the next commit.

        Raises BusyError: another process has the write lock, nothing was changed; StoreError with SQLite's cause.
        """
        if operations.takes_lock(operation):
            self.begin_writing()
        match operation:
            case operations.Lookup(mapping, key):
                return self._rows.lookup(mapping, key)
            case operations.Scan():
                return self._rows.scan(operation)
            case operations.Insert() | operations.Update() | operations.Remove() | operations.Clear():
                refusal = self._write(operation)
                # A refused statement of a table with rules may have done something all the same.
                self.cache.wrote(operation, elsewhere=self.has_rules(operation.mapping))
                return refusal
            case operations.PurgeExpired():
                return self._purge(operation)
            case operations.ListRows():
                return self._rows.listed(operation)
            case operations.CountRows(mapping):
                return estimate(self._connection, self.statements(mapping))
            case operations.ReadAlong():
                return self._rows.along(operation)
            case operations.LoadMapping():
                return self._load(operation.name)
            case operations.Recheck():
                return None  # `refresh` has looked
            case operations.Commit() | operations.RollBack():
                raise TypeError(f"{operation!r} is for transactions, see transactions.py")

    def _purge(self, operation: operations.PurgeExpired) -> int | None:
        self._holds_writes = True
        removed = self._rows.purge(operation)
        if removed:
            self.cache.wrote(operation, elsewhere=self.has_rules(operation.mapping))
        return removed

    def _write(
        self, operation: operations.Insert | operations.Update | operations.Remove | operations.Clear
    ) -> str | None:
        alone = self._batch_only or not self.holds_writes
        self._holds_writes = True
        try:
            return (
                self._rows.clear(operation) if isinstance(operation, operations.Clear) else self._rows.write(operation)
            )
        except sqlite3.IntegrityError as error:
            if self._connection.in_transaction or not alone:
                raise
            # RAISE(ROLLBACK) or ON CONFLICT ROLLBACK ended the transaction, which had no writes of other commands.
            self.dirty = False
            self.failures += 1  # a block of cas numbers may have been reserved in it
            self.cache.committed(lost=True)
            return str(error)

    def run(self, text: str, parameters: Sequence[operations.Cell]) -> sqlite3.Cursor:
        """Run one of a mapping's `Statements`; raises as `execute`."""
        self._holds_writes = True
        try:  # without `translating`: plans call this for each row
            return self._connection.execute(text, parameters)
        except ERRORS as error:
            raise self.translated(error) from error

    def fetch(self, text: str, parameters: Sequence[operations.Cell]) -> list[tuple[Any, ...]]:
        """Return what a SELECT finds; raises as `execute`."""
        try:
            return self._connection.execute(text, parameters).fetchall()
        except ERRORS as error:
            raise self.translated(error) from error

    def run_many(self, text: str, parameters: Iterable[Sequence[operations.Cell]]) -> sqlite3.Cursor:
        """Run one of a mapping's `Statements` that writes for each of some parameters; raises as `run`."""
        self._holds_writes = True
        try:
            return self._connection.executemany(text, parameters)
        except ERRORS as error:
            raise self.translated(error) from error

    @translating
    def lookup(self, mapping: Mapping, key: operations.Cell, rows: Rows | None = None) -> operations.Row | None:
        """Read one row of a `snapshot`, or as the open transaction has written it; raises as `execute`."""
        return (rows or self._rows).lookup(mapping, key)

    @translating
    def scan(self, operation: operations.Scan, rows: Rows | None = None) -> list[operations.Row]:
        """Read the rows of a range; `rows` as for `lookup`, raises as `execute`."""
        return (rows or self._rows).scan(operation)

    @translating
    def bind(self, operation: operations.Insert | operations.Update | operations.Remove) -> None:
        self._rows.bind(operation)

    def can_roll_back(self, mapping: Mapping) -> bool:
        """Return whether a write of a table can end the whole transaction: RAISE(ROLLBACK), ON CONFLICT ROLLBACK."""
        if self._rolls_back is None:
            self._rolls_back = self.catalog.rolls_back()
        return self._rolls_back and self.has_rules(mapping)

    @property
    def holds_writes(self) -> bool:
        """Return whether the open transaction may have a write whose command waits for the commit."""
        return self.dirty and self._holds_writes

    @translating
    def begin_batch(self) -> None:
        """Begin a savepoint for the writes of one batch; raises as `execute`."""
        self.begin_writing()
        self._connection.execute("SAVEPOINT batch")
        self._batch_only = not self.holds_writes

    @translating
    def end_batch(self, *, undone: bool) -> None:
        """End the savepoint of `begin_batch`, unless SQLite has ended it with its transaction; raises as `execute`."""
        self._batch_only = False
        if self._connection.in_transaction:
            if undone:
                self._connection.execute("ROLLBACK TO batch")
            self._connection.execute("RELEASE batch")

    @translating
    def undo_batch(self) -> None:
        """Undo the writes since `begin_batch`; the savepoint goes on. Raises as `execute`."""
        self._connection.execute("ROLLBACK TO batch")

    @property
    def in_transaction(self) -> bool:
        """Return whether the write transaction is still open: some errors of SQLite end it."""
        return self._connection.in_transaction

    @translating
    def snapshot(self, reused: Rows | None) -> Rows:
        """Return rows as they are committed now until the connection's transaction ends; raises as `execute`.

        Args:
            reused: what an earlier call returned, in no transaction; None opens another connection.
        """
        rows = reused or Rows(opened(self.path, self.profile), self.statements, self.catalog.referenced)
        rows.connection.execute("BEGIN")
        rows.connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # the first read fixes the moment
        return rows

    def commit(self) -> None:
        """Commit the writes since the last commit; `sync` makes them durable. Raises StoreError if they are lost."""
        if not self.dirty:
            return
        self.dirty = False
        cause, self._lost = self._lost, ""
        if not cause:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                cause = self._disk_errors.describe(error)
                self._roll_back()
        self.cache.committed(lost=bool(cause))
        if cause:
            self.failures += 1
            raise StoreError(cause)

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                _log.exception("store %s: cannot roll back", self.path)

    def begin_writing(self) -> None:
        """Take the file's write lock until the next commit; raises as `execute`."""
        if self._lost:
            raise StoreError(self._lost)
        if not self.dirty:
            wal_index = self.wal_index
            wal_index.check()  # nothing is written into a file that is gone
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self.dirty = True
                self._holds_writes = False
                (data,) = self._connection.execute(DATA_VERSION).fetchone()
                if data != wal_index.accepted_data_version:
                    self.cache.clear()  # others have written since this process looked
            except ERRORS as error:
                raise self.translated(error) from error

    def _load(self, name: str) -> Mapping | None:
        mapping, problem = catalog.find(self.catalog, self.profile, self._naming, name, self.shared_mappings)
        if mapping is None:
            _log.debug("mapping %r: %s", name, problem)  # a client chooses how often: no louder
        else:
            mapping = self._in_use(mapping)
            self._mappings.add(mapping)
        return mapping

    def translated(self, error: Failure) -> KvrefError:
        if isinstance(error, OverflowError):
            return StoreError(f"SQLite cannot hold this number: {error}")
        if isinstance(error, UnicodeEncodeError | UnicodeDecodeError):
            return StoreError(f"the row holds text that is not UTF-8: {error.reason}")
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BusyError(str(error))
        text = self._disk_errors.describe(error)
        if self.dirty and not self._connection.in_transaction:
            self._lost = text
        code = getattr(error, "sqlite_errorcode", 0)
        return StatementError(text) if code == sqlite3.SQLITE_ERROR else StoreError(text)
