"""A database server with the transactions and row locks of InnoDB, under the real executor and its connections.

`Session` replaces a PyMySQL connection, and `Rows` the SQL of `kvref.storage.mysql.rows`; what is above them is
the server's own: connections and their errors, pool, transactions, retries and batches of commands. Each statement
takes its time, and may fail, as the plan says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import pymysql
from pymysql.constants import CR, ER
from pymysql.constants.SERVER_STATUS import SERVER_STATUS_IN_TRANS

from kvref.engine import operations
from kvref.engine.mapping import Directory, Mapping
from kvref.engine.operations import Row
from kvref.engine.values import to_bytes
from kvref.errors import StoreError
from kvref.profiles import Profile
from kvref.storage.memory import MemoryStore
from kvref.storage.mysql.errors import DuplicateError, HangError
from kvref.storage.mysql.login import parse
from kvref.storage.mysql.mapped_table import MappedTable
from kvref.storage.mysql.statements import NO_WAIT, SKIP_LOCKED
from kvref.storage.mysql.store import MySQLStore
from kvref_testbed.simulation.loop import SimulatedLoop
from kvref_testbed.simulation.plan import KEYS, TIMEOUT, Plan, Writer

_HANGS: Final = 5  # times as long as a client waits
_CHECK_INTERVAL: Final = 0.005  # seconds between two looks at a row lock
_LOCKED_NOW: Final = 3572
_LEVEL: Final = "SET SESSION TRANSACTION ISOLATION LEVEL "


class Database:
    """The server, with one table.

    Args:
        plan: how long each statement takes, and what fails.
        log: takes a line for each event.
    """

    def __init__(self, plan: Plan, log: Callable[[str], None]) -> None:
        self.loop: SimulatedLoop
        self._hangs_until = 0.0  # loop time
        self.failed = False  # a failure of the plan has happened
        self.rows: dict[str, Row] = {}
        self.holders: dict[str, Session] = {}  # of row locks
        self.sessions: dict[Session, None] = {}
        self.plan = plan
        self._failures = dict(plan.failures)
        self._log = log
        self._statements = 0

    def restart(self, loop: SimulatedLoop) -> None:
        """End what the clients have left, and serve others, in another loop, to whom nothing fails."""
        for each in list(self.sessions):
            each.close()
        self.loop, self._failures, self._hangs_until = loop, {}, 0.0

    def connect(self, lock_wait: float) -> Session:
        """Open a connection, see `Nodes`; raises StoreError if the plan says so."""
        if failure := self.take_time():
            if failure == "hangs":
                self.loop.pause(self.plan.patience)
                raise HangError("the database does not answer")
            raise StoreError("the database refuses the connection")
        return Session(self, lock_wait)

    def is_stale(self, _connection: object) -> bool:
        """Return False, see `Nodes`: there is one server."""
        return False

    def close(self) -> None:
        """Do nothing, see `Nodes`."""

    def take_time(self, *, commits: bool = False, writes: bool = False) -> str:
        """Let a statement take its time; return what fails.

        Args:
            commits: it is a COMMIT.
            writes: its transaction has written.
        """
        number, self._statements = self._statements, self._statements + 1
        failure = self._failures.get(number, "")
        if (failure == "answer lost" and not commits) or (failure == "killed while writing" and not writes):
            failure = self._failures.setdefault(number + 1, failure) and ""
        self.loop.pause(self.plan.statements[number % len(self.plan.statements)])
        if failure == "hangs for long":
            self._hangs_until = self.loop.time() + _HANGS * self.plan.patience
        if self.loop.time() < self._hangs_until:
            failure = "hangs"
        if failure:
            self.failed = True
            self._log(f"statement {number}: {failure}")
        return failure


class Session:
    """What `MySQLConnection` uses of a PyMySQL connection: one session, and its transaction.

    Args:
        database: the server.
        lock_wait: seconds for which a statement waits for a row lock.
    """

    encoding = "utf8"
    server_version = "8.0.33"

    def __init__(self, database: Database, lock_wait: float) -> None:
        self.open = True
        self._database = database
        self._lock_wait = lock_wait
        self._begun = False
        self._uncommitted = False  # it reads what is not committed
        self.versions: dict[str, Row | None] = {}
        self._waits_for: Session | None = None
        database.sessions[self] = None

    # The interface of PyMySQL.

    def cursor(self) -> _Cursor:
        """Return a cursor."""
        return _Cursor(self)

    def say(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement about the session."""
        self.statement()
        if sql.startswith("START"):
            self._begun = True
        elif sql.startswith(_LEVEL):
            self._uncommitted = sql.endswith("UNCOMMITTED")
        elif wait := re.search(r"innodb_lock_wait_timeout = (\d+)", sql):
            self._lock_wait = int(wait[1])
        if "@@server_id" in sql:
            return [("8.0.33", 1)]
        return [(1 << 24,)] if "max_allowed_packet" in sql else []

    def begin(self) -> None:
        """Begin a transaction."""
        self.say("START TRANSACTION")

    def commit(self) -> None:
        """Commit; where the answer is lost, the transaction is committed."""
        failure = self._database.take_time(commits=True, writes=bool(self.versions))
        if failure in {"", "answer lost"}:
            self.apply()
        self._fail(failure)

    def apply(self) -> None:
        """Commit what was written."""
        for key, row in self.versions.items():
            if row is None:
                self._database.rows.pop(key, None)
            else:
                self._database.rows[key] = row
        self.roll_back()

    def rollback(self) -> None:
        """Roll back."""
        self.statement()
        self.roll_back()

    def ping(self, *, reconnect: bool) -> None:  # noqa: ARG002 - PyMySQL's signature
        """Run the command that only checks the session."""
        self.statement()

    @property
    def server_status(self) -> int:
        """Return whether a transaction is open."""
        return SERVER_STATUS_IN_TRANS if self._begun else 0

    def close(self) -> None:
        """End; the server rolls back."""
        self.open = False
        self.roll_back()
        self._database.sessions.pop(self, None)

    # What a statement does.

    def statement(self) -> None:
        """Let a statement take its time, and fail if the plan says so."""
        self._fail(self._database.take_time(writes=bool(self.versions)))

    def roll_back(self) -> None:
        """End the transaction with nothing written, and free its locks."""
        self._begun, self._waits_for = False, None
        self.versions.clear()
        holders = self._database.holders
        for key in [key for key, holder in holders.items() if holder is self]:
            del holders[key]

    def read(self, key: str) -> Row | None:
        """Return a row as the session sees it."""
        sessions = [self, *self._database.sessions] if self._uncommitted else [self]
        for each in sessions:
            if key in each.versions:
                return _copy(each.versions[key])
        return _copy(self._database.rows.get(key))

    def is_locked(self, key: str) -> bool:
        """Return whether another session has a row's lock."""
        return self._database.holders.get(key, self) is not self

    def lock(self, key: str) -> Row | None:
        """Wait for a row's lock and take it; return the newest row. Where there is none, nothing stays locked."""
        database, until = self._database, self._database.loop.time() + self._lock_wait
        while self.is_locked(key):
            other: Session | None = database.holders[key]
            self._waits_for = other
            while other is not None and other is not self:
                other = other._waits_for
            if other is self:
                self._fail("deadlock")
            if database.loop.time() >= until:
                self._waits_for = None
                raise pymysql.err.OperationalError(ER.LOCK_WAIT_TIMEOUT, "Lock wait timeout exceeded")
            database.loop.pause(_CHECK_INTERVAL)
            if not self.open:
                self._fail("killed")
        self._waits_for = None
        row = _copy(self.versions[key] if key in self.versions else database.rows.get(key))
        if row is not None:
            database.holders[key] = self
        return row

    def write(self, key: str, row: Row | None) -> None:
        """Write a row that `lock` has returned, or has not found."""
        assert not self.is_locked(key)
        self._database.holders[key] = self
        self.versions[key] = _copy(row)

    def _fail(self, failure: str) -> None:
        """Raise the error of a failure."""
        match failure:
            case "":
                return
            case "error":
                raise pymysql.err.OperationalError(ER.OUTOFMEMORY, "Out of memory")
            case "deadlock":
                self.roll_back()
                raise pymysql.err.OperationalError(ER.LOCK_DEADLOCK, "Deadlock found")
            case "hangs":
                self._database.loop.pause(self._database.plan.patience)
        self.close()
        try:
            if failure == "hangs":
                raise TimeoutError
            raise ConnectionResetError
        except OSError:
            raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, f"Lost connection: {failure}")  # noqa: B904 - as PyMySQL


