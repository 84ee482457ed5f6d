"""One connection to a MySQL or MariaDB server: its transaction, and its errors to what a command does about them.

It blocks; the executor runs it in a thread. The first operation that takes a lock, or a read of a batch of reads,
begins a transaction; other reads are statements of their own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.constants import ER
from pymysql.constants.SERVER_STATUS import SERVER_STATUS_IN_TRANS
from pymysql.cursors import Cursor

from kvref.engine import operations
from kvref.engine.mapping import Directory, Mapping
from kvref.errors import ConfigError, StoreError
from kvref.storage.config import catalog
from kvref.storage.config.containers import checked
from kvref.storage.isolation import Isolation
from kvref.storage.mysql import result_set, vitess
from kvref.storage.mysql.cluster import NoSecondaryError, State, read_status
from kvref.storage.mysql.database import Database
from kvref.storage.mysql.errors import (
    LOCKED,
    NOT_READY,
    READ_ONLY,
    ROW_LOCKED,
    STALE,
    CycleError,
    HangError,
    LostError,
    RetryableError,
    RowLockedError,
    ends_connection,
)
from kvref.storage.mysql.grants import missing
from kvref.storage.mysql.login import cause, fetch_all, hangs
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.rows import Rows
from kvref.storage.mysql.schema import KnownTables, MySQLCatalog, create, create_cache, named_rows, quote
from kvref.storage.mysql.statements import Statements

_log = logging.getLogger("kvref.storage")


class MySQLConnection:
    """One connection of the store; blocks, and is used by one command at a time. StoreError: the server is not reached.

    Args:
        database: whose server, profile and statements.
        isolation: isolation settings; a changed level applies from the next transaction.
        brief: it waits no longer than a second for any lock.
        known: what it knows of tables, by default what the others know.

    Attributes:
        hang: the error of a server that has not answered the last statement in time, COMMIT included; None: it has.
    """

    def __init__(
        self, database: Database, isolation: Isolation, *, brief: bool = False, known: KnownTables | None = None
    ) -> None:
        self._database = database
        self._isolation = isolation
        self._level: int | None = None  # of `isolation`, that the session has; None: not known
        self._known = database.known if known is None else known
        self._connection = database.nodes.connect(database.lock_wait)
        self._query = partial(fetch_all, self._connection)
        self._vitess = database.vitess = vitess.is_gate(self._connection)
        self._keyspace = ""  # in use, for vindexes
        self.in_transaction = False
        self.lost = False
        self._no_answer = f"no answer from the database within {database.reply_timeout:g} s"
        self.hang: HangError | None = None
        try:
            with self._failures():
                self.max_packet = self._prepare(brief=brief)
        except StoreError:
            self.close()
            raise
        self._rows = Rows(self._connection, database, self.max_packet)
        self._mariadb: int | None = -1  # not known yet

    def _prepare(self, *, brief: bool) -> int:
        """Set what the statements expect of a session; return how many bytes one of them may have."""
        ((max_packet,),) = self._query("SELECT @@max_allowed_packet")
        if brief:
            self._query("SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
        if not self._database.profile.flag("store.checks_act") and "MariaDB" in str(self._query("SELECT VERSION()")):
            self._query("SET SESSION check_constraint_checks = OFF")  # MySQL has no such switch
        if self._query("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
            # A write takes the newest row, whatever the snapshot shows (tx:iso-024); MariaDB would refuse it.
            self._query("SET SESSION innodb_snapshot_isolation = OFF")
        if self._vitess:
            self._query(vitess.SETTING)
        return int(max_packet)

    @property
    def mariadb(self) -> int | None:
        """Return the server id of a MariaDB server, None of a MySQL server; raises as `query`."""
        if self._mariadb == -1:
            ((version, number),) = self.query("SELECT VERSION(), @@server_id")
            self._mariadb = int(number) if "MariaDB" in str(version) else None
        return self._mariadb

    @property
    def last_gtid(self) -> str:
        """Return the GTID of the last commit with reads=session; "": it has none, or it is not known."""
        return getattr(self._connection, "last_gtid", "")

    @property
    def retired(self) -> bool:
        """Return whether it ends with its transaction.

        Its server is not the one in use any more, or the configuration was read after it logged in: global privileges
        and default roles are those of the log-in (MySQL 8.0.33, MariaDB 10.11.19).
        """
        return self._known is not self._database.known or self._database.nodes.is_stale(self._connection)

    def execute(self, operation: operations.Operation) -> Any:
        """Answer one operation, other than Commit and RollBack.

        After any exception, `in_transaction` is whether the transaction, without this operation, is still open.

        Raises:
            LockWaitError: another transaction kept a lock for longer than the lock wait timeout.
            RetryableError: a deadlock, the table was altered, or another transaction inserted the row.
            LostError: the connection is gone.
            StoreError: the server rejects the operation; the text is the cause.
        """
        with _Errors(self):
            if not self.in_transaction:
                self._take_level()
                if self._begins(operation):
                    self._begin(snapshot=isinstance(operation, operations.FixSnapshot))
            match operation:
                case operations.LoadMapping(name):
                    return self._load(name)
                case operations.Recheck(mapping):
                    return self.recheck([mapping])
                case operations.FixSnapshot():
                    return None  # a transaction that is open has one
                case operations.Commit() | operations.RollBack() | operations.PurgeExpired():
                    raise TypeError(f"{operation!r} has its own method")
                case _:
                    return self._rows.answer(operation, shared=self._isolation.reads_lock)

    def purge(self, operation: operations.PurgeExpired) -> int | None:
        """Answer `PurgeExpired`, outside a transaction; waits at most a second for a lock. Raises as `execute`."""
        mapping = operation.mapping
        assert mapping.expiry is not None
        with _Errors(self):
            shown = named_rows(self._connection, f"SHOW INDEX FROM {mapping.source}")
            first = {row["Column_name"] for row in shown if row["Seq_in_index"] == 1}
            if mapping.expiry.name not in first:
                return None
            ((wait,),) = self._query("SELECT @@innodb_lock_wait_timeout")
            self._query("SET innodb_lock_wait_timeout = 1")
            sql = self._database.statements(mapping)
            try:
                if mapping.vindex:
                    return self._purge_shards(sql, operation)
                return self._connection.query(sql.purge(operation.before, operation.limit))
            finally:
                self._query(f"SET innodb_lock_wait_timeout = {wait}")

    def _purge_shards(self, sql: Statements, operation: operations.PurgeExpired) -> int:
        deleted = 0
        try:
            for shard in vitess.shards_of(self._query, operation.mapping.schema):
                self._query(f"USE {quote(shard)}")
                deleted += self._connection.query(sql.purge(operation.before, operation.limit - deleted))
        finally:
            self._use(operation.mapping.schema)
        return deleted

    def _use(self, keyspace: str) -> None:
        self._query(f"USE {quote(keyspace)}")
        self._keyspace = keyspace

    def look_up_all(
        self, mapping: Mapping, keys: Iterable[operations.Cell], lock: str = "", *, begins: bool = True
    ) -> list[operations.Row]:
        """Return the rows of some keys, at least one; raises as `execute`.

        With `begins`, a lock is kept in the transaction, which it begins if need be.
        """
        with _Errors(self):
            self._enter(begins=begins and bool(lock))
            return self._rows.look_up_all(mapping, keys, lock)

    def write_all(
        self, writes: Sequence[operations.Insert] | Sequence[operations.Update] | Sequence[operations.Remove]
    ) -> bool:
        """Write several rows by one statement in the transaction; tell whether every row was written.

        Raises as `execute`, StoreError also where the table refuses a row, after which none is written; CycleError also
        where no transaction is open.
        """
        self.require_open()
        with _Errors(self):
            return self._rows.write_all(writes)

    def statements(self, mapping: Mapping) -> Statements:
        return self._database.statements(mapping)

    def present(self, mapping: Mapping, keys: Iterable[operations.Cell]) -> set[operations.Cell]:
        """Return those of some keys that have a row now, committed or not; only outside a transaction; as `execute`."""
        with _Errors(self):
            self._query("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
            self._forget_level()
            return self._rows.present(mapping, keys)

    def shards(self, mapping: Mapping, keys: Sequence[operations.Cell]) -> list[object]:
        """Return which shard of Vitess has the row of each key, or would have it; none is NULL. Raises as `execute`."""
        with _Errors(self):
            if self._keyspace != mapping.schema:
                self._use(mapping.schema)
            return [shard for _, shard in self._query(self._database.statements(mapping).shards(keys))]

    def select_raw(self, mapping: Mapping, sql: str, *, begins: bool = False) -> list[Cells]:
        """Return the cells of a SELECT of a mapping's rows, always of the same columns; raises as `execute`.

        With `begins`, it runs in a transaction, which it begins if need be.
        """
        with _Errors(self):
            self._enter(begins=begins)
            return self._rows.select_raw(mapping, sql)

    def require_open(self) -> None:
        """Raise CycleError if no transaction is open: the locks and the writes of the caller's transaction are gone."""
        if not self.in_transaction:
            raise CycleError("the server has ended the transaction")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that is not about rows of mappings; raises as `execute`."""
        with _Errors(self):
            return self._query(sql)

    def require_secondary(self) -> None:
        """Raise NoSecondaryError if the server is not a secondary of a group any more; other errors as `query`."""
        with _Errors(self):
            if read_status(self._connection).state is not State.SECONDARY:
                raise NoSecondaryError("the server is not a secondary of its replication group")

    def cells(self, sql: str) -> list[Cells]:
        """Return the rows of a statement as the server writes them; otherwise as `query`, and faster."""
        with _Errors(self):
            return result_set.select_raw(self._connection, sql)[1]

    def commit(self) -> str | None:
        """Make the transaction durable; returns why it is lost, or that its outcome is not known.

        Raises as the function `commit`, CycleError also where no transaction is open: nothing of it is written.
        """
        self.require_open()
        self.in_transaction = False
        started = time.monotonic()
        try:
            reason = commit(self._connection, self._words)
        except LostError:
            self.lost = True
            raise
        except operations.LockWaitError:
            self.in_transaction = True
            self.roll_back()
            raise
        finally:
            self._database.note_commit()
        self.lost = self.lost or reason is not None
        if reason is None and self._database.when_committed is not None:
            self._database.when_committed(time.monotonic() - started)
        return reason

    def roll_back(self) -> None:
        """Give the transaction up; a connection that cannot even do that counts as lost."""
        if not self.in_transaction:
            return
        self.in_transaction = False
        try:
            self._connection.rollback()
        except (pymysql.err.MySQLError, OSError) as error:
            self.lost = True
            self.hang = HangError(self._no_answer) if hangs(error) else None
            _log.warning("store %s: cannot roll back: %s", self._database.login.text, error)

    def recheck(self, mappings: list[Mapping]) -> list[tuple[Mapping, Mapping | ConfigError]]:
        """Check the rows of mappings again, against the tables as they are now."""
        seen = self._catalog()
        with self._failures():
            return [(mapping, checked(mapping, seen, self._database.profile)) for mapping in mappings]

    def read_directory(self) -> tuple[Directory, list[str]]:
        with self._failures():
            return catalog.read_directory(self._catalog(), self._database.profile)

    def missing_privileges(self, mapping: Mapping) -> str:
        with self._failures():
            return missing(self._query, mapping, self._database.profile)

    def create_schema(self, *, demo: bool) -> bool:
        with self._failures():
            return create(self._connection, demo=demo)

    def create_cache(self, name: str) -> bool:
        with self._failures():
            return create_cache(self._connection, name)

    def close(self) -> None:
        """Close the connection; what is open is rolled back by the server."""
        if self._connection.open:
            self._connection.close()

    def _begins(self, operation: operations.Operation) -> bool:
        reads = isinstance(operation, operations.Lookup | operations.Scan | operations.ReadAlong)
        fixes = isinstance(operation, operations.FixSnapshot)
        if isinstance(operation, operations.Clear) and operation.mapping.vindex:
            return False  # each shard has its own transaction
        return fixes or operations.takes_lock(operation) or (reads and self._isolation.reads_begin)

    def _enter(self, *, begins: bool) -> None:
        if not self.in_transaction:
            self._take_level()
            if begins:
                self._begin()

    def _begin(self, *, snapshot: bool = False) -> None:
        if snapshot:
            self._query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        else:
            self._connection.begin()
        self.in_transaction = True

    def _take_level(self) -> None:
        level = self._isolation.level
        if level != self._level:
            self._query(f"SET SESSION TRANSACTION ISOLATION LEVEL {self._isolation.session_level}")
            self._level = level

    def _load(self, name: str) -> Mapping | None:
        try:
            mapping, problem = catalog.find(
                self._catalog(), self._database.profile, self._database.naming, name, self._database.shared_mappings
            )
        except pymysql.err.OperationalError as error:
            # A row that stays locked is none (core:runtime-047).
            if error.args[0] != ER.LOCK_WAIT_TIMEOUT:
                raise
            mapping, problem = None, cause(error)
        if mapping is None:
            _log.debug("mapping %r: %s", name, problem)  # a client chooses how often: no louder
        return mapping

    def _forget_level(self) -> None:
        """Set the isolation level again for what follows: in Vitess one of a single transaction is the session's."""
        if self._vitess:
            self._level = None

    def _catalog(self) -> MySQLCatalog:
        self._forget_level()
        return MySQLCatalog(self._connection, self._database.profile, self._known)

    def _words(self, error: pymysql.err.MySQLError) -> str:
        if not hangs(error):
            return cause(error)
        self.hang = HangError(self._no_answer)
        return self._no_answer

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise errors of the server in the block as StoreError, of whatever kind they are."""
        try:
            yield
        except pymysql.err.MySQLError as error:
            failure = self.translated(error)
            raise failure if isinstance(failure, StoreError) else StoreError(cause(error)) from error

    def translated(self, error: pymysql.err.MySQLError | OSError) -> Exception:
        """Return what `execute` raises for an error of a statement, after which `in_transaction` is right."""
        if isinstance(error, OSError):
            self.lost, self.in_transaction = True, False
            return LostError(str(error))
        number = error.args[0] if error.args else 0
        text = self._words(error)
        if ends_connection(error) or not self._connection.open:
            self.lost, self.in_transaction = True, False
            return self.hang or LostError(text)
        if number in READ_ONLY and self._database.nodes.has_successor(self._connection):
            self.lost, self.in_transaction = True, False
            return LostError(text)
        deadlock = number == ER.LOCK_DEADLOCK or (self._vitess and vitess.ENDED.search(text) is not None)
        if self._vitess and self.in_transaction and number not in vitess.OF_STATEMENT:
            self.lost, self.in_transaction = True, False
            return CycleError(text) if deadlock else StoreError(text)
        hang = self._check_transaction()
        if hang is not None:
            return hang
        if number in LOCKED:
            return RowLockedError(text) if number == ROW_LOCKED else operations.LockWaitError(text)
        if deadlock:
            return CycleError(text)
        return RetryableError(text) if number in STALE else StoreError(text)

    def _check_transaction(self) -> HangError | None:
        """Learn whether the error was only the statement's: a deadlock, and some options, end the transaction too.

        Returns the error of a server that does not answer this: to start again elsewhere would be to wait for it twice.
        """
        if not self.in_transaction:
            return None
        try:
            self._connection.ping(reconnect=False)
        except (pymysql.err.MySQLError, OSError) as error:
            # A Galera node that has rolled the transaction back for another node's write reports it in answer to the
            # next request, whatever that is; the connection is good for the next transaction.
            self.in_transaction = False
            self.lost = error.args[:1] != (ER.LOCK_DEADLOCK,)
            return HangError(self._no_answer) if hangs(error) else None
        self.in_transaction = bool(self._connection.server_status & SERVER_STATUS_IN_TRANS)  # type: ignore[attr-defined]
        return None


class _Errors:
    """Raise errors of the server in a block as `MySQLConnection.execute` does."""

    __slots__ = ("_connection",)

    def __init__(self, connection: MySQLConnection) -> None:
        if connection.lost:
            raise LostError("the connection to the database is gone")
        self._connection = connection

    def __enter__(self) -> None:
        """Begin with the block."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, pymysql.err.MySQLError | OSError):
            raise self._connection.translated(error) from error


