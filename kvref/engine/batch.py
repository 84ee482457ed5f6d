"""One connection's batch: which reads and writes are counted, what commits them, what a failed write takes along.

`innodb_api_cursor_reset` and `innodb_reset_conn` of innodb_engine.c do this in the plugin. Nothing here reads a clock;
`kvref.server.background_commit` decides when an idle batch is due.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from kvref.engine.cache.memory import Pending
from kvref.engine.operations import Commit, FixSnapshot, LockWaitError, Operation, RollBack
from kvref.engine.rules import Rules
from kvref.protocol.commands import Arithmetic


@dataclass(slots=True)
class Limits:
    """How many reads (daemon_memcached_r_batch_size) and writes (daemon_memcached_w_batch_size) fill a batch."""

    reads: int = 1
    writes: int = 1

    def full(self, reads: int, writes: int) -> bool:
        return reads >= self.reads or writes >= self.writes


class Ending(Enum):
    """How a counted write ends the transaction of its connection."""

    COMMIT = auto()
    ROLL_BACK = auto()


class Batch:
    """What one connection has read and written since its last commit; `pending` goes to the memory cache with it."""

    __slots__ = ("_cursor", "_limits", "_pending", "_rules", "_wrote", "begun", "number", "reads", "writes", "writing")

    def __init__(self, limits: Limits, rules: Rules, pending: Pending) -> None:
        self._pending = pending
        self._limits = limits
        self._rules = rules
        self.reads = 0
        self.writes = 0
        self.begun = False  # a read that does not count has begun the transaction
        self.number = 0  # of batches that ended
        self._wrote = False  # the transaction has come to a write
        self._cursor = False  # the connection has come to one since it bound the mapping
        # A command has come so far that its transaction may hold a lock: its outcome counts.
        self.writing = False

    @property
    def open(self) -> bool:
        """Return whether there is anything to commit."""
        return self.reads > 0 or self.writes > 0 or self.begun

    @property
    def reads_unbatched(self) -> bool:
        """Return whether each read is a separate batch with nothing to commit, which needs no count."""
        return self._limits.reads == 1 and not self.writes

    def reads_of(self, keys: int) -> int:
        """Return as how many reads a get of some keys counts, none of them a range or the name of a mapping alone."""
        return keys if self._rules.counts_each_key else 1

    def fills(self, *, reads: int = 0, writes: int = 0) -> bool:
        """Return whether so many further reads and writes fill the batch."""
        return self._limits.full(self.reads + reads, self.writes + writes)

    def joins(self, *, writes: bool, is_open: bool) -> bool:
        """Return whether the next command is in the transaction of the batch: it writes, or the transaction has begun.

        Args:
            writes: it may write.
            is_open: the database has a transaction of the connection.
        """
        return writes or is_open or self.writes > 0

    @property
    def writes_left(self) -> int:
        """Return how many further writes fill the batch."""
        return max(1, self._limits.writes - self.writes)

    def read(self) -> Generator[Operation, Any, str | None]:
        """Count a read; returns why a full batch could not be committed, None where all is well."""
        return (yield from self.commit()) if self.count_read() else None

    def count_read(self) -> bool:
        """Count a read; return whether it fills the batch, which is to be committed then."""
        self.reads += 1
        return self._limits.full(self.reads, self.writes)

    def read_apart(self, count: int = 1) -> None:
        """Count reads that are in no transaction, before any write: no commit is due where they fill the batch."""
        for _ in range(count):
            if self.count_read():
                self._pending.committed()
                self.reset()

    def write(self) -> Generator[Operation, Any, None]:
        """Begin a write; what it does to the snapshot is the profile's (more:batch-012, more:hist-001 to -003)."""
        self.writing = True
        if self._rules.write_renews_snapshot and not self._wrote and (self.reads or self.begun):
            yield Commit()
        fixes = self._rules.every_write_fixes_snapshot or (self._rules.first_write_fixes_snapshot and not self._cursor)
        self._wrote = self._cursor = True
        if fixes and self._limits.writes > 1:
            yield FixSnapshot()

    def write_without_snapshot(self) -> None:
        """Begin a write where no snapshot is kept, so that it renews and fixes none."""
        self._wrote = self._cursor = True

    def wrote(self, *, failed: bool) -> Generator[Operation, Any, str | None]:
        """Count a write, failed if it was not stored or deleted; returns why a full batch could not be committed."""
        match self.count_write(failed=failed):
            case Ending.COMMIT:
                return (yield from self.commit())
            case Ending.ROLL_BACK:
                yield RollBack()
                self.reset()
        return None

    def count_write(self, *, failed: bool) -> Ending | None:
        """Count a write, see `wrote`; return how the transaction is to end now, None: it goes on.

        After `ROLL_BACK`, the caller calls `reset`.
        """
        self.writing = False
        if not failed:
            self.writes += 1
            return Ending.COMMIT if self._limits.full(self.reads, self.writes) else None
        # tx:wbatch-030 to -037: with it goes all that was acknowledged. Where nothing was, only its locks go.
        return Ending.ROLL_BACK if self._rules.failure_discards or not self.writes else None

    def counts_failed(self, command: object) -> bool:
        """Return whether a command counts as a write that has not failed, whatever it does: in the plugin each incr.

        Seen as tx:wbatch-034.
        """
        return isinstance(command, Arithmetic) and self._rules.failure_discards

    def commit(self) -> Generator[Operation, Any, str | None]:
        """Commit what is open.

        Returns:
            None, or why the commit failed and how many writes of the batch are lost with it.

        Raises:
            LockWaitError: the commit waited too long, and nothing of the batch had been answered.
        """
        if not self.open:
            return None
        try:
            reason: str | None = yield Commit()
        except LockWaitError:
            self.reset()
            raise
        if reason is not None:
            # A single write is not a batch: its reply is the error.
            if self._limits.writes > 1:
                return self.lost(reason)
            self.reset()
            return reason
        self._pending.committed()
        self.reset()
        return None

    def ended(self, reason: str | None) -> str | None:
        """Note that what is open was committed, or why not; returns as `commit`."""
        steps = self.commit()
        try:
            next(steps)
            steps.send(reason)
        except StopIteration as stop:
            lost: str | None = stop.value
            return lost
        raise AssertionError("a commit is one operation")

    def switched(self) -> Generator[Operation, Any, str | None]:
        """Commit before another mapping is bound; returns why that could not be done."""
        reads, writes = self.reads, self.writes
        reason = yield from self.commit()
        self.reopened()
        if self._rules.switch_preserves_count:
            self.reads, self.writes = reads, writes  # tx:wbatch-070
        return reason

    def reopened(self) -> None:
        """Note that the table is another one, or was emptied: the plugin opens it again."""
        self._cursor = False

    def lost(self, cause: str) -> str:
        """Begin a new batch, as this one is taken back; returns the cause and what went with it."""
        writes = self.writes
        self.reset()
        return f"{cause}: {writes} pending writes are lost" if writes else cause

    def reset(self) -> None:
        """Begin a new batch: nothing is open any more."""
        self.reads = self.writes = 0
        self._wrote = self.begun = False
        self.number += 1
        self._pending.discarded()
