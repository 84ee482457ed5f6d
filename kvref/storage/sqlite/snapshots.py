"""What a transaction sees: its own rows, others' as the isolation level says, and the file now or as it was."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator
from dataclasses import replace
from functools import cmp_to_key
from typing import Final

from kvref.engine import operations
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Row
from kvref.storage.isolation import Isolation
from kvref.storage.sqlite.pending import LockedError, Pending, Place, Transaction, Version
from kvref.storage.sqlite.rows import Rows
from kvref.storage.sqlite.store import SQLiteStore

MAX_IDLE: Final = 16  # connections kept for the next snapshots


class View:
    """Read for transactions.

    Args:
        store: the file.
        pending: what no commit holds yet.
        isolation: who sees what.
        settle: makes what is written to the file so far durable, before a snapshot is taken of it.
    """

    def __init__(self, store: SQLiteStore, pending: Pending, isolation: Isolation, settle: Callable[[], None]) -> None:
        self._store = store
        self._pending = pending
        self._isolation = isolation
        self._settle = settle
        self._idle: list[Rows] = []  # connections for snapshots

    def place(self, mapping: Mapping, key: operations.Cell) -> Place:
        """Return the identity of a row."""
        sql = self._store.statements(mapping)
        return mapping.source, sql.order.place(sql.key(key))

    def lookup(self, transaction: Transaction, mapping: Mapping, key: operations.Cell) -> Row | None:
        """Read one row.

        Raises:
            LockedError: at level 3 a read waits for the row's writer.
            StoreError: SQLite failed.
        """
        if not self._pending and not self._isolation.keeps_snapshot:
            return self._store.lookup(mapping, key)
        place = self.place(mapping, key)
        snapshot = self._snapshot(transaction)  # also where the row is its own: whichever read comes first fixes it
        version = transaction.versions.get(place)
        if version is not None:
            return self.shown(mapping, version)
        others = self._pending.newest(place)
        if others is not None and self._isolation.reads_uncommitted:
            return self.shown(mapping, others)
        holder = self._pending.holder(place)
        if holder not in {None, transaction} and self._isolation.reads_lock:
            raise LockedError(holder)
        row = self._store.lookup(mapping, key, snapshot)
        return None if row is None or self._is_gone(transaction, mapping, key, others) else row

    def shown(self, mapping: Mapping, version: Version) -> Row | None:
        """Return a pending row as a read of the table will show it, by whichever mapping it was written."""
        row, sql = version.row, self._store.statements(mapping)
        same = mapping is version.mapping
        if row is None or (same and sql.reads_as_written):
            return row
        cells = self._store.statements(version.mapping).stored(row)
        shown = sql.row(tuple(cells.get(column.name) for column in sql.columns))
        kept = None if same or version.clears else self._store.lookup(mapping, row.key)
        return shown if kept is None else _joined(mapping, cells, shown, kept)

    def scan(self, transaction: Transaction, operation: operations.Scan) -> list[Row]:
        """Read the rows of a range; raises as `lookup`."""
        snapshot = self._snapshot(transaction)
        if not self._pending and snapshot is None:
            return self._store.scan(operation)
        mapping, sql = operation.mapping, self._store.statements(operation.mapping)
        seen = {place: version for place, version in self._seen(transaction) if place[0] == mapping.source}
        bounds = [(sign, sql.key(cell)) for sign, cell in operation.bounds()]
        pending = (self.shown(mapping, version) for version in seen.values())
        rows = [row for row in pending if row is not None and sql.order.within(sql.key(row.key), bounds)]
        taken = 0
        for row in self._of_file(operation, snapshot):
            place = self.place(mapping, row.key)
            if place in seen or self._is_gone(transaction, mapping, row.key, self._pending.newest(place)):
                continue
            rows.append(row)
            taken += 1
            if taken == operation.limit:
                break
        by_key = cmp_to_key(sql.order.compare)
        rows.sort(key=lambda row: by_key(sql.key(row.key)), reverse=operation.descending)
        return rows[: operation.limit]

    def fix(self, transaction: Transaction) -> None:
        """Let the transaction's reads see this moment, where they see one for all of them."""
        self._snapshot(transaction)

    def end(self, transaction: Transaction) -> None:
        """Let a transaction's snapshot go."""
        snapshot, transaction.snapshot = transaction.snapshot, None
        if snapshot is not None:
            snapshot.connection.rollback()
            if len(self._idle) < MAX_IDLE:
                self._idle.append(snapshot)
            else:
                snapshot.connection.close()

    def close(self) -> None:
        """Close the connections of snapshots."""
        while self._idle:
            self._idle.pop().connection.close()

    def _snapshot(self, transaction: Transaction) -> Rows | None:
        if self._isolation.keeps_snapshot and transaction.snapshot is None:
            self._settle()
            transaction.snapshot = self._store.snapshot(self._idle.pop() if self._idle else None)
        return transaction.snapshot

    def _is_gone(
        self, transaction: Transaction, mapping: Mapping, key: operations.Cell, others: Version | None
    ) -> bool:
        """Return whether others have deleted a row of what the reader may see, where the profile shows that."""
        if not self._isolation.shows_deletes or key is None:
            return False  # a row whose key is NULL cannot be looked up
        if others is not None:
            return others.row is None
        return transaction.snapshot is not None and self._store.lookup(mapping, key) is None

    def _seen(self, transaction: Transaction) -> Iterator[tuple[tuple[str, Hashable], Version]]:
        if self._isolation.reads_uncommitted:
            yield from self._pending.versions()
        yield from transaction.versions.items()

    def _of_file(self, operation: operations.Scan, snapshot: Rows | None) -> Iterator[Row]:
        page = operation
        while True:
            rows = self._store.scan(page, snapshot)
            yield from rows
            # No row is behind a NULL key; a range ends at the first of them (more:nullrange-003, more:nullrange-006).
            if len(rows) < page.limit or rows[-1].key is None:
                return
            page = replace(page, low=rows[-1].key, low_inclusive=False)


def _joined(mapping: Mapping, written: Container[str], new: Row, old: Row) -> Row:
    """Return a row with what was written of it, and what the table has in its other columns."""
    values = tuple(
        fresh if column.name in written else before
        for column, fresh, before in zip(mapping.values, new.values, old.values, strict=True)
    )
    flags, cas, expiry = (
        fresh if column is None or column.name in written else before
        for column, fresh, before in (
            (mapping.flags, new.flags, old.flags),
            (mapping.cas, new.cas, old.cas),
            (mapping.expiry, new.expiry, old.expiry),
        )
    )
    return Row(new.key, values, flags, cas, expiry)
