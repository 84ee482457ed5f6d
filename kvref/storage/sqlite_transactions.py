"""Transactions over SQLite, which has one writer: what no commit holds yet, row locks and snapshots live here.

A transaction's rows reach the file with its commit, all or none; until then other connections see them as the level
says, and readers of the file not at all. A batch of one write goes to the file at once: the tick's commit is its own. A
program that writes to the file with SQL is not stopped by a row lock: the batch's row replaces its at the commit.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

from kvref.errors import KvrefError
from kvref.semantics import ports
from kvref.semantics.mapping import Mapping
from kvref.semantics.ports import Row
from kvref.storage.isolation import Isolation
from kvref.storage.key_order import KeyOrder
from kvref.storage.rows import PerMapping
from kvref.storage.sqlite import SQLiteStore

_log = logging.getLogger("kvref.storage")

Place = tuple[str, Hashable]  # table and key, whatever its spelling


class LockedError(KvrefError):
    """Another transaction holds the row: try again when it ends."""

    def __init__(self, holder: Transaction) -> None:
        super().__init__("another transaction holds the row")
        self.holder = holder


@dataclass(slots=True)
class Version:
    """A row that no commit holds yet, with the mapping it was written through; None where it is deleted."""

    mapping: Mapping
    key: ports.Cell
    row: Row | None


@dataclass(slots=True, eq=False)
class Transaction:
    """What one connection has in its open transaction.

    Args:
        versions: its rows.
        operations: what made them, in order: done again in the file at the commit.
        locks: rows that others may not write.
        snapshot: a connection that still sees the file as it was.
        waits_for: whose lock it waits for.
    """

    versions: dict[Place, Version] = field(default_factory=dict)
    operations: list[ports.Operation] = field(default_factory=list)
    locks: set[Place] = field(default_factory=set)
    snapshot: sqlite3.Connection | None = None
    waits_for: Transaction | None = None


class Transactions:
    """All open transactions over one store.

    Args:
        store: the file.
        isolation: the settings that decide who sees and waits for what.
        settle: makes what is written to the file so far durable, before a snapshot is taken of it.
    """

    def __init__(self, store: SQLiteStore, isolation: Isolation, settle: Callable[[], None]) -> None:
        self._store = store
        self._isolation = isolation
        self._settle = settle
        self._orders = PerMapping(lambda mapping: KeyOrder(mapping.key.collation))
        self._holders: dict[Place, Transaction] = {}
        self._open: dict[Transaction, None] = {}  # with versions; in the order in which they got their first
        self._snapshots: list[sqlite3.Connection] = []  # not in use
        self._touched: set[Transaction] = set()  # since the last commit of a tick

    def execute(self, transaction: Transaction, operation: ports.Operation) -> Any:
        """Answer one operation of a connection.

        Raises:
            LockedError: it has to wait for another transaction.
            DeadlockError: that one waits for this one, which is rolled back.
            BusyError, StoreError: see `SQLiteStore.execute`.
        """
        match operation:
            case ports.Lookup(mapping, key, for_update):
                return self._locked(transaction, mapping, key) if for_update else self._seen(transaction, mapping, key)
            case ports.Scan():
                return self._scan(transaction, operation)
            case ports.Insert(mapping, row) | ports.Update(mapping, _, row):
                return self._write(transaction, operation, Version(mapping, row.key, row))
            case ports.Remove(mapping, key):
                return self._write(transaction, operation, Version(mapping, key, None))
            case ports.Clear(mapping):
                self._wait_for_table(transaction, mapping)
                return self._store.execute(operation)
            case ports.ReadAlong():
                return self._read_along(transaction, operation)
            case ports.Commit():
                return self._commit(transaction)
            case ports.RollBack():
                return self.roll_back(transaction)
            case _:
                return self._store.execute(operation)

    def roll_back(self, transaction: Transaction) -> None:
        """Take back what a transaction wrote, and free its locks."""
        for place in transaction.locks:
            if self._holders.get(place) is transaction:
                del self._holders[place]
        transaction.locks.clear()
        transaction.versions.clear()
        transaction.operations.clear()
        transaction.waits_for = None
        self._open.pop(transaction, None)
        snapshot, transaction.snapshot = transaction.snapshot, None
        if snapshot is not None:
            snapshot.rollback()
            self._snapshots.append(snapshot)

    def wait(self, transaction: Transaction, holder: Transaction) -> None:
        """Note that a transaction waits for another.

        Raises:
            DeadlockError: the other waits for this one; the one that closes the circle is rolled back (lock-024).
        """
        other: Transaction | None = holder
        while other is not None:
            if other is transaction:
                self.roll_back(transaction)
                raise ports.DeadlockError("deadlock")
            other = other.waits_for
        transaction.waits_for = holder

    def settled(self, *, lost: bool) -> bool:
        """Take note of the end of a tick.

        Args:
            lost: its commit failed. What was written since may rest on it, and goes too.

        Returns:
            Whether pending writes went with it.
        """
        touched, self._touched = self._touched, set()
        if lost:
            for transaction in touched:
                self.roll_back(transaction)
        return lost and bool(touched)

    def close(self) -> None:
        """Close the connections of snapshots."""
        for snapshot in self._snapshots:
            snapshot.close()

    def _place(self, mapping: Mapping, key: ports.Cell) -> Place:
        return mapping.source, self._orders(mapping).place(self._store.key(mapping, key))

    def _newest(self, place: Place) -> Version | None:
        """Return the latest version of a row that no commit holds yet."""
        return next((each.versions[place] for each in reversed(self._open) if place in each.versions), None)

    def _locked(self, transaction: Transaction, mapping: Mapping, key: ports.Cell) -> Row | None:
        if self._isolation.direct:
            return self._store.lookup(mapping, key, for_update=True)
        place = self._place(mapping, key)
        self._take(transaction, place)
        # The base is the latest row, whatever this transaction has seen of it (iso-004); its own version comes first.
        version = transaction.versions.get(place)
        if version is None and not self._isolation.row_locks:
            version = self._newest(place)
        found = version.row if version is not None else self._store.lookup(mapping, key, for_update=True)
        if found is None and place not in transaction.versions:
            self._release(transaction, place)  # a key that is missing locks nothing
        return found

    def _take(self, transaction: Transaction, place: Place) -> None:
        holder = self._holders.get(place)
        if holder is not None and holder is not transaction and self._isolation.row_locks:
            raise LockedError(holder)
        if holder is None:
            self._holders[place] = transaction
            transaction.locks.add(place)

    def _release(self, transaction: Transaction, place: Place) -> None:
        if self._holders.get(place) is transaction:
            del self._holders[place]
            transaction.locks.discard(place)

    def _seen(self, transaction: Transaction, mapping: Mapping, key: ports.Cell) -> Row | None:
        isolation = self._isolation
        if not self._open and not isolation.keeps_snapshot:
            return self._store.lookup(mapping, key)
        place = self._place(mapping, key)
        version = transaction.versions.get(place)
        if version is not None:
            return version.row
        others = self._newest(place)
        if others is not None and isolation.reads_uncommitted:
            return others.row
        if others is not None and isolation.reads_lock and place in self._holders:
            raise LockedError(self._holders[place])
        row = self._store.lookup(mapping, key, connection=self._snapshot(transaction))
        return None if row is not None and self._is_gone(transaction, mapping, key, others) else row

    def _is_gone(self, transaction: Transaction, mapping: Mapping, key: ports.Cell, others: Version | None) -> bool:
        """Tell whether a row that is in what the reader may see was deleted since, where the profile shows that."""
        if not self._isolation.shows_deletes:
            return False
        if others is not None:
            return others.row is None
        return transaction.snapshot is not None and self._store.lookup(mapping, key) is None

    def _snapshot(self, transaction: Transaction) -> sqlite3.Connection | None:
        if not self._isolation.keeps_snapshot:
            return None
        if transaction.snapshot is None:
            self._settle()
            snapshot = self._snapshots.pop() if self._snapshots else self._store.reader()
            snapshot.execute("BEGIN")
            snapshot.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # from here on it stands still
            transaction.snapshot = snapshot
        return transaction.snapshot

    def _scan(self, transaction: Transaction, operation: ports.Scan) -> list[Row]:
        connection = self._snapshot(transaction)
        if not self._open and connection is None:
            return self._store.scan(operation)
        mapping, order = operation.mapping, self._orders(operation.mapping)
        shown = {place: version for place, version in self._shown(transaction) if place[0] == mapping.source}
        bounds = [(sign, self._store.key(mapping, cell)) for sign, cell in operation.bounds()]
        rows = [
            version.row
            for version in shown.values()
            if version.row is not None and order.within(self._store.key(mapping, version.row.key), bounds)
        ]
        taken = 0
        for row in self._file_rows(operation, connection):
            if taken == operation.limit:
                break
            if self._place(mapping, row.key) not in shown:
                others = self._newest(self._place(mapping, row.key))
                if not self._is_gone(transaction, mapping, row.key, others):
                    rows.append(row)
                    taken += 1
        by_key = cmp_to_key(order.compare)
        rows.sort(key=lambda row: by_key(self._store.key(mapping, row.key)), reverse=operation.descending)
        return rows[: operation.limit]

    def _file_rows(self, operation: ports.Scan, connection: sqlite3.Connection | None) -> Iterator[Row]:
        page, low, inclusive = operation.limit, operation.low, operation.low_inclusive
        while True:
            rows = self._store.scan(
                ports.Scan(
                    operation.mapping, low, inclusive, operation.high, operation.high_inclusive, page,
                    operation.descending,
                ),
                connection=connection,
            )  # fmt: skip
            yield from rows
            if len(rows) < page:
                return
            low, inclusive = rows[-1].key, False

    def _shown(self, transaction: Transaction) -> Iterator[tuple[Place, Version]]:
        """Yield the versions that a reader sees, its own last."""
        if self._isolation.reads_uncommitted:
            for each in self._open:
                yield from each.versions.items()
        yield from transaction.versions.items()

    def _write(self, transaction: Transaction, operation: ports.Operation, version: Version) -> str | None:
        if self._isolation.direct:
            return self._answer(operation)
        place = self._place(version.mapping, version.key)
        self._take(transaction, place)
        refusal = self._try_out(transaction, version.mapping, operation)
        if refusal is None:
            self._open.setdefault(transaction)
            self._touched.add(transaction)
            transaction.operations.append(operation)
            transaction.versions[place] = version
        elif place not in transaction.versions:
            self._release(transaction, place)
        return refusal

    def _answer(self, operation: ports.Operation) -> str | None:
        refusal: str | None = self._store.execute(operation)
        return refusal

    def _try_out(self, transaction: Transaction, mapping: Mapping, operation: ports.Operation) -> str | None:
        """Return why the table refuses a write, which then is never acknowledged."""
        if not self._store.has_rules(mapping):
            return self._store.bind(operation)
        with self._store.savepoint() as undo:
            refusal = self._done(transaction.operations) or self._answer(operation)
            undo()
        return refusal

    def _done(self, operations: list[ports.Operation]) -> str | None:
        """Write what a transaction holds; a row that SQL has made or deleted meanwhile stops nothing."""
        for operation in operations:
            refusal = self._answer(operation)
            if refusal is None or isinstance(operation, ports.Remove):
                continue
            if isinstance(operation, ports.Update):
                instead: ports.Operation = ports.Insert(operation.mapping, operation.row, operation.clear_unmapped)
            else:
                assert isinstance(operation, ports.Insert)
                row = operation.row
                instead = ports.Update(operation.mapping, row.key, row, operation.clear_unmapped)
            if self._answer(instead) is not None:
                return refusal
        return None

    def _wait_for_table(self, transaction: Transaction, mapping: Mapping) -> None:
        for place, holder in self._holders.items():
            if place[0] == mapping.source and holder is not transaction:
                raise LockedError(holder)

    def _read_along(self, transaction: Transaction, operation: ports.ReadAlong) -> tuple[ports.Cell, ...]:
        version = transaction.versions.get(self._place(operation.mapping, operation.key))
        if version is None or version.row is None:
            found: tuple[ports.Cell, ...] = self._store.execute(operation)
            return found
        mapping, row = version.mapping, version.row
        cells: dict[str, ports.Cell] = {mapping.key.name: row.key}
        cells |= {column.name: cell for column, cell in zip(mapping.values, row.values, strict=True)}
        options = ((mapping.flags, row.flags), (mapping.cas, row.cas), (mapping.expiry, row.expiry))
        cells |= {column.name: number for column, number in options if column is not None}
        return tuple(cells.get(column.name) for column in operation.columns)  # a write leaves NULL in the others

    def _commit(self, transaction: Transaction) -> str | None:
        refusal = None
        if transaction.operations:
            with self._store.savepoint() as undo:
                refusal = self._done(transaction.operations)
                if refusal is not None:
                    refusal = f"{refusal}: {len(transaction.operations)} pending writes are lost"
                    _log.error("store %s: %s", self._store.path, refusal)
                    undo()
        self.roll_back(transaction)
        return refusal