class OtherClient:
    """Another program that locks a row, and may write it.

    Args:
        database: the server.
        writer: what it does.
        number: cas number of the row that it writes.
    """

    def __init__(self, database: Database, writer: Writer, number: int) -> None:
        self._database = database
        self._session = Session(database, 0.0)
        self._key = writer.key or KEYS[0]
        self._row = Row(writer.key, (writer.value,), 0, number, 0) if writer.key else database.rows.get(self._key)

    def begin(self) -> bool:
        """See `Program`."""
        if self._row is None or self._session.is_locked(self._key):
            self.close()
            return False
        self._session.write(self._key, self._row)
        return True

    def end(self) -> None:
        """See `Program`."""
        self._session.apply()
        self.close()

    def close(self) -> None:
        """See `Program`."""
        self._session.close()


def _copy(row: Row | None) -> Row | None:
    return None if row is None else replace(row)


class _Cursor:
    """A cursor for statements about the session."""

    description = None

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: list[tuple[object, ...]] = []

    def __enter__(self) -> _Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""

    def execute(self, sql: str, parameters: tuple[str, ...] | None = None) -> int:
        """Run a statement, which has no parameters."""
        assert parameters is None, sql
        self._found = self._session.say(sql)
        return len(self._found)

    def fetchall(self) -> list[tuple[object, ...]]:
        """Return its rows."""
        return self._found


