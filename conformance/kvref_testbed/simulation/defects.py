"""Defects of concurrency and durability, planted to show that worlds find them.

Some were real, and are planted again; the others are what an edit of a module about order, commits or the end of a
connection could do. `mutants.batches` has those of the rules of batches.
"""

from __future__ import annotations

from typing import Any

from kvref.engine.session import Session
from kvref.errors import StoreError
from kvref.server.background_commit import BackgroundCommit
from kvref.server.connection import Connection
from kvref.server.executors.mysql import executor
from kvref.server.executors.mysql.batch_queue import Fallback
from kvref.server.executors.mysql.plain_commands import Plain
from kvref.server.executors.sqlite.executor import SQLiteExecutor
from kvref.server.executors.sqlite.fast_path import SQLiteFastPath
from kvref.server.executors.sqlite.group_commit import GroupCommit
from kvref.server.reply_queue import ReplyQueue
from kvref.server.turns import Turns
from kvref.storage.mysql import write_batch
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import LostError
from kvref.storage.sqlite.row_cache import RowCache
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.sqlite.transactions import Transactions
from kvref.storage.sqlite.wal import WriteAheadLog
from kvref_testbed.mutants.mutant import Mutant, put


def _defect(plant: Any) -> Mutant:
    """Make a mutant of a function, of no requirement of the protocol."""
    return Mutant(plant.__name__, "", plant.__doc__.splitlines()[0], plant)


@_defect
def replies_before_the_commit() -> None:
    """Replies leave before the commit of their writes."""
    put(ReplyQueue, "flush", lambda self: self._release(len(self.replies)))


@_defect
def replies_out_of_order() -> None:
    """Replies that wait for no commit of their own pass those that wait."""
    flush = ReplyQueue.flush

    def early(self: Any) -> None:
        if self._waits and len(self.replies) > 1 and self.replies[-1][1].startswith(b"VALUE"):
            self._sender.send(self.replies.pop()[1])
        flush(self)

    put(ReplyQueue, "flush", early)


@_defect
def syncs_nothing() -> None:
    """A commit is acknowledged while it is in the memory of the system."""
    put(WriteAheadLog, "sync", lambda _: None)


@_defect
def acknowledges_what_comes_during_a_sync() -> None:
    """Writes that come while the disk syncs are acknowledged with that sync."""

    def join(self: Any, number: int, settled: Any) -> None:
        if self._syncing is not None:
            self._syncing.append(settled)
        else:
            wait(self, number, settled)

    wait = GroupCommit.when_settled
    put(GroupCommit, "when_settled", join)


@_defect
def acknowledges_a_failed_sync() -> None:
    """An error of the disk is logged, and the writes are acknowledged."""
    sync = GroupCommit._to_disk

    def hopeful(self: Any) -> str:
        sync(self)
        return ""

    put(GroupCommit, "_to_disk", hopeful)


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
    """After a sync, the group that has collected meanwhile waits for another command."""
    synced = GroupCommit._synced

    def alone(self: Any, cause: str) -> None:
        waiting, self._waiting = self._waiting, []
        synced(self, cause)
        self._waiting = waiting + self._waiting

    put(GroupCommit, "_synced", alone)


@_defect
def stops_without_a_last_sync() -> None:
    """A server that stops acknowledges its last writes without the disk."""
    close = GroupCommit.close

    def hurried(self: Any) -> None:
        self._to_disk = lambda: ""
        close(self)

    put(GroupCommit, "close", hurried)


@_defect
def drops_commands_at_the_drain() -> None:
    """A server that stops carries out nothing more of what has arrived."""

    def end(self: Any) -> None:
        self._last = self._ending = True
        self._run()

    put(Connection, "end", end)


@_defect
def ends_at_the_end_of_input() -> None:
    """A client that closes its sending side gets no replies that wait for a commit."""

    def close(self: Any) -> bool:
        self._ending = True
        self._transport.abort()
        return False

    put(Connection, "eof_received", close)


@_defect
def stays_paused() -> None:
    """A connection whose client has read its replies does not go on."""

    def resume(self: Any) -> None:
        self._paused = False

    put(Connection, "resume_writing", resume)


@_defect
def reads_no_more_after_a_pause() -> None:
    """A connection that has stopped reading does not read again."""
    throttle = Connection._throttle

    def once(self: Any) -> None:
        if self._reading:
            throttle(self)

    put(Connection, "_throttle", once)


