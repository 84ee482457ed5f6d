"""What a scheduler of plans needs of a store: the rows of one mapping, read and written together."""

from __future__ import annotations

from collections.abc import Sequence, Set
from enum import Enum
from typing import Final, Protocol

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.plans.plan import CachedRow, Parameters
from kvref.errors import KvrefError, StoreError

_MAX_COUNTED: Final = 1 << 20  # bytes of a column
_DIGITS: Final = 20  # of an integer of 64 bits


class SplitGroupError(KvrefError):
    """The commands of a group cannot be decided together: carry out fewer at once."""


class RefusedWriteError(StoreError):
    """The table refuses a write; the text is its reason."""


class WriteKind(Enum):
    """What a write does to its row."""

    INSERT = "insert"
    UPDATE = "update"
    RENEW = "renew"  # only cas and expiry
    DELETE = "delete"


# One write of a group: what it does; the row's key, as the table stores it, and where there was no row, a word that
# names it; the client's word, which is the key of a new row; the row afterwards, ABSENT for a delete; the rowid of the
# row before, 0 if it is unknown or there is none; the cells to write, none for a delete. A tuple, since each command
# makes one.
Write = tuple[WriteKind, bytes, bytes, CachedRow, int, Parameters]


def bytes_of_row(mapping: Mapping) -> int:
    """Return how many bytes to count for the values of a row that is not read yet: the widths of its columns."""
    return sum(map(_bytes_of, mapping.values)) or 1


def _bytes_of(column: Column) -> int:
    if column.kind is Kind.INTEGER:
        return _DIGITS
    return _MAX_COUNTED if column.width is None else min(4 * column.width, _MAX_COUNTED)


class Overlay:
    """The rows of a group, as the commands that are decided leave them.

    Attributes:
        rows: by key as the table stores it, ABSENT where there is none.
        aliases: the words that name a row by an equal key with other bytes, with that key.
        not_durable: keys whose rows no commit has made durable yet: a reply that shows them waits for that commit.
        all_not_durable: any row may be of that kind.
    """

    __slots__ = ("aliases", "all_not_durable", "not_durable", "rows")

    def __init__(self) -> None:
        self.rows: dict[bytes, CachedRow] = {}
        self.aliases: dict[bytes, bytes] = {}
        self.not_durable: set[bytes] = set()
        self.all_not_durable = False


class Source(Protocol):
    """Where rows come from."""

    @property
    def live(self) -> bool:
        """Return whether mapping and settings are as they were."""


class RowReader(Protocol):
    """Cached rows by word; a dict is one."""

    def get(self, word: bytes, /) -> CachedRow | None: ...

    def __contains__(self, word: object, /) -> bool: ...


class KnownRows(Protocol):
    """What a planner needs of the rows of one mapping.

    Attributes:
        rows: committed rows that no planned command writes, by key as the table stores it: the only ones that a get
            may show without a plan. Read the attribute each time: another dict may take its place.
        missing: words of which the table has no row, with the same meaning.
        hits: how many gets were shown such a row.
    """

    hits: int

    @property
    def rows(self) -> RowReader: ...

    @property
    def missing(self) -> Set[bytes]: ...

    @property
    def largest(self) -> int:
        """Return about how many bytes the largest row has."""

    @property
    def source(self) -> Source:
        """Return what says whether mapping and settings are as they were."""

    def plan_write(self, word: bytes) -> None:
        """Note that a command that writes the row of a word is planned: until `release` no get shows it directly."""


class PlannedRows(KnownRows, Protocol):
    """The rows of one mapping, for plans."""

    @property
    def separate(self) -> bool:
        """Return whether a write may change other rows, or be refused for more than its key.

        Then `apply_many` gets one write at a time, and the next command reads its row behind it.
        """

    def begin(self) -> bool:
        """Return whether the write lock is taken that a write needs before its row is read; raises StoreError."""

    def read_many(self, words: Sequence[bytes], *, written: bool) -> Overlay:
        """Return the rows of some words as clients sent them, read in one operation as far as they are not known.

        SplitGroupError only if `written`: some of the commands write, and there are several. Raises StoreError.
        """

    def apply_many(self, writes: Sequence[Write]) -> None:
        """Carry out writes in the order of their commands, all or none; each depends on those of its row before.

        Raises RefusedWriteError: the table refuses one of them. Raises StoreError.
        """

    def release(self) -> None:
        """Note that all planned commands are carried out: rows that they have not written are shown directly again."""