class Rows:
    """In the place of `kvref.storage.mysql.rows.Rows`."""

    def __init__(self, session: Session, *_: object) -> None:
        self._session = session

    def answer(self, operation: operations.Operation, *, shared: bool) -> Any:
        """Answer one operation."""
        session = self._session
        session.statement()
        match operation:
            case operations.Lookup(_, cell, for_update):
                key = _name(cell)
                return session.lock(key) if for_update or shared else session.read(key)
            case operations.Insert(_, row):
                key = _name(row.key)
                if session.lock(key) is not None:
                    raise DuplicateError("duplicate")
                session.write(key, row)
            case operations.Update(_, cell, row):
                key = _name(cell)
                session.write(key, None if session.lock(key) is None else row)
            case operations.Remove(_, cell):
                session.write(_name(cell), None)
            case operations.Clear():
                for key in KEYS:
                    session.lock(key)
                    session.write(key, None)
            case _:
                raise TypeError(f"not simulated: {operation!r}")
        return None

    def look_up_all(self, _mapping: Mapping, keys: Iterable[str], lock: str = "") -> list[Row]:
        """Return the rows of some keys."""
        session = self._session
        session.statement()
        wanted = [key for key in keys if not (lock == SKIP_LOCKED and session.is_locked(key))]
        if lock == NO_WAIT and any(map(session.is_locked, wanted)):
            raise pymysql.err.OperationalError(_LOCKED_NOW, "NOWAIT is set")
        found = [session.lock(key) if lock else session.read(key) for key in wanted]
        return [row for row in found if row is not None]

    def write_all(self, writes: Sequence[operations.Insert | operations.Update | operations.Remove]) -> bool:
        """Write several rows by one statement; return whether all were there, or none was."""
        self._session.statement()
        removed = [_name(each.key) for each in writes if isinstance(each, operations.Remove)]
        if removed:
            return _remove(self._session, removed) == len(writes)
        inserts = isinstance(writes[0], operations.Insert)
        rows = [each.row for each in writes if not isinstance(each, operations.Remove)]
        return _write(self._session, rows, inserts=inserts) == len(writes)

    def select_raw(self, mapping: Mapping, sql: str) -> list[tuple[bytes | None, ...]]:
        """Return the rows of a SELECT of a `MappedTable`, as the server writes them."""
        lock = next((each for each in (SKIP_LOCKED, NO_WAIT) if sql.endswith(each)), "")
        found = self.look_up_all(mapping, [key for key in KEYS if key in sql.split()], lock)
        cells = [(row.key, *row.values, row.flags, row.cas, row.expiry) for row in found]
        return [tuple(None if cell is None else to_bytes(cell) for cell in each) for each in cells]


def _name(cell: operations.Cell) -> str:
    """Return a key as text, which a plan has as bytes."""
    return cell.decode() if isinstance(cell, bytes) else str(cell)


def _write(session: Session, rows: Sequence[Row], *, inserts: bool) -> int:
    """Insert or update rows by one statement, all or none; return how many were found or made."""
    found = {_name(row.key): session.lock(_name(row.key)) for row in rows}
    if inserts and any(found.values()):
        raise pymysql.err.IntegrityError(ER.DUP_ENTRY, "Duplicate entry")
    written = [row for row in rows if inserts or found[_name(row.key)] is not None]
    for row in written:
        session.write(_name(row.key), row)
    return len(written)


def _remove(session: Session, keys: Sequence[str]) -> int:
    """Remove rows by one statement; return how many were there."""
    found = [key for key in keys if session.lock(key) is not None]
    for key in found:
        session.write(key, None)
    return len(found)


class _MappedTable(MappedTable):
    def among(self, words: Iterable[bytes]) -> str:
        """See `MappedTable`."""
        return f" {b' '.join(words).decode()}"


class SimulatedStore(MySQLStore):
    """The store of a simulated database.

    Args:
        profile: of the server.
        database: the server of the tables.
        plan: of the world, with all settings.
    """

    def __init__(self, profile: Profile, database: Database, plan: Plan) -> None:
        login = parse(f"mysql://root@db/?timeout={TIMEOUT}&connections={plan.connections}&coalesce={plan.together}", {})
        super().__init__(login, profile, plan.settings["innodb_lock_wait_timeout"])
        self.nodes = database  # type: ignore[assignment]  # as much of it as there is

    def read_directory(self) -> Directory:
        """Return the demo table with a collation that is compared byte by byte."""
        directory = MemoryStore("memory://", self.profile).read_directory()
        mapping = directory.default
        assert mapping.cas is not None
        mapping.key = replace(mapping.key, collation="utf8mb4_bin")
        mapping.cas = replace(mapping.cas, codec=None)
        return self.adopt(directory)

    def _mapped_table(self, mapping: Mapping) -> MappedTable:
        sql = self.statements(mapping)
        table = _MappedTable(mapping, sql, self._version)
        table.select = ""
        return table