@_defect
def loses_a_turn() -> None:
    """A connection with much input that waits for its turn is forgotten when another one has come first."""
    add = Turns.add

    def sometimes(self: Any, go_on: Any) -> None:
        if not self._waiting:
            add(self, go_on)

    put(Turns, "add", sometimes)


@_defect
def runs_commands_beside_one_that_waits() -> None:
    """A command is carried out while an earlier one of its connection waits for a lock."""

    def on_its_own(self: Any, data: bytes) -> None:
        command, self._command = self._command, None
        take(self, data)
        self._command = self._command or command

    take = Connection._take_input
    put(Connection, "_take_input", on_its_own)


@_defect
def shows_what_is_not_durable() -> None:
    """A get of the fast path shows a row whose sync is not complete, and does not wait for it."""
    kept = SQLiteFastPath._kept

    def early(self: Any, key: bytes) -> Any:
        return kept(self, key)[0], False

    put(SQLiteFastPath, "_kept", early)


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

    def synced(self: Any, *, lost: bool) -> None:
        for table in self._tables.values():
            syncing, table.syncing = table.syncing, {}
            if not lost:
                for word, item in syncing.items():
                    if item is not None:
                        self.keep(table, word, item)

    put(RowCache, "synced", synced)


@_defect
def keeps_what_another_program_has_changed() -> None:
    """A cached row is shown after another program has written it."""
    put(RowCache, "clear", lambda _: None)


@_defect
def wakes_nobody() -> None:
    """A command that waits for a row lock goes on only when its time is over."""
    put(SQLiteExecutor, "_wake_soon", lambda _: None)


@_defect
def retries_once() -> None:
    """A command that waits for another program's lock is tried once more, and then forgotten."""

    def retry(self: Any) -> None:
        self._retrying = False
        if self._parked:
            command = self._parked.popleft()
            self._go_on(command)

    put(SQLiteExecutor, "_retry", retry)


@_defect
def rolls_back_at_a_disconnect() -> None:
    """The batch of a client that has disconnected is rolled back."""

    def drop(self: Any) -> None:
        self._executor.end(self._transaction)
        self._session.batch.reset()
        start(self)

    start = BackgroundCommit.start
    put(BackgroundCommit, "start", drop)


@_defect
def forgets_locks_at_a_deadlock() -> None:
    """A deadlock is reported, and the loser keeps its locks."""
    put(Transactions, "wait", lambda self, transaction, holder: self._pending.wait(transaction, holder))


@_defect
def takes_back_batches_in_silence() -> None:
    """A failed commit takes back a batch whose last write was answered before."""
    write = Transactions._write

    def touch(self: Any, transaction: Any, operation: Any) -> Any:
        refusal = write(self, transaction, operation)
        self._touched.add(transaction)
        return refusal

    put(Transactions, "_write", touch)


@_defect
def judges_expiry_by_the_time_of_arrival() -> None:
    """A command that has waited for a lock finds a row that expired meanwhile."""
    put(Session, "expired", lambda self, expiry, now: self.rules.is_over(expiry, now))


@_defect
def reports_the_first_deadlock() -> None:
    """Over a database, a command that loses a deadlock is not tried again, although nothing of it was answered."""
    put(executor, "DEADLOCK_TRIES", 1)


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
    lock = write_batch.lock
    put(write_batch, "lock", lambda connection, mapping, keys: (lock(connection, mapping, keys)[0], True))


@_defect
def goes_on_after_a_lost_batch() -> None:
    """A command whose connection was killed runs again, and what its batch had acknowledged is forgotten."""
    failure = executor.MySQLExecutor._failure

    async def forget(self: Any, transaction: Any, error: Exception, *, last: bool) -> Exception:
        transaction.acknowledged = transaction.acknowledged and transaction.open
        return await failure(self, transaction, error, last=last)

    put(executor.MySQLExecutor, "_failure", forget)


@_defect
def waits_behind_a_statement_that_hangs() -> None:
    """Over a database server that hangs, commands that wait behind a statement wait for another one too."""

    def hang(self: Any, commands: Any, error: Any) -> None:
        for each in commands:
            each.stop(error) if isinstance(each, Plain) else self.runner.stop(each, error)

    put(Fallback, "hang", hang)


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
