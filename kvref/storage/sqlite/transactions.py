"""Transactions over SQLite, which has one writer: their rows reach the file with their commit, all or none.

Readers of the file see commits only. A batch of one write goes to the file at once: the tick's commit is its own. A
program that writes to the file with SQL is not stopped by a row lock: the batch's row replaces its at the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kvref.engine import operations as ports
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Row
from kvref.storage.isolation import Isolation
from kvref.storage.sqlite.errors import StatementError
from kvref.storage.sqlite.pending import LockedError, Pending, Transaction, Version, Write
from kvref.storage.sqlite.snapshots import View
from kvref.storage.sqlite.store import SQLiteStore

_log = logging.getLogger("kvref.storage")


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
        self._pending = Pending(isolation.most_uncommitted)
        self._view = View(store, self._pending, isolation, settle)
        self._touched: set[Transaction] = set()  # since the last commit of a tick

    def execute(self, transaction: Transaction, operation: ports.Operation) -> Any:
        """Answer one operation of a connection.

        Raises:
            LockedError: it has to wait for another transaction.
            TransactionLostError: the table takes its earlier writes no more.
            BusyError, StoreError: see `SQLiteStore.execute`.
        """
        match operation:
            case ports.Lookup(mapping, key, for_update):
                if not for_update:
                    return self._view.lookup(transaction, mapping, key)
                self._separate(mapping)
                direct = self._isolation.direct
                return self._store.execute(operation) if direct else self._locked(transaction, mapping, key)
            case ports.Scan():
                return self._view.scan(transaction, operation)
            case ports.Insert() | ports.Update() | ports.Remove():
                return self._write(transaction, operation)
            case ports.Clear(mapping):
                holder = self._pending.holder_of_table(mapping.source, transaction)
                if holder is not None:
                    raise LockedError(holder)
                self._separate(mapping)
                return self._store.execute(operation)
            case ports.ReadAlong():
                return self._along(transaction, operation)
            case ports.Commit():
                return self._commit(transaction)
            case ports.RollBack():
                return self.roll_back(transaction)
            case ports.FixSnapshot():
                return self._view.fix(transaction)
            case _:
                return self._store.execute(operation)

    def roll_back(self, transaction: Transaction) -> None:
        """Take back what a transaction wrote, and free its locks."""
        self._pending.end(transaction)
        self._view.end(transaction)

    def wait(self, transaction: Transaction, holder: Transaction) -> None:
        """Note that a transaction waits for another.

        Raises:
            DeadlockError: the other waits for this one, which is rolled back.
        """
        try:
            self._pending.wait(transaction, holder)
        except ports.DeadlockError:
            self.roll_back(transaction)
            raise

    def settled(self, *, lost: bool) -> int:
        """Handle the end of a tick.

        Args:
            lost: its commit failed. What was written since may rest on it, and goes too.

        Returns:
            How many pending writes went with it.
        """
        touched, self._touched = self._touched, set()
        if not lost:
            return 0
        writes = sum(len(transaction.operations) for transaction in touched)
        for transaction in touched:
            self.roll_back(transaction)
        return writes

    def close(self) -> None:
        """Close the connections of snapshots."""
        self._view.close()

    def _locked(self, transaction: Transaction, mapping: Mapping, key: ports.Cell) -> Row | None:
        place = self._view.place(mapping, key)
        self._await(transaction, place)
        # The latest row, whatever this transaction has seen of it (iso-004); its own version comes first.
        version = transaction.versions.get(place)
        if version is None and not self._isolation.row_locks:
            version = self._pending.newest(place)
        latest = ports.Lookup(mapping, key, for_update=True)
        found: Row | None = self._store.execute(latest) if version is None else self._view.shown(mapping, version)
        if found is not None:
            self._pending.lock(transaction, place)  # a key that is missing locks nothing
        return found

    def _await(self, transaction: Transaction, place: tuple[str, Any]) -> None:
        holder = self._pending.holder(place)
        if holder is not None and holder is not transaction and self._isolation.row_locks:
            raise LockedError(holder)

    def _separate(self, *mappings: Mapping) -> None:
        """Commit what others wait for before a write that can end the whole transaction: it then ends only its own."""
        if self._store.holds_writes and any(map(self._store.can_roll_back, mappings)):
            self._settle()

    def _write(self, transaction: Transaction, operation: Write) -> str | None:
        self._separate(operation.mapping)
        if self._isolation.direct:
            return self._answer(operation)
        key = operation.key if isinstance(operation, ports.Remove) else operation.row.key
        row = None if isinstance(operation, ports.Remove) else operation.row
        place = self._view.place(operation.mapping, key)
        self._await(transaction, place)
        refusal = self._try_out(transaction, operation)
        if refusal is None:
            self._pending.lock(transaction, place)
            clears = isinstance(operation, ports.Remove) or operation.clear_unmapped
            self._pending.add(transaction, place, Version(operation.mapping, key, row, clears), operation)
            self._touched.add(transaction)
        return refusal

    def _answer(self, operation: ports.Operation) -> str | None:
        refusal: str | None = self._store.execute(operation)
        return refusal

    def _try_out(self, transaction: Transaction, operation: Write) -> str | None:
        """Return why the table refuses a write, which then is never acknowledged."""
        if not self._store.has_rules(operation.mapping):
            self._store.bind(operation)
            return None
        refusal = None
        with _savepoint(self._store) as undo:
            undo()
            lost = self._done(transaction.operations)
            if lost is None:
                refusal = self._answer(operation)
        if lost is not None:  # of what SQL has done meanwhile
            self.roll_back(transaction)
            raise ports.TransactionLostError(lost)
        return refusal

    def _done(self, operations: list[Write]) -> str | None:
        """Write what a transaction holds; returns what stops it.

        A row that SQL has made or deleted meanwhile does not.
        """
        for operation in operations:
            try:
                refusal = self._answer(operation)
            except StatementError as error:
                return str(error)
            if not self._store.in_transaction:
                return refusal  # it was ended by the table
            if refusal is None or isinstance(operation, ports.Remove):
                continue
            mapping, row, clear = operation.mapping, operation.row, operation.clear_unmapped
            inserted = isinstance(operation, ports.Insert)
            instead = ports.Update(mapping, row.key, row, clear) if inserted else ports.Insert(mapping, row, clear)
            if self._answer(instead) is not None:
                return refusal
        return None

    def _along(self, transaction: Transaction, operation: ports.ReadAlong) -> tuple[ports.Cell, ...]:
        version = transaction.versions.get(self._view.place(operation.mapping, operation.key))
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
            self._separate(*{operation.mapping for operation in transaction.operations})
            with _savepoint(self._store) as undo:
                refusal = self._done(transaction.operations)
                if refusal is not None:
                    lost = len(transaction.operations)
                    _log.error("store %s: %s: %d pending writes are lost", self._store.path, refusal, lost)
                    undo()
        self.roll_back(transaction)
        return refusal


@contextmanager
def _savepoint(store: SQLiteStore) -> Iterator[Callable[[], None]]:
    """Keep the writes of the block, or undo all of them after an error or a call of the function it yields.

    Raises:
        BusyError: another process has the write lock.
        StoreError: SQLite failed.
    """
    undone = False

    def undo() -> None:
        nonlocal undone
        undone = True

    store.begin_batch()
    try:
        yield undo
    except BaseException:
        undone = True
        raise
    finally:
        store.end_batch(undone=undone)
