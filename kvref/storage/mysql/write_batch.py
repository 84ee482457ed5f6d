"""The writes of several commands in one transaction of one connection, by few statements; it blocks.

A statement of several rows does to each what a statement of its own would, in some order: triggers, references and
indexes see one row after the other. Where it fails nothing of it is left, and its rows are written one by one, so that
each has its own answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kvref.engine import operations as ports
from kvref.errors import KvrefError, StoreError
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.errors import DuplicateError, RetryableError

Write = ports.Insert | ports.Update
Operation = Write | ports.Remove

# An UPDATE of n rows compares up to n * n keys.
MAX_ROWS: Final = 64
MAX_BYTES: Final = 4 << 20  # of one statement
# What a row adds besides its values: four times the longest key in hexadecimal digits, names and numbers.
_BYTES_OF_ROW: Final = 4096
_SAVEPOINT: Final = "kvref_commands"


def carry_out(connection: MySQLConnection, operations: Sequence[Operation]) -> list[Any]:
    """Run operations of one command each on different rows of one mapping, in the transaction that has locked them.

    Returns their results in order, an exception for each command that must run again; the transaction is still open.

    Raises:
        KvrefError, LockWaitError: the transaction is over; CycleError also where it was before.
    """
    connection.require_open()
    answers: list[Any] = [None] * len(operations)
    unbatched = set(range(len(operations)))
    try:
        for numbers in _batches(connection, operations):
            if _written(connection, [operations[number] for number in numbers]):
                unbatched.difference_update(numbers)
        for number in sorted(unbatched):
            try:
                answers[number] = connection.execute(operations[number])
            except (ports.LockWaitError, DuplicateError) as error:
                if not connection.in_transaction:
                    raise
                answers[number] = error
    except RetryableError:
        # What was seen of the table is out of date, for all.
        connection.roll_back()
        raise
    return answers


def carry_out_whole(connection: MySQLConnection, operations: Sequence[Operation]) -> bool:
    """Run operations as `carry_out` does, all or none; return whether they are run: if not, single ones say why.

    The transaction stays open, with its locks.

    Raises:
        KvrefError, LockWaitError: the transaction is over, or the only operation has waited too long for a lock.
    """
    connection.require_open()
    together = [*_batches(connection, operations)]
    alone = sorted({*range(len(operations))}.difference(*together))
    undoable = len(together) + len(alone) > 1
    if undoable:
        connection.query(f"SAVEPOINT {_SAVEPOINT}")
    done = partly = False
    try:
        for numbers in together:
            partly = not connection.write_all([operations[number] for number in numbers])  # type: ignore[arg-type]
            if partly:
                break
        done = not partly and all(connection.execute(operations[number]) is None for number in alone)
    except (KvrefError, ports.LockWaitError) as error:
        if not connection.in_transaction or (len(operations) == 1 and isinstance(error, ports.LockWaitError)):
            raise
    finally:
        if undoable and not done and connection.in_transaction:
            connection.query(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
    if partly and not undoable:
        # By steps, only the command without its row would fail. To undo one statement alone takes a savepoint, which
        # would cost each step of a batch a statement, for what only a trigger can do to rows that are locked.
        connection.roll_back()
        raise _not_all(operations)
    return done


def _written(connection: MySQLConnection, writes: Sequence[Any]) -> bool:
    """Write rows by one statement; tell whether that was possible, if not nothing is written."""
    try:
        if connection.write_all(writes):
            return True
    except (StoreError, ports.LockWaitError):
        if not connection.in_transaction:
            raise
        return False
    raise _not_all(writes)


def _not_all(writes: Sequence[Operation]) -> RetryableError:
    return RetryableError(f"of {len(writes)} rows not all were there")


def _batches(connection: MySQLConnection, operations: Sequence[Operation]) -> Iterator[list[int]]:
    """Yield the numbers of operations that go into one statement, two at least."""
    if len(operations) == 1:
        return
    sql = connection.statements(operations[0].mapping)
    kinds: dict[tuple[type, bool, bool], list[int]] = {}
    for number, operation in enumerate(operations):
        if isinstance(operation, ports.Remove) and not operation.mapping.cascades:
            kinds.setdefault((ports.Remove, False, False), []).append(number)
        if not isinstance(operation, ports.Remove) and sql.is_batchable(operation):
            value_unchanged = isinstance(operation, ports.Update) and operation.value_unchanged
            kinds.setdefault((type(operation), operation.clear_unmapped, value_unchanged), []).append(number)
    room = min(MAX_BYTES, connection.max_packet)
    for (kind, _, _), numbers in kinds.items():
        chunk: list[int] = []
        size = 0
        for number in numbers:
            write: Any = operations[number]
            bytes_of_row = _BYTES_OF_ROW + (0 if kind is ports.Remove else sum(map(_bytes_of, write.row.values)))
            if size + bytes_of_row > room or (kind is ports.Update and len(chunk) >= MAX_ROWS):
                if len(chunk) > 1:
                    yield chunk
                chunk, size = [], 0
            chunk.append(number)
            size += bytes_of_row
        if len(chunk) > 1:
            yield chunk


def _bytes_of(cell: ports.Cell) -> int:
    """Return at most how many bytes a value has as a literal."""
    if isinstance(cell, str):
        return 8 * len(cell)
    return 2 * len(cell) if isinstance(cell, bytes) else 0
