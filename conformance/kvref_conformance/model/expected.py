"""What may be observed: an answer, silence, rows over SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from kvref_conformance.wire.template import CAS, with_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref_conformance.model.rows import Number, Row, RowId

# The value of the rows between the keys.
FENCE: Final = "fence"
# A row of a SELECT: table, key, value, flags, cas.
Cells: TypeAlias = tuple[str, str, str, int, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to the last request on a connection.

    Args:
        on: name of the connection.
        texts: any of them; CAS is a placeholder for a number.
        numbers: identities of the cas numbers of a text.
    """

    on: str
    texts: tuple[str, ...]
    numbers: tuple[Number, ...] = ()

    def __str__(self) -> str:
        return f"{self.on} is answered {' or '.join(map(repr, self.texts))}"


@dataclass(frozen=True, slots=True)
class Silence:
    """The request, or SQL's statement, waits: no answer yet."""

    on: str

    def __str__(self) -> str:
        return f"{self.on} waits"


@dataclass(frozen=True, slots=True)
class Served:
    """The SQL statement that waited is through."""

    def __str__(self) -> str:
        return "SQL waits no more"


@dataclass(frozen=True, slots=True)
class Closed:
    """The endpoint closes the connection."""

    on: str

    def __str__(self) -> str:
        return f"{self.on} is closed"


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows that a SELECT gives.

    Args:
        rows: all of them.
        dirty: read at READ UNCOMMITTED.
        soon: seen no later than after some seconds: a closed connection's commit follows the close.
    """

    rows: tuple[tuple[RowId, Row], ...]
    dirty: bool = False
    soon: bool = False

    def __str__(self) -> str:
        cells = ((*place, row.item.value, row.item.flags, row.number.seen) for place, row in self.rows)
        return f"SQL sees {shown(cells)}{' before long' if self.soon else ''}"


@dataclass(frozen=True, slots=True)
class Refill:
    """Nothing to observe: the rows between the keys are to be put into a flushed table again."""

    table: str
    rows: tuple[tuple[RowId, Row], ...]

    def __str__(self) -> str:
        return f"{self.table} gets the rows between the keys again"


def shown(cells: Iterable[tuple[str, str, str, int | None, int | None]]) -> str:
    """Write rows for a reader, without those between the keys."""
    texts = (
        f"{table} {key} = {value} {flags} {cas or CAS}" for table, key, value, flags, cas in cells if value != FENCE
    )
    return ", ".join(texts) or "no row"


Expected: TypeAlias = Answer | Silence | Served | Closed | Seen | Refill


class Numbers:
    """The cas numbers seen so far, each of one version of one row only."""

    def __init__(self) -> None:
        self._known: dict[int, Number] = {}

    def answers(self, expected: Answer, got: str) -> bool:
        """Return whether an answer is allowed, and learn its numbers."""
        for text in expected.texts:
            found = re.fullmatch(with_numbers(text), got)
            if found:
                return not expected.numbers or self._learn(zip(expected.numbers, map(int, found.groups()), strict=True))
        return False

    def sees(self, expected: Seen, got: Iterable[Cells]) -> bool:
        """Return whether these are the rows, and learn their numbers."""
        cells = sorted(got)
        rows = sorted(expected.rows, key=lambda each: each[0])
        if [each[:4] for each in cells] != [(*place, row.item.value, row.item.flags) for place, row in rows]:
            return False
        return self._learn((row.number, each[4]) for (_, row), each in zip(rows, cells, strict=True))

    def assume(self, expected: Answer | Seen) -> None:
        """Assume an observation that no one makes: cas numbers that were not seen yet get a number."""
        numbers = expected.numbers if isinstance(expected, Answer) else tuple(row.number for _, row in expected.rows)
        for each in numbers:
            self._learn([(each, each.seen or len(self._known) + 1)])

    def _learn(self, pairs: Iterable[tuple[Number, int]]) -> bool:
        known = list(pairs)
        if any(
            number.seen not in {None, seen} or self._known.get(seen, number) is not number for number, seen in known
        ):
            return False
        for number, seen in known:
            number.seen = seen
            self._known[seen] = number
        return True
