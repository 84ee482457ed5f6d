"""What a command on rows is: a plan, a tuple that a scheduler carries out together with others of the same mapping.

A scheduler reads the rows of all plans of a group in one operation, calls `decide` of each in order with the row as the
plans before it leave it, writes the last state of each row, commits, and puts each reply into its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, Row
from kvref.engine.session import MIN_REPLY
from kvref.engine.values import RefusedError

# A row of a mapped table, field by field:
#   HIT: what a get replies of it, without END, expired or not
#   ROWID: its number in the file, 0 if unknown
#   FLAGS, CAS, EXPIRY: flags, cas number and expiry, see `operations.Row`
#   VALUES: the cells of its value columns, None for the one of text or bytes whose content the reply has
# A tuple: each set makes one, and the garbage collector does not look at tuples of bytes and numbers again.
CachedRow = tuple[bytes, int, int | None, int | None, int | None, tuple[Cell, ...] | None]
HIT: Final = 0
ROWID: Final = 1
FLAGS: Final = 2
CAS: Final = 3
EXPIRY: Final = 4
VALUES: Final = 5
# There is no row. Test `row[HIT]`, which no row has empty.
ABSENT: Final[CachedRow] = (b"", 0, None, None, None, None)
# Bytes of a row that any reply may have, whatever `reply_size_max` is. Larger rows are not cached: gets check them.
MAX_CACHED: Final = MIN_REPLY - 64

# Cells to write: the value columns, then flags, cas and expiry, those that are mapped.
Parameters = tuple[Cell, ...]


class Renewal(tuple[Cell, ...]):
    """Parameters of a write that changes no other column than cas and expiry, those that are mapped."""

    __slots__ = ()


# What a command does, field by field:
#   the reply, empty for noreply
#   the row as the command leaves it, ABSENT if it deletes the row, None if it writes nothing
#   what is written, None for a delete
Decision = tuple[bytes, CachedRow | None, Parameters | None]
# Decides one command, without I/O, clock and SQL.
# Args: the row of the key, ABSENT if there is none; the key; what the command needs besides.
# Raises RefusedError with the reply to a command that writes nothing, RemovedError to one that removes its row.
Decide = Callable[[CachedRow, bytes, Any], Decision]
# Decides a get of several keys: their rows, the keys, and whether cas numbers are shown with the client's words.
DecideMany = Callable[[list[CachedRow], tuple[bytes, ...], Any], bytes]

# A plan, field by field:
#   the decider: a `Decide`, or a `DecideMany` for several words
#   the key in the client's word, or a tuple of several
#   what the decider needs of the command
#   the list of replies of the connection
#   the place in that list that the reply gets
Plan = tuple[Callable[[Any, Any, Any], Any], bytes | tuple[bytes, ...], Any, list[bytes], int]


class RemovedError(RefusedError):
    """A set is rejected and removes the row of its key, see `Session.refused_set_removes`."""


def written_row(mapping: Mapping, key: Cell, parameters: Parameters) -> Row:
    """Return the row with a key that a write of all mapped columns leaves."""
    count = len(mapping.values)
    options: Iterator[Any] = iter(parameters[count:])
    flags, cas, expiry = (
        None if column is None else next(options) for column in (mapping.flags, mapping.cas, mapping.expiry)
    )
    return Row(key, parameters[:count], flags, cas, expiry)
