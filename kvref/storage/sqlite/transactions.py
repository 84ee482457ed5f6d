"""Transactions over SQLite, which has one writer: pending rows, row locks, what each sees, and the commit.

Readers of the file see commits only. A batch of one write goes to the file at once: the next commit is its own. A
program that writes to the file with SQL is not stopped by a row lock: the batch's row replaces its at the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import Any, Final

from kvref.engine import operations
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Row
from kvref.errors import KvrefError, StoreError
from kvref.storage.isolation import Isolation
from kvref.storage.rows import from_sql
from kvref.storage.sqlite.errors import StatementError
from kvref.storage.sqlite.planned_rows import PlannedWrite
from kvref.storage.sqlite.rows import Rows
from kvref.storage.sqlite.store import SQLiteStore

Identity = tuple[str, Hashable]  # table and key, whatever its spelling
Write = operations.Insert | operations.Update | operations.Remove


# Bytes of a pending write without its cells, measured with short cells.
_OVERHEAD: Final = 640


class LockedError(KvrefError):
    """Another transaction holds the row: try again when it ends."""

    def __init__(self, holder: Transaction) -> None:
        super().__init__("another transaction holds the row")
        self.holder = holder


@dataclass(slots=True)
class Version:
    """A row that no commit holds yet, by mapping and key; None where it is deleted. `clears`: unmapped columns, too."""

    mapping: Mapping
    key: operations.Cell
    row: Row | None
    clears: bool = True


@dataclass(slots=True, eq=False)
class Transaction:
    """What one connection has in its open transaction.

    Args:
        operations: what made its versions of rows, in order: done again in the file at the commit.
        size: bytes that those hold, as `Pending.add` counts them.
        locks: rows that others may not write.
        snapshot: a connection that still sees the file as it was.
        waits_for: whose lock it waits for.
        clears: number of `RowCache.clears` at its first write.
    """

    versions: dict[Identity, Version | PlannedWrite] = field(default_factory=dict)
    operations: list[Write | PlannedWrite] = field(default_factory=list)
    size: int = 0
    locks: dict[Identity, None] = field(default_factory=dict)  # an empty set is three times as large
    snapshot: Rows | None = None
    waits_for: Transaction | None = None
    clears: int = 0


class Pending:
    """The open transactions of all connections; one of them may have `max_bytes` bytes of pending writes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.holders: dict[Identity, Transaction] = {}  # of the locks of rows
        self._writers: dict[Transaction, None] = {}  # with versions; in the order in which they got their first

    def __bool__(self) -> bool:
        return bool(self._writers)

    def newest(self, identity: Identity) -> Version | PlannedWrite | None:
        return next((each.versions[identity] for each in reversed(self._writers) if identity in each.versions), None)

    def newest_of(self, identity: Identity, *, locked: bool) -> Version | PlannedWrite | None:
        """Return what `newest` does; `locked`: whoever has written a row holds its lock, so that one look finds it."""
        if not locked:
            return self.newest(identity)
        holder = self.holders.get(identity)
        return None if holder is None else holder.versions.get(identity)

    def versions(self) -> Iterator[tuple[Identity, Version | PlannedWrite]]:
        """Yield all versions, later ones of a row behind earlier ones."""
        for each in self._writers:
            yield from each.versions.items()

    def add(
        self,
        transaction: Transaction,
        identity: Identity,
        version: Version | PlannedWrite,
        operation: Write | PlannedWrite,
        size: int,
        clears: int,
    ) -> None:
        """Keep what a transaction wrote; raises StoreError if its writes hold too much, and those before stay.

        Args:
            size: bytes of the key and the values of the operation.
            clears: `RowCache.clears` now.
        """
        size += transaction.size + _OVERHEAD
        if size > self.max_bytes:
            raise StoreError(
                f"out of memory: the batch has {len(transaction.operations)} pending writes, and uncommitted_size_max"
                f" lets them hold {self.max_bytes} bytes"
            )
        if not transaction.operations:
            transaction.clears = clears
        transaction.size = size
        self._writers.setdefault(transaction)
        transaction.versions[identity] = version
        transaction.operations.append(operation)

    def holder_of_table(self, source: str, other_than: Transaction) -> Transaction | None:
        """Return another transaction that holds any lock on a table."""
        locks = self.holders.items()
        return next((holder for identity, holder in locks if identity[0] == source and holder is not other_than), None)

    def lock(self, transaction: Transaction, identity: Identity) -> None:
        if self.holders.setdefault(identity, transaction) is transaction:
            transaction.locks[identity] = None

    def end(self, transaction: Transaction) -> None:
        """Forget what a transaction wrote, and free its locks."""
        if not transaction.locks and transaction not in self._writers:
            return  # the rule where each write is a batch
        for identity in transaction.locks:
            del self.holders[identity]
        transaction.locks.clear()
        transaction.versions.clear()
        transaction.operations.clear()
        transaction.size = 0
        transaction.waits_for = None
        self._writers.pop(transaction, None)

    def wait(self, transaction: Transaction, holder: Transaction) -> None:
        """Note that a transaction waits for another.

        Raises:
            DeadlockError: the other waits for this one: the request that closes the circle loses (lock-024, lock-025).
        """
        other: Transaction | None = holder
        while other is not None:
            if other is transaction:
                raise operations.DeadlockError("deadlock")
            other = other.waits_for
        transaction.waits_for = holder


