"""The interface between semantics and store: operations as records, yielded by a session and answered by its executor.

If a store fails, it raises in the executor; a rejected write is a result, not an exception.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from kvref.engine.mapping import Column, Mapping


class LockWaitError(Exception):
    """Another writer kept the lock for too long: thrown into the steps of a command that waits for it."""


class TransactionLostError(Exception):
    """All of the connection's transaction is taken back, the text says why: thrown into the steps of its command."""


class DeadlockError(TransactionLostError):
    """Transactions wait for each other and this one was chosen to end."""


Cell = str | bytes | int | float | None


@dataclass(slots=True)
class Row:
    """The mapped columns of one row; flags, cas and expiry are None where NULL or not in use."""

    key: Cell
    values: tuple[Cell, ...]
    flags: int | None
    cas: int | None
    expiry: int | None


@dataclass(slots=True)
class LoadMapping:
    """Read one row of `containers` by name; answered with Mapping or None when there is no usable one."""

    name: str


@dataclass(slots=True)
class Recheck:
    """Check whether a faulty mapping fits its table again, and update it in place; the result is None.

    A store that detects DDL by itself does nothing.
    """

    mapping: Mapping


@dataclass(slots=True)
class Lookup:
    """Read one row; answered with Row or None.

    Args:
        for_update: a write of the same row follows in this command.
        from_replica: a replica may answer it: the reply has no CAS value, and nothing is kept of the row.
    """

    mapping: Mapping
    key: Cell
    for_update: bool = False
    from_replica: bool = field(default=False, compare=False)


@dataclass(slots=True)
class ReadAlong:
    """Read further columns of the row found under `key`; answered with their cells, none where the row is gone."""

    mapping: Mapping
    key: Cell
    columns: tuple[Column, ...]


@dataclass(slots=True)
class Scan:
    """Read up to `limit` rows between two keys in ascending key order; answered with a list of Row.

    None: no bound there. `descending`: in that order, and between keys as it has them: `low` is the first.
    """

    mapping: Mapping
    low: Cell
    low_inclusive: bool
    high: Cell
    high_inclusive: bool
    limit: int
    descending: bool = False

    def bounds(self) -> list[tuple[str, Cell]]:
        """Return its ends as comparisons with the key, in SQL's signs."""
        after, before = ("<", ">") if self.descending else (">", "<")
        ends = ((after, self.low, self.low_inclusive), (before, self.high, self.high_inclusive))
        return [(f"{sign}{'=' if inclusive else ''}", cell) for sign, cell, inclusive in ends if cell is not None]


@dataclass(slots=True)
class ListedRow:
    """What a listing of keys reads of a row; `size` is that of the value in bytes, as SQL has them."""

    key: Cell
    expiry: int | None
    cas: int | None
    size: int


@dataclass(slots=True)
class ListRows:
    """Read keys in ascending order, without the values and outside the connection's transaction.

    Answered with a list of ListedRow: at least one if there are any behind `after`, up to `limit`. Rows without a key
    are left out.

    Args:
        after: the last key of the page before; None: the first page.
    """

    mapping: Mapping
    after: Cell
    limit: int


@dataclass(slots=True)
class CountRows:
    """Estimate how many committed rows a table has, outside the connection's transaction.

    Answered with the number, or None if the store does not know it soon enough.
    """

    mapping: Mapping


@dataclass(slots=True)
class Insert:
    """Write a new row; answered with None, or the table's reason to refuse it."""

    mapping: Mapping
    row: Row
    clear_unmapped: bool


@dataclass(slots=True)
class Update:
    """Overwrite the row found under `key`; answered with None, or the table's reason to refuse it.

    `value_unchanged`: no other columns than cas and expiry, where they are mapped, are written: nothing else differs.
    """

    mapping: Mapping
    key: Cell
    row: Row
    clear_unmapped: bool
    value_unchanged: bool = False


@dataclass(slots=True)
class Remove:
    """Delete the row found under `key`; answered with None, or the table's reason to refuse it."""

    mapping: Mapping
    key: Cell


@dataclass(slots=True)
class Clear:
    """Delete all rows; answered with None, or the table's reason to refuse it.

    on_reference: what a foreign key of another table does, in the words of the fact `flush.referenced_rows`.
    """

    mapping: Mapping
    on_reference: str


@dataclass(slots=True)
class PurgeExpired:
    """Delete expired rows in a separate transaction.

    Answered with the number of deleted rows, or None if no index begins with the expiry column.

    Args:
        mapping: whose rows; it has an expiry column.
        before: rows with an expiry time from 1 up to this UNIX second, without it, are expired.
    """

    mapping: Mapping
    before: int
    limit: int


@dataclass(slots=True)
class Commit:
    """End the connection's transaction; answered with None, or why everything in it is lost."""


@dataclass(slots=True)
class RollBack:
    """End the connection's transaction and take back everything in it."""


@dataclass(slots=True)
class FixSnapshot:
    """Let the reads of the transaction see this moment, where the isolation level keeps one for all of them."""


Operation = (
    LoadMapping
    | Recheck
    | Lookup
    | ReadAlong
    | Scan
    | ListRows
    | CountRows
    | Insert
    | Update
    | Remove
    | Clear
    | PurgeExpired
    | Commit
    | RollBack
    | FixSnapshot
)

# A step of semantics: yields operations, is sent their answers, returns its result.
OperationGen = Generator[Operation, Any, Any]


def takes_lock(operation: Operation) -> bool:
    """Return whether an operation writes, or reads what its command is about to write."""
    match operation:
        case Lookup():
            return operation.for_update
        case Insert() | Update() | Remove() | Clear() | PurgeExpired():
            return True
        case _:
            return False
