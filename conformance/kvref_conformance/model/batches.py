"""The transactions of the memcached connections: counts, snapshots, what commits and what takes back.

Sources: transactions page, sections 1, 2 and 5; `innodb_api_cursor_reset` and `innodb_conn_init` of the plugin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvref_conformance.model.rows import Number, Row, RowId, Rows
    from kvref_conformance.model.rules import Limits, Rules
    from kvref_conformance.model.steps import Locking


@dataclass
class Connection:
    """A memcached connection.

    Args:
        mapping: the bound mapping.
        slot: the worker thread that serves it.
        reads: number of reads since the last commit; `writes` is that of writes.
        snapshot: the moment its transaction reads at; None: not fixed yet.
        wrote: its transaction has begun a write.
        has_written: it has begun a write since the mapping was bound or the table flushed.
        touched: tables it has read or written since then.
        seen: the cas numbers that `gets` has returned to it.
        waits: the command that waits.
    """

    mapping: str
    slot: int
    reads: int = 0
    writes: int = 0
    snapshot: int | None = None
    wrote: bool = False
    has_written: bool = False
    touched: set[str] = field(default_factory=set)
    seen: dict[RowId, Number] = field(default_factory=dict)
    waits: Locking | None = None


class Batches:
    """The connections that are open, each with its batch.

    Args:
        rules: facts of the profile in force.
        limits: settings in force.
        rows: what they read and write.
    """

    def __init__(self, rules: Rules, limits: Limits, rows: Rows) -> None:
        self._rules, self._limits, self._rows = rules, limits, rows
        self.open: dict[str, Connection] = {}

    def visible(self, on: str, place: RowId) -> Row | None:
        """Read a row on a connection; its first read fixes the snapshot."""
        connection, level = self.open[on], self._limits.level
        if level == 0 or self._limits.reads_lock:
            return self._rows.newest(place)
        moment = self._rows.now
        if level > 1 or not self._rules.fresh_level_1:
            if connection.snapshot is None:
                connection.snapshot = moment
            moment = connection.snapshot
        if place in self._rows.pending.get(on, {}):
            return self._rows.own(on, place)
        if self._rules.sees_deletes and self._rows.newest(place) is None:
            return None
        return self._rows.at(place, moment)

    def begins_to_write(self, on: str) -> None:
        """Do what a write does to the snapshot, before it may have to wait."""
        connection = self.open[on]
        if self._rules.first_write_renews and not connection.wrote:
            connection.snapshot = None
        fixes = self._rules.writes_fix == "any-command" or (
            self._rules.writes_fix == "first-write-too" and not connection.has_written
        )
        if fixes and connection.snapshot is None:
            connection.snapshot = self._rows.now
        connection.wrote = connection.has_written = True

    def writes(self, on: str, place: RowId, row: Row | None) -> None:
        """Leave a version pending, which counts; None deletes the row."""
        self._rows.write(on, place, row)
        self.count(on, writes=1)

    def count(self, on: str, reads: int = 0, writes: int = 0) -> None:
        """Count, and commit a full batch."""
        connection = self.open[on]
        connection.reads += reads
        connection.writes += writes
        if connection.reads >= self._limits.reads or connection.writes >= self._limits.writes:
            self.end(on)

    def fail(self, on: str, place: RowId | None) -> None:
        """Do what a failed write does to its batch; `place` is what it has locked."""
        if self._rules.failure_discards or not self.open[on].writes:
            self._rows.roll_back(on)
            self.end(on)
        elif place is not None:
            self._rows.lock(on, place, sure=False)

    def end(self, on: str) -> None:
        """Commit what is pending and begin a new batch."""
        connection = self.open[on]
        self._rows.commit(on)
        connection.reads = connection.writes = 0
        connection.snapshot, connection.wrote = None, False

    def moves(self, on: str, mapping: str) -> None:
        """Bind another mapping, which commits; naming the one in force does nothing."""
        connection = self.open[on]
        if connection.mapping == mapping:
            return
        reads, writes = connection.reads, connection.writes
        self.end(on)
        connection.mapping = mapping
        connection.touched.clear()
        connection.has_written = False
        if self._rules.switch_keeps_count:
            connection.reads, connection.writes = reads, writes
