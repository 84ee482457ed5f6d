"""Defects of concurrency and durability, planted to show that worlds find them.

Some were real, and are planted again; the others are what an edit of a module about order, commits or the end of a
connection could do. Each changes what the disk, the network or the database does, a call of asyncio's, or a public
function of a store, so that what is private can be replaced. `mutants.batches` has those of the rules of batches.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final
from unittest.mock import patch

from pymysql.constants import ER
from pymysql.err import OperationalError

from kvref.engine.steps import on_row
from kvref.errors import StoreError
from kvref.server.connection import Connection
from kvref.server.executors.mysql import executor as mysql_executor
from kvref.server.executors.sqlite import executor as sqlite_executor
from kvref.server.turns import Turns
from kvref.storage.mysql import connection
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import LostError
from kvref.storage.mysql.planned_rows import MySQLRows
from kvref.storage.sqlite.row_cache import CachedTable, RowCache
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.sqlite.transactions import Transactions
from kvref_testbed.mutants.mutant import Mutant, put
from kvref_testbed.simulation import database
from kvref_testbed.simulation.database import Session
from kvref_testbed.simulation.disk import Disk, SyncThread
from kvref_testbed.simulation.network import Line

SOON: Final = 0.002  # seconds: a sync that begins so soon after another has what was written meanwhile


def _defect(plant: Any) -> Mutant:
    """Make a mutant of a function, of no requirement of the protocol."""
    return Mutant(plant.__name__, "", plant.__doc__.splitlines()[0], plant)


@_defect
def replies_before_the_sync() -> None:
    """Replies leave before the disk has their writes."""
    later = SyncThread.put

    def early(self: SyncThread, work: Any) -> None:
        if work is None:
            later(self, work)
            return
        wait, seconds = self.duration()
        self.loop.call_later(wait, self.disk.begin)
        self.loop.call_later(wait + seconds, unheard, self.disk)
        self.complete(lambda: "")

    def unheard(disk: Disk) -> None:
        with suppress(OSError):
            disk.sync()

    put(SyncThread, "put", early)


@_defect
def replies_out_of_order() -> None:
    """What a get shows passes the replies that leave with it."""
    write = Line.write

    def early(self: Line, data: bytes) -> None:
        before, value, following = bytes(data).partition(b"VALUE")
        write(self, value + following + before)

    put(Line, "write", early)


@_defect
def syncs_nothing() -> None:
    """A commit is acknowledged while it is in the memory of the system."""
    put(Disk, "sync", lambda _: None)


@_defect
def acknowledges_what_comes_during_a_sync() -> None:
    """Writes that come while the disk syncs are acknowledged with that sync."""
    later = SyncThread.put

    def join(self: SyncThread, work: Any) -> None:
        if work is not None and self.loop.time() - self.completed < SOON:
            self.complete(lambda: "")
        else:
            later(self, work)

    put(SyncThread, "put", join)


@_defect
def acknowledges_a_failed_sync() -> None:
    """An error of the disk is ignored, and the writes are acknowledged."""
    sync = Disk.sync

    def hopeful(self: Disk) -> None:
        with suppress(OSError):
            sync(self)

    put(Disk, "sync", hopeful)


@_defect
def acknowledges_a_failed_commit() -> None:
    """A COMMIT that fails is taken for done."""
    commit = SQLiteStore.commit

    def hopeful(self: Any) -> None:
        try:
            commit(self)
        except StoreError:
            return

    put(SQLiteStore, "commit", hopeful)


@_defect
def forgets_a_group_that_waits() -> None:
    """After a sync, the group that has collected meanwhile is not synced."""
    later = SyncThread.put

    def forget(self: SyncThread, work: Any) -> None:
        if work is None or self.loop.time() - self.completed >= SOON:
            later(self, work)

    put(SyncThread, "put", forget)


@_defect
def stops_without_a_last_sync() -> None:
    """A server that stops acknowledges its last writes without the disk, which syncs only what its thread begins."""
    sync = Disk.sync
    put(Disk, "sync", lambda self: None if self.flight is None else sync(self))


@_defect
def drops_commands_at_the_drain() -> None:
    """A server that stops carries out nothing more of what has arrived."""

    def end(self: Connection) -> None:
        if (waited := self.waited_for()) is not None:
            waited[0].close()

    put(Connection, "end", end)


@_defect
def ends_at_the_end_of_input() -> None:
    """A client that closes its sending side gets no replies that wait for a commit."""

    def close(self: Connection) -> bool:
        if (waited := self.waited_for()) is not None:
            waited[0].abort()
        return False

    put(Connection, "eof_received", close)


@_defect
def stays_paused() -> None:
    """A connection whose client has read its replies does not go on."""
    put(Connection, "resume_writing", lambda _: None)


@_defect
def reads_no_more_after_a_pause() -> None:
    """A connection that has stopped reading does not read again."""
    put(Line, "resume_reading", lambda _: None)


@_defect
def loses_a_turn() -> None:
    """A connection with much input that waits for its turn is forgotten when another one has come first."""
    add = Turns.add
    put(Turns, "add", lambda self, go_on: None if self.busy else add(self, go_on))


@_defect
def runs_commands_beside_one_that_waits() -> None:
    """A command is carried out while an earlier one of its connection waits, as if another connection had sent it."""
    begin, take, lose = Connection.__init__, Connection.data_received, Connection.connection_lost
    made: dict[Connection, tuple[Any, ...]] = {}
    second: dict[Connection, Connection] = {}

    def init(self: Connection, *arguments: Any) -> None:
        made[self] = arguments
        begin(self, *arguments)

    def received(self: Connection, data: bytes) -> None:
        waited = self.waited_for()
        if waited is not None and waited[2] and not waited[1].halfway and self not in second:
            second[self] = other = Connection(*made[self])
            other.connection_made(waited[0])
        take(second.get(self, self), data)

    def lost(self: Connection, cause: Exception | None) -> None:
        lose(self, cause)
        if self in second:
            lose(second.pop(self), cause)

    put(Connection, "__init__", init)
    put(Connection, "data_received", received)
    put(Connection, "connection_lost", lost)


@_defect
def shows_what_is_not_durable() -> None:
    """Rows that are committed are cached before the disk has them, and shown from there."""
    committed, change, change_all = RowCache.committed, RowCache.change, RowCache.change_all
    written: list[tuple[Any, bytes, Any]] = []

    def changed(self: RowCache, mapping: Any, word: bytes, item: Any) -> None:
        change(self, mapping, word, item)
        written.append((mapping, word, item))

    def all_changed(self: RowCache, table: Any, rows: Any) -> None:
        change_all(self, table, rows)
        written.extend((table.mapping, word, item) for word, item in rows.items())

    def early(self: RowCache, *, lost: bool) -> None:
        committed(self, lost=lost)
        for mapping, word, item in () if lost else written:
            if item is not None:
                self.put(self.table(mapping, dirty=False), word, item)
        written.clear()

    put(RowCache, "change", changed)
    put(RowCache, "change_all", all_changed)
    put(RowCache, "committed", early)


@_defect
def caches_what_is_lost() -> None:
    """Rows of a commit that failed stay in the cache."""
    committed = RowCache.committed

    def keep(self: Any, *, lost: bool) -> None:
        del lost
        committed(self, lost=False)

    put(RowCache, "committed", keep)


@_defect
def caches_over_a_newer_write() -> None:
    """A row that was synced is cached, also if it was written again meanwhile."""
    synced, table = RowCache.synced, RowCache.table
    tables: set[CachedTable] = set()

    def found(self: RowCache, mapping: Any, *, dirty: bool) -> CachedTable:
        tables.add(one := table(self, mapping, dirty=dirty))
        return one

    def careless(self: RowCache, *, lost: bool) -> None:
        rows = [(each, word, item) for each in tables for word, item in each.syncing.items()]
        synced(self, lost=lost)
        for each, word, item in () if lost else rows:
            if item is not None:
                self.put(each, word, item)

    put(RowCache, "table", found)
    put(RowCache, "synced", careless)


@_defect
def keeps_what_another_program_has_changed() -> None:
    """A cached row is shown after another program has written it."""
    put(RowCache, "clear", lambda _: None)


@_defect
def retries_never() -> None:
    """A command that waits for another program's lock is not tried again."""
    put(sqlite_executor, "RETRY_AFTER", 1e6)


