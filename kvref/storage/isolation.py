"""What the settings and the profile make of isolation: who sees what of others' transactions, and who waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvref.profiles import Profile

READ_UNCOMMITTED, READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE = range(4)
_LEVELS: Final = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


@dataclass(slots=True)
class Isolation:
    """Rules of visibility in force; a change of the level counts for transactions that begin after it.

    Args:
        level: innodb_api_trx_level, 0 to 3.
        read_batch: several reads share a transaction.
        direct: each write is a transaction.
        row_locks: a write waits for another transaction that has written the row (innodb_api_disable_rowlock).
        one_snapshot: level 1 keeps a snapshot for a batch of reads as level 2 does (iso fact `isolation.level_1`).
        deletes_visible: fact `isolation.deleted`.
        max_uncommitted: bytes of pending writes that one transaction may have in memory.
        reads_in_transaction: fact `batch.of_reads`: a transaction, whatever it sees.
    """

    level: int = READ_UNCOMMITTED
    read_batch: bool = False
    direct: bool = True
    row_locks: bool = True
    one_snapshot: bool = False
    deletes_visible: bool = False
    reads_in_transaction: bool = False
    max_uncommitted: int = 1 << 28

    @property
    def session_level(self) -> str:
        """Return the isolation level of a connection in SQL; shared locks for reads are requested per statement."""
        level = self.level
        if self.read_batch:
            # SERIALIZABLE would lock what is read (rbatch-071).
            level = REPEATABLE_READ if self.keeps_snapshot else READ_COMMITTED
        elif self.direct:
            level = READ_COMMITTED  # each command sees the newest rows, and a key that is missing locks nothing
        return _LEVELS[READ_UNCOMMITTED if self.reads_uncommitted else level]

    @property
    def reads_uncommitted(self) -> bool:
        """Return whether a read sees what others have not committed."""
        return self.level == READ_UNCOMMITTED

    @property
    def batches(self) -> bool:
        """Return whether a transaction outlives its command."""
        return self.read_batch or not self.direct

    @property
    def ends_with_command(self) -> bool:
        """Return whether each transaction over a database server ends with its command, though reads are counted."""
        return self.direct and not self.reads_begin

    @property
    def keeps_snapshot(self) -> bool:
        """Return whether the reads of a batch see one moment."""
        first = READ_COMMITTED if self.one_snapshot else REPEATABLE_READ
        return self.read_batch and self.level >= first

    @property
    def reads_begin(self) -> bool:
        """Return whether a read begins a transaction where a server has them."""
        return self.read_batch and (self.reads_in_transaction or self.keeps_snapshot)

    @property
    def reads_lock(self) -> bool:
        """Return whether a read waits for a transaction that has written the row (tx:rbatch-070)."""
        return self.level == SERIALIZABLE and not self.read_batch

    @property
    def reads_together(self) -> bool:
        """Return whether reads of several connections, outside transactions, may be one statement: all see one moment.

        Not where a read belongs to the transaction of its connection: a batch of reads that keeps a snapshot. Not at
        SERIALIZABLE: a statement that locks rows would let all its reads wait for the row of one. Not where a row that
        others have deleted must be missing at once: what the statement finds must be looked up again, uncommitted.
        """
        return not (self.reads_lock or self.reads_begin or self.shows_deletes)

    @property
    def reads_committed(self) -> bool:
        """Return whether a read outside a transaction shows what is committed, waits for no lock and begins none."""
        return self.reads_together and not self.reads_uncommitted

    @property
    def shows_deletes(self) -> bool:
        """Return whether a row that others have deleted is missing at once."""
        return self.deletes_visible and not self.reads_uncommitted


def isolation(profile: Profile, settings: Mapping[str, int]) -> Isolation:
    return Isolation(
        level=settings["innodb_api_trx_level"],
        read_batch=settings["daemon_memcached_r_batch_size"] > 1,
        direct=settings["daemon_memcached_w_batch_size"] == 1,
        row_locks=not settings["innodb_api_disable_rowlock"],
        one_snapshot=profile["isolation.level_1"] == "snapshot",
        deletes_visible=profile["isolation.deleted"] == "seen",
        reads_in_transaction=profile["batch.of_reads"] == "transaction",
        max_uncommitted=settings["uncommitted_size_max"],
    )
