"""cas numbers that never come back: reserved in the file in blocks, in a table of the server's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

from kvref.errors import StoreError

CAS_BLOCK: Final = 1_000_000  # numbers reserved at once: those of a block that a crash leaves are not used again


class ReservedNumbers:
    """Numbers that no other server of the file returns.

    Every write that takes a number has the write lock: the commit that first uses a block also reserves it.

    Args:
        connection: connection to the file.
        failures: returns the number of failed commits, each of which may have lost a reservation.
    """

    def __init__(self, connection: sqlite3.Connection, failures: Callable[[], int]) -> None:
        self._connection = connection
        self._failures = failures
        self._before = 0
        self._block = iter(range(0))

    def __iter__(self) -> Iterator[int]:
        """Return itself."""
        return self

    def __next__(self) -> int:
        """Return the next number.

        Raises:
            StoreError: a block cannot be reserved; the next call tries again.
        """
        failures = self._failures()
        number = next(self._block, None) if failures == self._before else None  # others could get these numbers too
        if number is None:
            self._block = iter(_reserve_block(self._connection))
            self._before = failures
            number = next(self._block)
        return number


def _reserve_block(connection: sqlite3.Connection) -> range:
    try:
        connection.execute("CREATE TABLE IF NOT EXISTS kvref_counters (name TEXT PRIMARY KEY, next INTEGER NOT NULL)")
        (end,) = connection.execute(
            "INSERT INTO kvref_counters VALUES ('cas', ?)"
            " ON CONFLICT (name) DO UPDATE SET next = next + ? RETURNING next",
            (CAS_BLOCK + 1, CAS_BLOCK),
        ).fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"cannot reserve cas numbers: {error}") from error
    return range(end - CAS_BLOCK, end)