@_defect
def forgets_locks_at_a_deadlock() -> None:
    """A deadlock is reported, and the loser keeps its locks."""
    wait = Transactions.wait

    def keep(self: Transactions, transaction: Any, holder: Any) -> None:
        with patch.object(Transactions, "roll_back", lambda *_: None):
            wait(self, transaction, holder)

    put(Transactions, "wait", keep)


@_defect
def takes_back_batches_in_silence() -> None:
    """A failed commit takes back a batch whose last write was answered before."""
    executor = sqlite_executor.SQLiteExecutor
    execute, committed = Transactions.execute, executor.committed
    batches: dict[Any, None] = {}

    def note(self: Transactions, transaction: Any, operation: Any) -> Any:
        batches[transaction] = None
        return execute(self, transaction, operation)

    def settle(self: sqlite_executor.SQLiteExecutor, *, lost: bool) -> int:
        for each in batches if lost else ():
            self.transactions.roll_back(each)
        return committed(self, lost=lost)

    put(Transactions, "execute", note)
    put(executor, "committed", settle)


@_defect
def judges_expiry_by_the_time_of_arrival() -> None:
    """A command that has waited for a lock finds a row that expired meanwhile."""
    put(on_row, "time_found", lambda _session, now: now)


@_defect
def reports_the_first_deadlock() -> None:
    """Over a database, a command that loses a deadlock is not tried again, although nothing of it was answered."""
    put(mysql_executor, "DEADLOCK_TRIES", 1)