_UNKNOWN: Final = "it is not known whether it was written"
# The cluster has certified another transaction of the same rows: Galera's words, and Group Replication's. Or the server
# has become read-only, and has rolled the transaction back.
_REFUSED: Final = (ER.LOCK_DEADLOCK, 3101, *READ_ONLY)
# The node lost the cluster while it waited for its position in the commit order: the other nodes may have the
# transaction. With the text of `_TOO_LARGE` it was never sent to them.
# Vitess: the gate has lost the tablet that commits, or its reply (1105, 1317).
_IN_DOUBT: Final = (1180, 3100, 1105, 1317)
_TOO_LARGE: Final = "Maximum writeset size exceeded"


def commit(connection: Connection[Cursor], words: Callable[[pymysql.err.MySQLError], str]) -> str | None:
    """Commit the transaction of a connection; return why it is lost or in doubt, None if it is durable.

    `words` returns the message of an error.

    Raises:
        CycleError: the cluster rejects it because of an earlier conflicting transaction, or the server has become
            read-only; nothing is written.
        LostError: the node is no longer a member of its cluster; nothing is written.
        LockWaitError: a backup, or FLUSH TABLES WITH READ LOCK, blocked commits for longer than the session waits for
            a lock; nothing is written (seen on MariaDB 10.11 and MySQL 8.0.33).
    """
    try:
        connection.commit()
    except pymysql.err.MySQLError as error:
        number, text = (*error.args, "", "")[:2]
        if number == NOT_READY:
            raise LostError(words(error)) from error
        if number in _REFUSED or vitess.TOO_LATE.search(str(text)):
            raise CycleError(words(error)) from error
        if number in LOCKED:
            raise operations.LockWaitError(words(error)) from error
        in_doubt = number in _IN_DOUBT and _TOO_LARGE not in str(text)
        unknown = in_doubt or ends_connection(error) or not connection.open
        return f"commit: {words(error)}{f': {_UNKNOWN}' if unknown else ''}"
    except OSError as error:
        return f"commit: {error}: {_UNKNOWN}"
    return None
