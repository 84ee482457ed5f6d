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
from kvref.storage.mysql.cluster import NoSecondaryError, State, state_of
from kvref.storage.mysql.database import Database
from kvref.storage.mysql.errors import (
    LOCKED,
    NOT_READY,
    READ_ONLY,
    ROW_LOCKED,
    STALE,
    AgainError,
    CycleError,
    HangError,
    LostError,
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
    """One connection of the store; blocks, and is used by one command at a time.

    Args:
        database: whose server, profile and statements.
        isolation: isolation settings; a changed level applies from the next transaction.
        brief: it waits no longer than a second for any lock.
        known: what it knows of tables, by default what the others know.

    Attributes:
        hang: the error of a server that has not answered the last statement in time, COMMIT included; None: it has.

    Raises:
        StoreError: the server is not reached.
    """

    def __init__(
        self, database: Database, isolation: Isolation, *, brief: bool = False, known: KnownTables | None = None
    ) -> None:
        self._database = database
        self._isolation = isolation
        self._level = ""  # none yet
        self._known = known or database.known
        self._connection = database.nodes.connect(database.lock_wait)
        self._say = partial(fetch_all, self._connection)
        self._vitess = database.vitess = vitess.is_gate(self._connection)
        self._keyspace = ""  # in use, for vindexes
        self.in_transaction = False
        self.lost = False
        self.hang: HangError | None = None
        try:
            self.longest = prepare(self._say, brief=brief, checks_act=database.profile.flag("store.checks_act"))
            if self._vitess:
                self._say(vitess.SETTING)
        except pymysql.err.MySQLError as error:
            failure = self._failure(error)
            self.close()
            raise failure from error
        self._rows = Rows(self._connection, database, self.longest)
        self._mariadb: int | None = -1  # not known yet

    @property
    def mariadb(self) -> int | None:
        """Return the server id of a MariaDB server, None of a MySQL server; raises as `say`."""
        if self._mariadb == -1:
            ((version, number),) = self.say("SELECT VERSION(), @@server_id")
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
        return self._known is not self._database.known or self._database.nodes.left(self._connection)

    def execute(self, operation: operations.Operation) -> Any:
        """Answer one operation, other than Commit and RollBack.

        After any exception, `in_transaction` is whether the transaction, without this operation, is still open.

        Raises:
            LockWaitError: another transaction kept a lock for longer than the lock wait timeout.
            AgainError: a deadlock, the table was altered, or another transaction inserted the row.
            LostError: the connection is gone.
            StoreError: the server rejects the operation; the text is the cause.
        """
        with self._errors():
            if not self.in_transaction:
                self._take_level()
                if self._begins(operation):
                    self._begin(" WITH CONSISTENT SNAPSHOT" if isinstance(operation, operations.FixSnapshot) else "")
            match operation:
                case operations.LoadMapping(name):
                    return self._load(name)
                case operations.Recheck(mapping):
                    return self.look([mapping])
                case operations.FixSnapshot():
                    return None  # a transaction that is open has one
                case operations.Commit() | operations.RollBack():
                    raise TypeError(f"{operation!r}: call commit or roll_back")
                case operations.PurgeExpired():
                    raise TypeError(f"{operation!r}: call purge")
                case _:
                    return self._rows.answer(operation, shared=self._isolation.reads_lock)

    def purge(self, operation: operations.PurgeExpired) -> int | None:
        """Answer `PurgeExpired`, outside a transaction; it waits no longer than a second for a lock.

        Raises:
            KvrefError, LockWaitError: as `execute`.
        """
        mapping = operation.mapping
        assert mapping.expiry is not None
        with self._errors():
            shown = named_rows(self._connection, f"SHOW INDEX FROM {mapping.source}")
            first = {row["Column_name"] for row in shown if row["Seq_in_index"] == 1}
            if mapping.expiry.name not in first:
                return None
            ((wait,),) = self._say("SELECT @@innodb_lock_wait_timeout")
            self._say("SET innodb_lock_wait_timeout = 1")
            sql = self._database.statements(mapping)
            try:
                if mapping.vindex:
                    return self._purge_shards(sql, operation)
                return self._connection.query(sql.purge(operation.before, operation.limit))
            finally:
                self._say(f"SET innodb_lock_wait_timeout = {wait}")

    def _purge_shards(self, sql: Statements, operation: operations.PurgeExpired) -> int:
        """Delete expired rows in one shard of Vitess after another."""
        deleted = 0
        try:
            for shard in vitess.shards_of(self._say, operation.mapping.schema):
                self._say(f"USE {quote(shard)}")
                deleted += self._connection.query(sql.purge(operation.before, operation.limit - deleted))
        finally:
            self._use(operation.mapping.schema)
        return deleted

    def _use(self, keyspace: str) -> None:
        self._say(f"USE {quote(keyspace)}")
        self._keyspace = keyspace

    def look_up_all(
        self, mapping: Mapping, keys: Iterable[operations.Cell], lock: str = "", *, begins: bool = True
    ) -> list[operations.Row]:
        """Return the rows of some keys, at least one.

        Args:
            mapping, keys: of the rows.
            lock: what is locked, nothing if empty.
            begins: a lock is kept in the transaction, which it begins if need be.

        Raises:
            KvrefError, LockWaitError: as `execute`.
        """
        with self._errors():
            self._enter(begins=begins and bool(lock))
            return self._rows.look_up_all(mapping, keys, lock)

    def write_all(
        self, writes: Sequence[operations.Insert] | Sequence[operations.Update] | Sequence[operations.Remove]
    ) -> bool:
        """Write several rows by one statement in the transaction; tell whether every row was written.

        Raises:
            KvrefError, LockWaitError: as `execute`, and StoreError also where the table refuses a row; none is written.
                CycleError also where no transaction is open.
        """
        self.require_open()
        with self._errors():
            return self._rows.write_all(writes)

    def goes_with_others(self, write: operations.Insert | operations.Update) -> bool:
        """Return whether `write_all` stores the same row as `execute`, as far as the client side can decide."""
        sql = self._database.statements(write.mapping)
        if isinstance(write, operations.Update) and not sql.takes_together(write.key, write.row):
            return False
        value_unchanged = isinstance(write, operations.Update) and write.value_unchanged
        return value_unchanged or sql.refusal(write.row, clear_unmapped=write.clear_unmapped) is None

    def present(self, mapping: Mapping, keys: Iterable[operations.Cell]) -> set[operations.Cell]:
        """Return those of some keys, at least one, that have a row now, committed or not; only outside a transaction.

        Raises:
            KvrefError: as `execute`.
        """
        with self._errors():
            self._say("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
            self._forget_level()
            return self._rows.present(mapping, keys)

    def shards(self, mapping: Mapping, keys: Sequence[operations.Cell]) -> list[object]:
        """Return which shard of Vitess has the row of each key, or would have it.

        Args:
            mapping: of the rows, with a vindex.
            keys: at least one; none is NULL.

        Raises:
            KvrefError: as `execute`.
        """
        with self._errors():
            if self._keyspace != mapping.schema:
                self._use(mapping.schema)
            return [shard for _, shard in self._say(self._database.statements(mapping).shards(keys))]

    def begin(self) -> None:
        """Begin a transaction, which keeps the tables that are read in it as they are.

        Raises:
            KvrefError: as `execute`.
        """
        with self._errors():
            self._take_level()
            self._begin()

    def ask(self, mapping: Mapping, sql: str, *, begins: bool = False) -> list[Cells]:
        """Return what a SELECT of one mapping's rows answers, as the server writes it; raises as `execute`.

        Args:
            mapping: mapping of the rows.
            sql: always of the same columns.
            begins: in a transaction, which it begins if need be.
        """
        with self._errors():
            self._enter(begins=begins)
            return self._rows.ask(mapping, sql)

    def require_open(self) -> None:
        """Raise CycleError if no transaction is open: the locks and the writes of the caller's transaction are gone."""
        if not self.in_transaction:
            raise CycleError("the server has ended the transaction")

    def say(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that is not about rows of mappings.

        Raises:
            KvrefError, LockWaitError: as `execute`.
        """
        with self._errors():
            return self._say(sql)

    def require_secondary(self) -> None:
        """Raise NoSecondaryError if the server is no secondary of a group any more; other errors as `say`."""
        with self._errors():
            if state_of(self._connection) is not State.FOLLOWS:
                raise NoSecondaryError("the server is not a secondary of its replication group")

    def cells(self, sql: str) -> list[Cells]:
        """Return the rows of a statement as the server writes them; otherwise as `say`, and faster."""
        with self._errors():
            return result_set.ask(self._connection, sql)[1]

    def commit(self) -> str | None:
        """Make the transaction durable; returns why it is lost, or that its outcome is not known.

        Raises:
            CycleError, LostError, LockWaitError: nothing of it is written, see `commit`; CycleError also where no
                transaction is open.
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

    def look(self, mappings: list[Mapping]) -> list[tuple[Mapping, Mapping | ConfigError]]:
        """Check the rows of mappings again, against the tables as they are now."""
        seen = self._catalog()
        try:
            return [(mapping, checked(mapping, seen, self._database.profile)) for mapping in mappings]
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def read_directory(self) -> tuple[Directory, list[str]]:
        """Read the configuration, and one sentence for each row that cannot be used.

        Raises:
            ConfigError: nothing usable.
            StoreError: the server failed.
        """
        try:
            return catalog.read_directory(self._catalog(), self._database.profile)
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def missing_privileges(self, mapping: Mapping) -> str:
        """Return which privileges the account lacks on a mapping's table, see `grants.missing`; raises StoreError."""
        try:
            return missing(self._say, mapping, self._database.profile)
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def create_schema(self, *, demo: bool) -> bool:
        """Create the configuration tables, see `schema.create`; raises StoreError if the server refuses."""
        try:
            return create(self._connection, demo=demo)
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def create_cache(self, name: str) -> bool:
        """Create a cache table, see `schema.create_cache`; raises StoreError if the server refuses."""
        try:
            return create_cache(self._connection, name)
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Close the connection; what is open is rolled back by the server."""
        if self._connection.open:
            self._connection.close()

    def _begins(self, operation: operations.Operation) -> bool:
        reads = isinstance(operation, operations.Lookup | operations.Scan | operations.ReadAlong)
        fixes = isinstance(operation, operations.FixSnapshot)
        if isinstance(operation, operations.Clear) and operation.mapping.vindex:
            return False  # each shard has a transaction of its own
        return fixes or operations.takes_lock(operation) or (reads and self._isolation.reads_begin)

    def _enter(self, *, begins: bool) -> None:
        if not self.in_transaction:
            self._take_level()
            if begins:
                self._begin()

    def _begin(self, how: str = "") -> None:
        self._say(f"START TRANSACTION{how}")
        self.in_transaction = True

    def _take_level(self) -> None:
        level = self._isolation.session_level
        if level != self._level:
            self._say(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            self._level = level

    def _load(self, name: str) -> Mapping | None:
        try:
            mapping, problem = catalog.find(
                self._catalog(), self._database.profile, self._database.naming, name, self._database.kept
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
            self._level = ""

    def _catalog(self) -> MySQLCatalog:
        self._forget_level()
        return MySQLCatalog(self._connection, self._database.profile, self._known)

    def _words(self, error: pymysql.err.MySQLError) -> str:
        if not hangs(error):
            return cause(error)
        self.hang = HangError(self._no_answer)
        return self._no_answer

    @property
    def _no_answer(self) -> str:
        return f"no answer from the database within {self._database.patience:g} s"

    def _failure(self, error: pymysql.err.MySQLError) -> StoreError:
        failure = self._translated(error)
        return failure if isinstance(failure, StoreError) else StoreError(cause(error))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        if self.lost:
            raise LostError("the connection to the database is gone")
        try:
            yield
        except pymysql.err.MySQLError as error:
            raise self._translated(error) from error
        except OSError as error:
            self.lost, self.in_transaction = True, False
            raise LostError(str(error)) from error

    def _translated(self, error: pymysql.err.MySQLError) -> Exception:
        number = error.args[0] if error.args else 0
        text = self._words(error)
        if ends_connection(error) or not self._connection.open:
            self.lost, self.in_transaction = True, False
            return self.hang or LostError(text)
        if number in READ_ONLY and self._database.nodes.writes_elsewhere(self._connection):
            self.lost, self.in_transaction = True, False
            return LostError(text)
        deadlock = number == ER.LOCK_DEADLOCK or (self._vitess and vitess.has_ended(text))
        if self._vitess and self.in_transaction and number not in vitess.OF_STATEMENT:
            self.lost, self.in_transaction = True, False
            return CycleError(text) if deadlock else StoreError(text)
        hang = self._ask_whether_open()
        if hang is not None:
            return hang
        if number in LOCKED:
            return RowLockedError(text) if number == ROW_LOCKED else operations.LockWaitError(text)
        if deadlock:
            return CycleError(text)
        return AgainError(text) if number in STALE else StoreError(text)

    def _ask_whether_open(self) -> HangError | None:
        """Learn whether the error was only the statement's: a deadlock, and some options, end the transaction too.

        Returns:
            The error of a server that does not answer this: to start again elsewhere would be to wait for it twice.
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

    Args:
        connection: in a transaction.
        words: returns the message of an error.

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
        if number in _REFUSED or vitess.was_too_late(str(text)):
            raise CycleError(words(error)) from error
        if number in LOCKED:
            raise operations.LockWaitError(words(error)) from error
        in_doubt = number in _IN_DOUBT and _TOO_LARGE not in str(text)
        unknown = in_doubt or ends_connection(error) or not connection.open
        return f"commit: {words(error)}{f': {_UNKNOWN}' if unknown else ''}"
    except OSError as error:
        return f"commit: {error}: {_UNKNOWN}"
    return None


def prepare(say: Callable[[str], list[tuple[Any, ...]]], *, brief: bool, checks_act: bool) -> int:
    """Set what the store's statements expect of a session; returns how many bytes one of them may have.

    Args:
        say: carries out a statement and returns its rows.
        brief: it waits no longer than a second for any lock.
        checks_act: CHECK constraints do.
    """
    ((longest,),) = say("SELECT @@max_allowed_packet")
    if brief:
        say("SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
    if not checks_act and "MariaDB" in str(say("SELECT VERSION()")):
        say("SET SESSION check_constraint_checks = OFF")  # MySQL has no such switch
    if say("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
        # A write takes the newest row, whatever the snapshot shows (iso-024); MariaDB would refuse it.
        say("SET SESSION innodb_snapshot_isolation = OFF")
    return int(longest)