def _size(operation: Write) -> int:
    cells = (operation.key,) if isinstance(operation, operations.Remove) else (operation.row.key, *operation.row.values)
    return sum(len(cell) for cell in cells if isinstance(cell, str | bytes))


MAX_IDLE: Final = 16  # connections kept for the next snapshots


class View:
    """Read for transactions.

    `settle` makes what is written to the file so far durable, before a snapshot is taken of it.
    """

    def __init__(self, store: SQLiteStore, pending: Pending, isolation: Isolation, settle: Callable[[], None]) -> None:
        self._store = store
        self._pending = pending
        self._isolation = isolation
        self._settle = settle
        self._idle: list[Rows] = []  # connections for snapshots

    def identity(self, mapping: Mapping, key: operations.Cell) -> Identity:
        return mapping.source, self._store.statements(mapping).identity(key)

    def lookup(self, transaction: Transaction, mapping: Mapping, key: operations.Cell) -> Row | None:
        """Read one row; raises LockedError, since at level 3 a read waits for the row's writer, and StoreError."""
        if not self._pending and not self._isolation.keeps_snapshot:
            return self._store.lookup(mapping, key)
        identity = self.identity(mapping, key)
        snapshot = self.snapshot(transaction)  # also where the row is its own: whichever read comes first fixes it
        version = transaction.versions.get(identity)
        if version is not None:
            return self.shown(mapping, version)
        others = self._pending.newest(identity)
        if others is not None and self._isolation.reads_uncommitted:
            return self.shown(mapping, others)
        holder = self._pending.holders.get(identity)
        if holder not in {None, transaction} and self._isolation.reads_lock:
            raise LockedError(holder)
        row = self._store.lookup(mapping, key, snapshot)
        return None if row is None or self._is_gone(transaction, mapping, key, others) else row

    def shown(self, mapping: Mapping, version: Version | PlannedWrite) -> Row | None:
        """Return a pending row as a read of the table will show it, by whichever mapping it was written."""
        row, sql = version.row, self._store.statements(mapping)
        same = mapping is version.mapping
        if row is None or (same and sql.reads_as_written):
            return row
        cells = self._store.statements(version.mapping).stored(row)
        shown = sql.row(tuple(cells.get(column.name) for column in sql.columns))
        before = None if same or version.clears else self._store.lookup(mapping, row.key)
        return shown if before is None else _joined(mapping, cells, shown, before)

    def scan(self, transaction: Transaction, operation: operations.Scan) -> list[Row]:
        snapshot = self.snapshot(transaction)
        if not self._pending and snapshot is None:
            return self._store.scan(operation)
        mapping, sql = operation.mapping, self._store.statements(operation.mapping)
        seen = {identity: version for identity, version in self._seen(transaction) if identity[0] == mapping.source}
        bounds = [(sign, sql.key(cell)) for sign, cell in operation.bounds()]
        pending = (self.shown(mapping, version) for version in seen.values())
        rows = [row for row in pending if row is not None and sql.order.within(sql.key(row.key), bounds)]
        taken = 0
        for row in self._of_file(operation, snapshot):
            identity = self.identity(mapping, row.key)
            if identity in seen or self._is_gone(transaction, mapping, row.key, self._pending.newest(identity)):
                continue
            rows.append(row)
            taken += 1
            if taken == operation.limit:
                break
        by_key = cmp_to_key(sql.order.compare)
        rows.sort(key=lambda row: by_key(sql.key(row.key)), reverse=operation.descending)
        return rows[: operation.limit]

    def end(self, transaction: Transaction) -> None:
        snapshot, transaction.snapshot = transaction.snapshot, None
        if snapshot is not None:
            snapshot.connection.rollback()
            if len(self._idle) < MAX_IDLE:
                self._idle.append(snapshot)
            else:
                snapshot.connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().connection.close()

    def snapshot(self, transaction: Transaction) -> Rows | None:
        """Return the connection whose moment the reads of a transaction see, from now on, where they see one."""
        if self._isolation.keeps_snapshot and transaction.snapshot is None:
            self._settle()
            transaction.snapshot = self._store.snapshot(self._idle.pop() if self._idle else None)
        return transaction.snapshot

    def _is_gone(
        self, transaction: Transaction, mapping: Mapping, key: operations.Cell, others: Version | PlannedWrite | None
    ) -> bool:
        """Return whether others have deleted a row of what the reader may see, where the profile shows that."""
        if not self._isolation.shows_deletes or key is None:
            return False  # a row whose key is NULL cannot be looked up
        if others is not None:
            return others.row is None
        return transaction.snapshot is not None and self._store.lookup(mapping, key) is None

    def _seen(self, transaction: Transaction) -> Iterator[tuple[tuple[str, Hashable], Version | PlannedWrite]]:
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


