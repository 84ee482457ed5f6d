"""What all stores share: cells of SQL to rows of the wire, statements for each mapping, simple sets, exact counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

from kvref.engine.mapping import Column, Mapping
from kvref.engine.operations import Cell, ListedRow, Row
from kvref.engine.values import to_number

EXACT: Final = 1000  # rows that are counted one by one: less than a millisecond
REFERENCED: Final = "other tables refer to it"
MAX_STATEMENTS: Final = 500  # a profile that reads rows of containers again and again makes a mapping each time
MAX_CACHED_TABLES: Final = 500  # of a row cache, for the same reason
# Most rows that leave a full row cache at once. A dict must skip the slots of all removed rows to find its oldest one,
# which takes longer than a write if each new row does that.
MAX_EVICTED: Final = 1024

S = TypeVar("S")
K = TypeVar("K")


def evicted(rows: Collection[K]) -> list[K]:
    """Return which rows of a full row cache leave next, of their keys with the oldest first; not empty."""
    return list(islice(rows, min(MAX_EVICTED, 1 + len(rows) // 16)))


class Remembered(Generic[K, S]):
    """Keep what is made of keys, `made`, for at most so many of them; None is made again."""

    def __init__(self, make: Callable[[K], S], most: int) -> None:
        self._make = make
        self._most = most
        self.made: dict[K, S] = {}

    def __call__(self, key: K) -> S:
        found = self.made.get(key)
        if found is None:
            if len(self.made) >= self._most:
                self.made.clear()
            found = self.made[key] = self._make(key)
        return found

    def clear(self) -> None:
        self.made.clear()


class PerMapping(Remembered[Mapping, S]):
    """Keep what is made of a mapping, for the mappings in use."""

    def __init__(self, make: Callable[[Mapping], S]) -> None:
        super().__init__(make, MAX_STATEMENTS)


def text_of(cell: object) -> str:
    """Return a cell of SQL as text; bytes are decoded as UTF-8."""
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def from_sql(columns: tuple[Column, ...], cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return cells of SQL as the wire has them."""
    return tuple(
        cell if cell is None or column.codec is None else column.codec.from_sql(cell)
        for column, cell in zip(columns, cells, strict=True)
    )


def row_of(mapping: Mapping, cells: tuple[Cell, ...]) -> Row:
    """Return the row of cells of the wire, in the order key, values, then flags, cas and expiry where mapped."""
    values = 1 + len(mapping.values)
    options = iter(cells[values:])
    flags, cas, expiry = (_number(column, options) for column in (mapping.flags, mapping.cas, mapping.expiry))
    return Row(cells[0], cells[1:values], flags, cas, expiry)


def _number(column: Column | None, options: Iterator[Cell]) -> int | None:
    """Return the next of some cells as a number; None for NULL, or if there is no column for it."""
    cell = None if column is None else next(options)
    return None if cell is None else to_number(cell)


def listed_columns(mapping: Mapping) -> tuple[Column, ...]:
    """Return the columns of which a listing of keys reads the cells: key, expiry and cas, those that are mapped."""
    return tuple(column for column in (mapping.key, mapping.expiry, mapping.cas) if column is not None)


def listed_row(mapping: Mapping, cells: tuple[Cell, ...], size: int) -> ListedRow:
    """Return a row of a listing of keys: `cells` in SQL of `listed_columns`; `size`: bytes of the value."""
    key, *numbers = from_sql(listed_columns(mapping), cells)
    options = iter(numbers)
    return ListedRow(key, _number(mapping.expiry, options), _number(mapping.cas, options), size)
