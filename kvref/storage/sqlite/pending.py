"""Rows that no commit holds yet, who wrote them, and row locks: for a store whose engine has one writer."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kvref.engine import operations as ports
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Row
from kvref.errors import KvrefError, StoreError
from kvref.storage.sqlite.rows import Rows

Place = tuple[str, Hashable]  # table and key, whatever its spelling
Write = ports.Insert | ports.Update | ports.Remove


# Bytes of a pending write without its cells, measured with short cells.
_OVERHEAD: Final = 640


class LockedError(KvrefError):
    """Another transaction holds the row: try again when it ends."""

    def __init__(self, holder: Transaction) -> None:
        super().__init__("another transaction holds the row")
        self.holder = holder


@dataclass(slots=True)
class Version:
    """A row that no commit holds yet, with the mapping and the key it was written by; None where it is deleted.

    `clears`: the columns that the mapping leaves out become NULL.
    """

    mapping: Mapping
    key: ports.Cell
    row: Row | None
    clears: bool = True


@dataclass(slots=True, eq=False)
class Transaction:
    """What one connection has in its open transaction.

    Args:
        versions: its rows.
        operations: what made them, in order: done again in the file at the commit.
        size: bytes that those hold, as `Pending.add` counts them.
        locks: rows that others may not write.
        snapshot: a connection that still sees the file as it was.
        waits_for: whose lock it waits for.
    """

    versions: dict[Place, Version] = field(default_factory=dict)
    operations: list[Write] = field(default_factory=list)
    size: int = 0
    locks: dict[Place, None] = field(default_factory=dict)  # an empty set is three times as large
    snapshot: Rows | None = None
    waits_for: Transaction | None = None


class Pending:
    """The open transactions of all connections.

    Args:
        most: bytes of pending writes that one of them may have.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._holders: dict[Place, Transaction] = {}
        self._writers: dict[Transaction, None] = {}  # with versions; in the order in which they got their first

    def __bool__(self) -> bool:
        return bool(self._writers)

    def newest(self, place: Place) -> Version | None:
        """Return the latest version of a row, by any transaction."""
        return next((each.versions[place] for each in reversed(self._writers) if place in each.versions), None)

    def versions(self) -> Iterator[tuple[Place, Version]]:
        """Yield all versions, later ones of a row behind earlier ones."""
        for each in self._writers:
            yield from each.versions.items()

    def add(self, transaction: Transaction, place: Place, version: Version, operation: Write) -> None:
        """Keep what a transaction wrote.

        Raises:
            StoreError: its writes hold too much; those before stay.
        """
        size = transaction.size + _size(operation)
        if size > self._most:
            raise StoreError(
                f"out of memory: the batch has {len(transaction.operations)} pending writes, and uncommitted_size_max"
                f" lets them hold {self._most} bytes"
            )
        transaction.size = size
        self._writers.setdefault(transaction)
        transaction.versions[place] = version
        transaction.operations.append(operation)

    def holder(self, place: Place) -> Transaction | None:
        """Return who holds a row's lock."""
        return self._holders.get(place)

    def holder_of_table(self, source: str, besides: Transaction) -> Transaction | None:
        """Return another transaction that holds any lock on a table."""
        held = self._holders.items()
        return next((holder for place, holder in held if place[0] == source and holder is not besides), None)

    def lock(self, transaction: Transaction, place: Place) -> None:
        """Lock a row unless another transaction has locked it."""
        if self._holders.setdefault(place, transaction) is transaction:
            transaction.locks[place] = None

    def end(self, transaction: Transaction) -> None:
        """Forget what a transaction wrote, and free its locks."""
        if not transaction.locks and transaction not in self._writers:
            return  # the rule where each write is a batch
        for place in transaction.locks:
            del self._holders[place]
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
                raise ports.DeadlockError("deadlock")
            other = other.waits_for
        transaction.waits_for = holder


def _size(operation: Write) -> int:
    cells = (operation.key,) if isinstance(operation, ports.Remove) else (operation.row.key, *operation.row.values)
    return _OVERHEAD + sum(len(cell) for cell in cells if isinstance(cell, str | bytes))
