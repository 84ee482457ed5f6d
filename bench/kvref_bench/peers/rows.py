"""The rows that are in a table, or the items that are in memcached, when a point begins."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from kvref_bench.workload import keys, values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvref_bench.scenario.records import Table
    from kvref_testbed.targets.progress import Progress

DATABASE: Final = "kvref_bench"
# Values that append and prepend make longer, and numbers that incr does, have room.
ROOM: Final = 1024
LONGEST_TEXT: Final = 16383
# No row has 0: a `cas` with 0 is a `set`.
CAS: Final = 1


def rows(table: Table) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each row."""
    for key in keys.table_keys(table.keys):
        yield key, values.value(table.values, key)


def in_blocks(table: Table, size: int) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield the rows in lists of at most so many, each in the order of its keys: neighbours share a page."""
    left = rows(table)
    numbers = table.keys.shape == "int"
    while block := list(islice(left, size)):
        block.sort(key=(lambda row: int(row[0])) if numbers else None)
        yield block


def told(what: str, total: int, steps: Iterable[int], progress: Progress) -> None:
    """Go through the steps of a load and tell how many rows are done."""
    for done in steps:
        progress.advance(what, done, total)


def key_length(table: Table) -> int:
    """Return the bytes of the longest key there can be."""
    if table.keys.file is not None:
        return keys.LONGEST
    return max(table.keys.length, keys.SHORTEST)


def value_type(table: Table) -> str:
    """Return the type of the value column: TEXT where a whole number is the key of nothing else, as in the articles."""
    longest = max(ROOM, 2 * values.longest(table.values))
    if longest > LONGEST_TEXT:
        return "MEDIUMTEXT"
    return "TEXT" if table.keys.shape == "int" and not table.extras else f"VARCHAR({longest})"
