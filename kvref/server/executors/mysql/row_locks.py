"""Which rows the open batches of this process have locked: what a batch may lock in one step without a deadlock.

A batch that has locked rows and waits for another one can be in a deadlock. Commands by steps lock one row after
another, in their order. Several are locked by one statement only if no other batch of this process has locked one of
them. Rows that other programs have locked are not known here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kvref.server.executors.mysql.command import Transaction


class RowLocks:
    """Rows by the transaction that has locked them, or is about to."""

    def __init__(self) -> None:
        self._holders: dict[Hashable, Transaction] = {}
        self._rows: dict[Transaction, set[Hashable]] = {}
        self._unknown: set[Transaction] = set()  # with locks of rows that are not noted

    def is_free(self, transaction: Transaction, row: Hashable) -> bool:
        """Return whether no other transaction is known to have locked a row."""
        return self._holders.get(row, transaction) is transaction

    def are_known(self, transaction: Transaction) -> bool:
        """Return whether the rows are noted that the other transactions have locked."""
        return not self._unknown or self._unknown == {transaction}

    def are_identified(self, transaction: Transaction) -> bool:
        """Return whether the rows are noted that a transaction has locked."""
        return transaction not in self._unknown

    def take(self, transaction: Transaction, rows: Iterable[Hashable]) -> None:
        """Note rows that a transaction is about to lock."""
        noted = self._rows.setdefault(transaction, set())
        for row in rows:
            noted.add(row)
            self._holders[row] = transaction

    def take_unknown(self, transaction: Transaction) -> None:
        """Note that a transaction is about to lock rows by steps."""
        self._unknown.add(transaction)

    def identify(self, transaction: Transaction, row: Hashable) -> None:
        """Note the only row of a transaction that was not noted."""
        self._unknown.discard(transaction)
        self.take(transaction, (row,))

    def release(self, transaction: Transaction) -> None:
        """Note that a transaction has ended."""
        self._unknown.discard(transaction)
        for row in self._rows.pop(transaction, ()):
            if self._holders.get(row) is transaction:
                del self._holders[row]
