"""Mutants of batches: what is counted and committed, who sees it, who waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kvref.engine import dispatch
from kvref.engine.batch import Batch, Limits
from kvref.engine.operations import Clear, Commit, Lookup, RollBack
from kvref.engine.session import Session
from kvref.protocol.commands import Arithmetic, Command, FlushAll
from kvref.protocol.replies import ServerError, Status
from kvref.server import connection, server
from kvref.server.connection import Connection
from kvref.storage.isolation import Isolation
from kvref.storage.sqlite.batched_rows import BatchedRows
from kvref.storage.sqlite.transactions import Pending, Transaction
from kvref_testbed.mutants.mutant import OperationGen, breaks, put, put_fact, put_operations


@breaks("KV-BATCH-020")
def discards_acknowledged_writes() -> None:
    """A write that fails takes back the other writes of its batch."""
    put_fact("batch.failed_write", "discards")


@breaks("KV-BATCH-052")
def counts_sums_of_missing_rows() -> None:
    """incr of a missing key counts as a write of its batch, as in the plugin."""
    put(Batch, "counts_failed", lambda self, command: isinstance(command, Arithmetic))


@breaks("KV-BATCH-028")
def begins_to_write_before_it_reads_the_key() -> None:
    """A write that is refused for its key ends the snapshot of its connection, as a write that fails does."""
    put_fact("batch.unfit_key", "fails")


@breaks("KV-BATCH-041")
def keeps_the_count_over_a_switch() -> None:
    """The counts of a batch go on when another mapping is bound."""
    put_fact("batch.switch_keeps_count", value=True)


@breaks("KV-BATCH-049")
def commits_for_another_spelling() -> None:
    """The mapping in force, named in another letter case, is switched to again, which commits the batch."""
    put_fact("containers.kept", "by-spelling")


@breaks("KV-RBATCH-013")
def counts_each_key_of_a_get() -> None:
    """A get of several keys counts as that many reads."""
    put_fact("batch.multiget_counts", "keys")


@breaks("KV-RBATCH-027")
def counts_ended_gets_alone() -> None:
    """A get of a range that names its mapping, or whose last word has no key, is not a read, as in 8.0."""
    put_fact("batch.multiget_counts", "ended")


@breaks("KV-IDLE-007")
def commits_in_the_midst_of_requests() -> None:
    """The background commit ends the batches of busy connections too."""
    put_fact("idle.commits", "every-open")


@breaks("KV-RBATCH-003")
def keeps_one_view_at_level_1() -> None:
    """A batch of reads at level 1 sees one moment."""
    put_fact("isolation.level_1", "snapshot")


@breaks("KV-RBATCH-008")
def shows_deletes_before_their_commit() -> None:
    """A row that others have deleted is missing before their commit."""
    put_fact("isolation.deleted", "seen")


@breaks("KV-LOCK-030")
def passes_a_wait_for_a_miss() -> None:
    """A write that got no lock in time answers NOT_STORED or NOT_FOUND."""
    put_fact("lock.wait_over", "as-refused")


@breaks("KV-BATCH-003")
def takes_one_write_more() -> None:
    """A batch is full one write too late."""
    put(Limits, "full", lambda self, reads, writes: reads >= self.reads or writes > self.writes)


@breaks("KV-BATCH-030")
def counts_no_reads() -> None:
    """Reads fill no batch and commit nothing."""
    put(Batch, "count_read", lambda self: False)


@breaks("KV-BATCH-004")
def begins_no_new_count() -> None:
    """After a full batch the count goes on: every later write is committed at once."""

    def commit(self: Any) -> OperationGen:
        return (yield Commit())

    put(Batch, "commit", commit)


@breaks("KV-BATCH-040")
def switches_without_a_commit() -> None:
    """Another mapping leaves the batch open."""

    def switched(self: Any) -> OperationGen:
        return None
        yield

    put(Batch, "switched", switched)


@breaks("KV-IDLE-001")
def never_commits_idle_batches() -> None:
    """The background commit does nothing."""
    put(Connection, "commit_idle", lambda self: None)


@breaks("KV-BATCH-044")
def drops_the_batch_of_a_lost_connection() -> None:
    """What a connection had pending goes with it."""
    made_lost = Connection.connection_lost

    def rolled_back(self: Session) -> OperationGen:
        yield RollBack()
        self.batch.reset()
        return Status.OK

    def lose(self: Connection, cause: Exception | None) -> None:
        with patch.object(Session, "end_batch", rolled_back):
            made_lost(self, cause)

    put(Connection, "connection_lost", lose)


@breaks("KV-ISO-005")
def shows_pending_writes_at_every_level() -> None:
    """READ UNCOMMITTED whatever is set."""
    put(Isolation, "reads_uncommitted", property(lambda self: True))


@breaks("KV-ISO-011")
def shows_pending_writes_by_default() -> None:
    """READ UNCOMMITTED where no level is set, as in 8.0."""
    put_fact("isolation.default_level", 0)


@breaks("KV-ISO-004")
def hides_pending_writes_at_level_0() -> None:
    """READ COMMITTED whatever is set."""
    put(Isolation, "reads_uncommitted", property(lambda self: False))


@breaks("KV-RBATCH-002")
def has_no_snapshots() -> None:
    """Each read of a batch sees what is committed then, at every level."""
    put(Isolation, "keeps_snapshot", property(lambda self: False))


@breaks("KV-LOCK-001")
def locks_no_rows() -> None:
    """Two batches write one row."""
    put(Isolation, "row_locks", property(lambda self: False, lambda self, setting: None))


@breaks("KV-LOCK-008")
def keeps_locks_after_the_end() -> None:
    """A row that was locked stays locked."""
    end = Pending.end

    def keep(self: Pending, transaction: Transaction) -> None:
        kept = list(transaction.locks)
        end(self, transaction)
        for identity in kept:
            self.lock(transaction, identity)

    put(Pending, "end", keep)


@breaks("KV-LOCK-009")
def notices_no_deadlock() -> None:
    """Two batches wait for each other until one gives up."""

    def wait(self: Any, transaction: Any, holder: Any) -> None:
        transaction.waits_for = holder

    put(Pending, "wait", wait)


@breaks("KV-LOCK-030")
def never_gives_up_a_wait() -> None:
    """A request waits for an hour."""
    put(server, "lock_wait", lambda profile, settings: 3600.0)


@breaks("KV-RBATCH-018")
def works_on_what_it_saw() -> None:
    """A write builds on the snapshot of its batch: what others committed since is lost."""

    def seen(_session: Session, operation: Any) -> OperationGen:
        found = yield operation
        if isinstance(operation, Lookup) and operation.for_update:
            return (yield replace(operation, for_update=False))
        return found

    put_operations(seen)


@breaks("KV-BATCH-011")
def hides_own_writes() -> None:
    """A connection sees its batch when it is committed."""
    found_first: dict[Session, dict[Any, Any]] = {}

    def blind(session: Session, operation: Any) -> OperationGen:
        found = yield operation
        if not isinstance(operation, Lookup):
            return found
        rows = found_first.setdefault(session, {})
        if not session.batch.open:
            rows.clear()
        if operation.for_update:
            rows.setdefault((operation.mapping.source, operation.key), found)
        return found if operation.for_update else rows.get((operation.mapping.source, operation.key), found)

    put_operations(blind)
    read = BatchedRows.read
    put(BatchedRows, "read", lambda self, transaction, word: read(self, Transaction(), word))
    put(Batch, "joins", lambda _self, *, writes, is_open: writes)


@breaks("KV-LOCK-040")
def flushes_beside_batches() -> None:
    """`flush_all` does not wait for row locks."""
    put(Pending, "holder_of_table", lambda self, source, besides: None)


@breaks("KV-BATCH-009")
def commits_the_batches_of_all() -> None:
    """A commit takes the batches of other connections along."""
    put_fact("flush.other_batches", "committed")
    execute = dispatch.execute

    def committing(session: Session, command: Command, now: int) -> OperationGen:
        number = session.batch.number
        reply = yield from execute(session, command, now)
        session.flushed = session.flushed or session.batch.number != number  # then the others commit
        return reply

    put(connection, "execute", committing)
    ended: list[Batch] = []
    clients: set[Connection] = set()
    reset, register, note_batch = Batch.reset, server.Server.register, Connection.note_batch

    def resetting(self: Batch) -> None:
        reset(self)
        ended.append(self)

    def registering(self: server.Server, client: Connection, transport: Any) -> bool:
        clients.add(client)
        return register(self, client, transport)

    def note(self: Connection) -> None:
        note_batch(self)
        if ended:
            ended.clear()
            for other in clients - {self}:
                other.commit_idle()

    put(Batch, "reset", resetting)
    put(server.Server, "register", registering)
    put(Connection, "note_batch", note)


@breaks("KV-RBATCH-022")
def ends_the_view_at_a_write() -> None:
    """The first write of a batch of reads ends its view, as in 8.0."""
    put_fact("isolation.first_write", "renews")


@breaks("KV-RBATCH-024")
def keeps_the_view_over_a_flush() -> None:
    """`flush_all` empties the table and leaves the batch of reads open."""

    def flush(session: Session, _command: FlushAll, _now: int) -> OperationGen:
        mapping = yield from session.mapping()
        cause = yield Clear(mapping, session.rules.flush_on_reference)
        session.flushed = True
        return Status.OK if cause is None else ServerError(cause)

    dispatch.HANDLERS[FlushAll] = flush