@_defect
def tries_an_unknown_commit_again() -> None:
    """A commit whose answer is lost is taken for one that has not happened."""
    commit = MySQLConnection.commit

    def again(self: Any) -> None:
        if commit(self) is not None:
            raise LostError("gone")

    put(MySQLConnection, "commit", again)


@_defect
def takes_a_failed_commit_for_done() -> None:
    """A commit that a database server refuses, or does not answer, is acknowledged."""
    commit = MySQLConnection.commit

    def hopeful(self: Any) -> None:
        commit(self)

    put(MySQLConnection, "commit", hopeful)


@_defect
def takes_locked_rows_for_missing() -> None:
    """Of several rows to lock, those that another transaction has locked count as missing."""
    lock_many = MySQLRows.lock_many

    def skip(self: Any, connection: Any, words: Any) -> Any:
        return lock_many(self, connection, words)[0], set()

    put(MySQLRows, "lock_many", skip)


@_defect
def goes_on_after_a_lost_batch() -> None:
    """A transaction that a deadlock has ended counts as open, and what its batch had acknowledged is forgotten."""
    statement = Session.statement

    def again(self: Session) -> None:
        try:
            statement(self)
        except OperationalError as error:
            if error.args[0] != ER.LOCK_DEADLOCK:
                raise

    put(Session, "statement", again)


@_defect
def waits_behind_a_statement_that_hangs() -> None:
    """A database server that hangs is taken for a lost connection: what waits is tried again, and waits again."""
    for module in (connection, database):
        put(module, "HangError", LostError)


@_defect
def waits_behind_a_commit_that_hangs() -> None:
    """Over a database server that hangs, writes that wait behind a COMMIT wait for a statement of their own too."""
    commit = MySQLConnection.commit

    def forgetful(self: Any) -> str | None:
        reason = commit(self)
        self.hang = None
        return reason

    put(MySQLConnection, "commit", forgetful)


DEFECTS = {each.name: each for each in vars().copy().values() if isinstance(each, Mutant)}