_log = logging.getLogger("kvref.storage")


class Transactions:
    """All open transactions over one store.

    `settle` makes what is written to the file so far durable, before a snapshot is taken of it.
    """

    def __init__(self, store: SQLiteStore, isolation: Isolation, settle: Callable[[], None]) -> None:
        self._store = store
        self._isolation = isolation
        self._settle = settle
        self.pending = Pending(isolation.max_uncommitted)
        self._view = View(store, self.pending, isolation, settle)
        self.touched: set[Transaction] = set()  # have written on top of what the next commit has

    @property
    def locked(self) -> bool:
        return bool(self.pending.holders)

    def execute(self, transaction: Transaction, operation: operations.Operation) -> Any:
        """Answer one operation of a connection; raises also as `SQLiteStore.execute`.

        Raises:
            LockedError: it has to wait for another transaction.
            TransactionLostError: the table takes its earlier writes no more.
        """
        match operation:
            case operations.Lookup(mapping, key, for_update):
                if not for_update:
                    return self._view.lookup(transaction, mapping, key)
                self._separate(mapping)
                direct = self._isolation.direct
                return self._store.execute(operation) if direct else self._locked(transaction, mapping, key)
            case operations.Scan():
                return self._view.scan(transaction, operation)
            case operations.Insert() | operations.Update() | operations.Remove():
                return self._write(transaction, operation)
            case operations.Clear(mapping):
                holder = self.pending.holder_of_table(mapping.source, transaction)
                if holder is not None:
                    raise LockedError(holder)
                self._separate(mapping)
                return self._store.execute(operation)
            case operations.ReadAlong():
                return self._along(transaction, operation)
            case operations.Commit():
                return self._commit(transaction)
            case operations.RollBack():
                return self.roll_back(transaction)
            case operations.FixSnapshot():
                self._view.snapshot(transaction)
                return None
            case _:
                return self._store.execute(operation)

    @property
    def dirty(self) -> bool:
        """Return whether a commit is due, which says if it has failed: the replies to writes wait for it."""
        return self._store.dirty

    def add_planned(self, transaction: Transaction, identity: Identity, write: PlannedWrite, size: int) -> None:
        """Keep a planned write and lock its row, as `execute` does; raises StoreError if there are too many bytes."""
        self.pending.lock(transaction, identity)
        self.pending.add(transaction, identity, write, write, size, self._store.cache.clears)
        if self._store.dirty:
            self.touched.add(transaction)

    def shown(self, mapping: Mapping, version: Version | PlannedWrite) -> Row | None:
        """Return a pending row as a read of the table will show it, by whichever mapping it was written."""
        return self._view.shown(mapping, version)

    def roll_back(self, transaction: Transaction) -> None:
        self.pending.end(transaction)
        self._view.end(transaction)

    def wait(self, transaction: Transaction, holder: Transaction) -> None:
        """Note that a transaction waits for another; it is rolled back before DeadlockError: the other waits for it."""
        try:
            self.pending.wait(transaction, holder)
        except operations.DeadlockError:
            self.roll_back(transaction)
            raise

    def settled(self, *, lost: bool) -> int:
        """Handle the end of a commit; if it was lost, return how many pending writes on top of it go too."""
        touched, self.touched = self.touched, set()
        if not lost:
            return 0
        writes = sum(len(transaction.operations) for transaction in touched)
        for transaction in touched:
            self.roll_back(transaction)
        return writes

    def close(self) -> None:
        self._view.close()

    def _locked(self, transaction: Transaction, mapping: Mapping, key: operations.Cell) -> Row | None:
        identity = self._view.identity(mapping, key)
        self._await(transaction, identity)
        # The latest row, whatever this transaction has seen of it (tx:iso-004); its own version comes first.
        version = transaction.versions.get(identity)
        if version is None and not self._isolation.row_locks:
            version = self.pending.newest(identity)
        latest = operations.Lookup(mapping, key, for_update=True)
        found: Row | None = self._store.execute(latest) if version is None else self._view.shown(mapping, version)
        if found is not None:
            self.pending.lock(transaction, identity)  # a key that is missing locks nothing
        return found

    def _await(self, transaction: Transaction, identity: tuple[str, Any]) -> None:
        holder = self.pending.holders.get(identity)
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
        key = operation.key if isinstance(operation, operations.Remove) else operation.row.key
        row = None if isinstance(operation, operations.Remove) else operation.row
        identity = self._view.identity(operation.mapping, key)
        self._await(transaction, identity)
        refusal = self._try_out(transaction, operation)
        if refusal is None:
            self.pending.lock(transaction, identity)
            clears = isinstance(operation, operations.Remove) or operation.clear_unmapped
            version = Version(operation.mapping, key, row, clears)
            seen = self._store.cache.clears
            self.pending.add(transaction, identity, version, operation, _size(operation), seen)
            if self._store.dirty:  # only then the reply waits for the commit, and says if it failed
                self.touched.add(transaction)
        return refusal

    def _answer(self, operation: operations.Operation) -> str | None:
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
            raise operations.TransactionLostError(lost)
        return refusal

    def _done_together(self, writes: list[Write | PlannedWrite]) -> bool:
        """Write what a transaction holds if all of it was planned; return whether nothing has changed meanwhile."""
        planned = [each for each in writes if isinstance(each, PlannedWrite)]
        rows = planned[0].rows if planned else None
        if rows is None or len(planned) < len(writes) or any(each.rows is not rows for each in planned):
            return False
        if not rows.source.live or self._store.has_rules(rows.mapping):
            return False
        if rows.apply_batch(planned):
            return True
        self._store.undo_batch()
        return False

    def _done(self, writes: list[Write | PlannedWrite]) -> str | None:
        """Write what a transaction holds; returns what stops it.

        A row that SQL has made or deleted meanwhile does not.
        """
        for write in writes:
            operation = write.operation if isinstance(write, PlannedWrite) else write
            try:
                refusal = self._answer(operation)
            except StatementError as error:
                return str(error)
            if not self._store.in_transaction:
                return refusal  # it was ended by the table
            if refusal is None or isinstance(operation, operations.Remove):
                continue
            mapping, row, clear = operation.mapping, operation.row, operation.clear_unmapped
            inserted = isinstance(operation, operations.Insert)
            instead = (
                operations.Update(mapping, row.key, row, clear) if inserted else operations.Insert(mapping, row, clear)
            )
            if self._answer(instead) is not None:
                return refusal
        return None

    def _along(self, transaction: Transaction, operation: operations.ReadAlong) -> tuple[operations.Cell, ...]:
        version = transaction.versions.get(self._view.identity(operation.mapping, operation.key))
        if version is None or version.row is None:
            found: tuple[operations.Cell, ...] = self._store.execute(operation)
            return found
        cells = self._store.statements(version.mapping).stored(version.row)
        # A write leaves NULL in the others.
        return from_sql(operation.columns, tuple(cells.get(column.name) for column in operation.columns))

    def _commit(self, transaction: Transaction) -> str | None:
        refusal = None
        if transaction.operations:
            self._separate(*{operation.mapping for operation in transaction.operations})
            with _savepoint(self._store) as undo:
                if not self._done_together(transaction.operations):
                    refusal = self._done(transaction.operations)
                if refusal is not None:
                    lost = len(transaction.operations)
                    _log.error("store %s: %s: %d pending writes are lost", self._store.path, refusal, lost)
                    undo()
            if not self._isolation.row_locks or self._store.cache.clears != transaction.clears:
                # Rows may have other spellings of their keys than when they were read.
                for mapping in {operation.mapping for operation in transaction.operations}:
                    self._store.cache.wrote_equal(mapping.source)
        self.roll_back(transaction)
        return refusal


@contextmanager
def _savepoint(store: SQLiteStore) -> Iterator[Callable[[], None]]:
    """Keep the writes of the block, or undo all of them after an error or a call of the function it yields.

    Raises BusyError if another process has the write lock, and StoreError.
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
