"""One connection to a MySQL or MariaDB server: operations to SQL, its errors to what a command does about them.

It blocks; the driver runs it in a thread. Reads outside a transaction see the moment's rows, committed or, where the
profile says so, not; the first operation that takes a lock begins a transaction (READ COMMITTED: a key that is missing
locks nothing).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import ER

from kvref.errors import ConfigError, KvrefError, StoreError
from kvref.semantics import ports
from kvref.semantics.mapping import Directory, Mapping
from kvref.storage import catalog
from kvref.storage.containers import Container, checked
from kvref.storage.mysql_login import cause, hangs
from kvref.storage.mysql_schema import MySQLCatalog, create
from kvref.storage.mysql_statements import Statements
from kvref.storage.rows import REFERENCED, from_sql

if TYPE_CHECKING:
    from kvref.storage.mysql import MySQLStore

_log = logging.getLogger("kvref.storage")

DUPLICATE: Final = f"{ER.DUP_ENTRY} "
IGNORED: Final = "the table ignored the write (a trigger took it back)"
_LOST: Final = [(number,) for number in (2006, 2013, 2055, 1053, 1927, 3169, 4031)]
_STALE: Final = (ER.BAD_FIELD_ERROR, ER.NO_SUCH_TABLE, ER.KEY_DOES_NOT_EXITS, ER.BAD_DB_ERROR, ER.TABLE_DEF_CHANGED)
UNKNOWN: Final = "it is not known whether it was written"
# What a table says to a row that it does not take: a constraint, a type, a trigger.
_REFUSED: Final = (
    ER.BAD_NULL_ERROR, ER.DUP_ENTRY, ER.WARN_DATA_OUT_OF_RANGE, ER.WARN_DATA_TRUNCATED, ER.TRUNCATED_WRONG_VALUE,
    ER.NO_DEFAULT_FOR_FIELD, ER.TRUNCATED_WRONG_VALUE_FOR_FIELD, ER.DATA_TOO_LONG, ER.ROW_IS_REFERENCED,
    ER.NO_REFERENCED_ROW, ER.ROW_IS_REFERENCED_2, ER.NO_REFERENCED_ROW_2, 1690,
    1300, 1367, 1411, 1416, 1644, 3140, 3144, 3819, 4025,
)  # fmt: skip
# No privilege DROP; other tables refer to it.
_NO_TRUNCATE: Final = (ER.TABLEACCESS_DENIED_ERROR, 1701)


class AgainError(KvrefError):
    """What the command has seen is out of date: begin it anew."""


class LostError(StoreError):
    """The connection is gone; nothing of an open transaction is left."""


class Link:
    """One connection of the store; blocks, and is used by one command at a time.

    Args:
        store: whose server, profile and statements.

    Raises:
        StoreError: the server is not reached.
    """

    def __init__(self, store: MySQLStore) -> None:
        self._store = store
        self._connection = store.login.connect(store.lock_wait)
        self.in_transaction = False
        self.lost = False
        try:
            ((self._longest,),) = self._say("SELECT @@max_allowed_packet")
            self._dirty = store.profile.flag("store.reads_uncommitted")
            self._say(f"SET SESSION TRANSACTION ISOLATION LEVEL READ {'UNCOMMITTED' if self._dirty else 'COMMITTED'}")
            if not store.profile.flag("store.checks_act") and "MariaDB" in str(self._say("SELECT VERSION()")):
                self._say("SET SESSION check_constraint_checks = OFF")  # MySQL has no such switch
        except pymysql.err.MySQLError as error:
            failure = self._failure(error)
            self.close()
            raise failure from error

    def execute(self, operation: ports.Operation) -> Any:
        """Answer one operation.

        Raises:
            LockWaitError: another transaction kept the row's lock for too long; this one is rolled back.
            AgainError: a deadlock rolled this one back, the table was altered, or a row came up meanwhile.
            LostError: the connection is gone.
            StoreError: the server refuses; the text is its cause.
        """
        try:
            if ports.takes_lock(operation) and not self.in_transaction:
                if self._dirty:
                    self._say("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                self._say("START TRANSACTION")
                self.in_transaction = True
            return self._answer(operation)
        except pymysql.err.MySQLError as error:
            raise self._translated(error) from error
        except OSError as error:
            self.lost = True
            raise LostError(str(error)) from error

    def commit(self) -> None:
        """Make the transaction durable.

        Raises:
            StoreError: the server refused, or gave no answer: then the text says that the outcome is not known.
        """
        self.in_transaction = False
        try:
            self._connection.commit()
        except pymysql.err.MySQLError as error:
            gone = self._is_lost(error)
            self.lost = True
            raise StoreError(f"commit: {self._words(error)}{f': {UNKNOWN}' if gone else ''}") from error
        except OSError as error:
            self.lost = True
            raise StoreError(f"commit: {error}: {UNKNOWN}") from error

    def roll_back(self) -> None:
        """Give the transaction up; a connection that cannot even do that counts as lost."""
        if not self.in_transaction:
            return
        self.in_transaction = False
        try:
            self._connection.rollback()
        except (pymysql.err.MySQLError, OSError) as error:
            self.lost = True
            _log.warning("store %s: cannot roll back: %s", self._store.login.text, error)

    def look(self, mappings: list[Mapping]) -> list[tuple[Mapping, Mapping | ConfigError]]:
        """Check the rows of mappings again, against the tables as they are now."""
        seen = self._catalog()
        try:
            return [(mapping, checked(mapping, seen, self._store.profile)) for mapping in mappings]
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def read_directory(self) -> tuple[Directory, list[str]]:
        """Read the configuration, and one sentence for each row that cannot be used.

        Raises:
            ConfigError: nothing usable.
            StoreError: the server failed.
        """
        try:
            return catalog.read_directory(self._catalog(), self._store.profile)
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def create_schema(self) -> bool:
        """Create the configuration tables where they are missing; tell whether that was needed."""
        try:
            return create(self._connection)
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Close the connection; what is open is rolled back by the server."""
        if self._connection.open:
            self._connection.close()

    def _answer(self, operation: ports.Operation) -> Any:
        match operation:
            case ports.Lookup(mapping, key, for_update):
                return self._lookup(mapping, self._store.statements(mapping), key, lock=for_update)
            case ports.Scan():
                return self._scan(operation)
            case ports.Insert(mapping, row, clear_unmapped):
                return self._insert(mapping, row, clear_unmapped=clear_unmapped)
            case ports.Update(mapping, key, row, clear_unmapped):
                return self._update(mapping, key, row, clear_unmapped=clear_unmapped)
            case ports.Remove(mapping, key):
                return self._write(self._store.statements(mapping).remove(key))
            case ports.Clear():
                return self._clear(operation)
            case ports.ReadAlong(mapping, key, columns):
                rows = self._say(self._store.statements(mapping).along(key, columns))
                return from_sql(columns, rows[0]) if rows else ()
            case ports.LoadMapping(name):
                return self._load(name)
            case ports.Recheck(mapping):
                return self.look([mapping])

    def _lookup(self, mapping: Mapping, sql: Statements, key: ports.Cell, *, lock: bool) -> ports.Row | None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql.lookup(key, lock=lock))
            if not self._store.has_shape(mapping, "mapped", cursor.description):
                raise AgainError(f"the columns of {mapping.source} changed")
            row = cursor.fetchone()
        return None if row is None else sql.row(row)

    def _scan(self, operation: ports.Scan) -> list[ports.Row]:
        sql = self._store.statements(operation.mapping)
        asked = sql.scan(operation.bounds(), operation.limit, descending=operation.descending)
        return [sql.row(cells) for cells in self._say(asked)]

    def _insert(self, mapping: Mapping, row: ports.Row, *, clear_unmapped: bool) -> str | None:
        sql = self._store.statements(mapping)
        refusal = self._refusal(mapping, row, clear_unmapped=clear_unmapped)
        if refusal is not None:
            return refusal
        refusal = self._write(sql.insert(row, clear_unmapped=clear_unmapped))
        duplicate = refusal is not None and refusal.startswith(DUPLICATE) and not mapping.blind
        # The key, which was missing a moment ago, or another unique index; what was met is locked and stays.
        if duplicate and self._say(sql.lookup(row.key, lock=True)):
            raise AgainError(refusal or "")
        return refusal

    def _update(self, mapping: Mapping, key: ports.Cell, row: ports.Row, *, clear_unmapped: bool) -> str | None:
        update = self._store.statements(mapping).update(key, row, clear_unmapped=clear_unmapped)
        return self._refusal(mapping, row, clear_unmapped=clear_unmapped) or self._write(update)

    def _refusal(self, mapping: Mapping, row: ports.Row, *, clear_unmapped: bool) -> str | None:
        sql = self._store.statements(mapping)
        if clear_unmapped:
            self._look_beside(mapping, sql)
        return sql.refusal(row, clear_unmapped=clear_unmapped)

    def _look_beside(self, mapping: Mapping, sql: Statements) -> None:
        # Until the transaction ends the table's columns stay; invisible ones are not in the description.
        with self._connection.cursor() as cursor:
            cursor.execute(sql.beside)
            names = [each[0] for each in cursor.description or ()]
        if not self._store.has_shape(mapping, "beside", names) or not mapping.columns.issuperset(names):
            raise AgainError(f"the columns of {mapping.source} changed")

    def _write(self, sql: str) -> str | None:
        size = len(sql.encode()) + 1  # the byte in front of it says that it is SQL
        if size > self._longest:
            # The server would hang up instead of an answer.
            return f"{ER.NET_PACKET_TOO_LARGE} max_allowed_packet is {self._longest}, this statement has {size} bytes"
        try:
            with self._connection.cursor() as cursor:
                return None if cursor.execute(sql) else IGNORED
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] in _REFUSED:
                return cause(error)
            raise

    def _clear(self, operation: ports.Clear) -> str | None:
        mapping, sql = operation.mapping, self._store.statements(operation.mapping)
        row = mapping.row
        assert isinstance(row, Container)
        seen, where = self._catalog(), (row.db_schema or "", row.db_table or "")
        if operation.on_reference == "table-kept" and seen.referenced(*where):
            return REFERENCED
        if self._store.profile["flush.empties"] == "truncate" and not seen.counts(*where) and self._truncate(sql):
            return None
        refusal = self._write(sql.clear)
        if refusal is not None and refusal != IGNORED and operation.on_reference == "rows-kept":
            for (key,) in self._say(sql.keys):
                self._write(sql.remove(from_sql((mapping.key,), (key,))[0]))
            return None
        return None if refusal == IGNORED else refusal  # an empty table has no row to delete

    def _truncate(self, sql: Statements) -> bool:
        """Empty a table whole, without triggers; tell whether the server lets this account, and this table, do that."""
        try:
            self._say(sql.truncate)
        except pymysql.err.MySQLError as error:
            if error.args[0] not in _NO_TRUNCATE:
                raise
            return False
        return True

    def _load(self, name: str) -> Mapping | None:
        try:
            mapping, problem = catalog.find(self._catalog(), self._store.profile, self._store.naming, name)
        except ConfigError as error:
            mapping, problem = None, str(error)
        except pymysql.err.OperationalError as error:
            # A row that stays locked is none (core:runtime-047); InnoDB has taken back no more than this statement.
            if error.args[0] != ER.LOCK_WAIT_TIMEOUT:
                raise
            mapping, problem = None, cause(error)
        if mapping is None:
            _log.debug("mapping %r: %s", name, problem)  # a client chooses how often: no louder
        return mapping

    def _catalog(self) -> MySQLCatalog:
        return MySQLCatalog(self._connection, self._store.profile, self._store.known)

    def _say(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def _is_lost(self, error: pymysql.err.MySQLError) -> bool:
        return error.args[:1] in _LOST or not self._connection.open

    def _words(self, error: pymysql.err.MySQLError) -> str:
        if hangs(error):
            return f"no answer from the database within {self._store.patience:g} s"
        return cause(error)

    def _failure(self, error: pymysql.err.MySQLError) -> StoreError:
        failure = self._translated(error)
        return failure if isinstance(failure, StoreError) else StoreError(cause(error))

    def _translated(self, error: pymysql.err.MySQLError) -> Exception:
        number = error.args[0] if error.args else 0
        text = self._words(error)
        if self._is_lost(error):
            self.lost, self.in_transaction = True, False
            # One that hangs would hang again.
            return StoreError(text) if hangs(error) else LostError(text)
        self.roll_back()
        if number == ER.LOCK_WAIT_TIMEOUT:
            return ports.LockWaitError(text)
        if number == ER.LOCK_DEADLOCK or number in _STALE:
            return AgainError(text)
        return StoreError(text)
