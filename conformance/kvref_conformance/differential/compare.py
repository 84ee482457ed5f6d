"""Compare two replies line by line or frame by frame, and rows; what `known_differences.toml` has is explained."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from kvref_conformance.corpus.holes import CasNumbers, cas_spans
from kvref_conformance.wire.frames import BETWEEN, decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.differential.known_differences import Known
    from kvref_conformance.strategies.world import Table, World

Row: TypeAlias = "list[Json]"
Rows: TypeAlias = "list[Row]"

# In the place of a cas number: no character of an answer.
_NUMBER: Final = "\ue000"
_FRAME_CAS: Final = re.compile(r"(?:\A|; )\S+ \S+(?: opaque=\d+)?(?: datatype=\d+)? cas=(?P<cas>\d+)")
# Placeholders of `exchange.py`.
_END: Final = re.compile(rb"<(?:EOF|silence|more than [^>]+)>\Z")
# Other ones were written by SQL and are equal on both sides: no run counts so far, and kvref over a database begins at
# the microseconds of its start.
LARGEST_COUNTED: Final = 1_000_000_000
MICROSECONDS: Final = range(10**15, 10**16)  # from 2001 to 2286
# Seconds by which two times of expiry counted from now may differ.
TOLERANCE: Final = 3


class Counted(CasNumbers):
    """The cas numbers of one conversation, left and right paired one to one; those that SQL wrote are equal."""

    def agree(self, left: int, right: int) -> bool:
        """Pair two numbers; False where one of them has another partner already."""
        counted = [0 < number < LARGEST_COUNTED or number in MICROSECONDS for number in (left, right)]
        return super().agree(left, right) if all(counted) else left == right and not any(counted)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text reply, or a frame in words (`wire/frames.py`).

    Args:
        text: without its cas numbers.
        numbers: the cas numbers.
    """

    text: str
    numbers: tuple[int, ...]


def lines(answer: bytes, *, binary: bool = False) -> list[Line]:
    """Cut an answer into lines or frames; how its connection ended is the last one."""
    text = in_words(answer) if binary else answer.decode("latin-1")
    spans = [found.span("cas") for found in _FRAME_CAS.finditer(text)] if binary else list(cas_spans(text))
    numbers = iter([int(text[begin:end]) for begin, end in spans])
    for begin, until in reversed(spans):
        text = text[:begin] + _NUMBER + text[until:]
    each = text.split(BETWEEN if binary else "\r\n") if text else []
    return [Line(line, tuple(itertools.islice(numbers, line.count(_NUMBER)))) for line in each]


def in_words(answer: bytes) -> str:
    """Return an answer of frames in words, with how its connection ended."""
    data, end = ended(answer)
    return BETWEEN.join(filter(None, (decode(data), end)))


def ended(answer: bytes) -> tuple[bytes, str]:
    """Split off what an answer says of the end of its connection."""
    found = _END.search(answer)
    return (answer[: found.start()], found[0].decode()) if found is not None else (answer, "")


def same(left: Sequence[Line], right: Sequence[Line], counted: Counted) -> bool:
    """Return whether two answers are the same up to cas numbers, which are paired."""
    return len(left) == len(right) and all(same_line(a, b, counted) for a, b in zip(left, right, strict=True))


def same_line(left: Line, right: Line, counted: Counted) -> bool:
    """Return whether two lines are the same up to cas numbers, which are paired."""
    numbers = zip(left.numbers, right.numbers, strict=False)
    return left.text == right.text and all(counted.agree(a, b) for a, b in numbers)


def explained(
    sent: str, left: Sequence[Line], right: Sequence[Line], known: Sequence[Known], counted: Counted
) -> list[str] | None:
    """Return the ids of the rows that explain the differing lines of two answers; None where a line is left over."""
    if len(left) != len(right):
        return None
    ids = []
    for mine, theirs in zip(left, right, strict=True):
        if same_line(mine, theirs, counted):
            continue
        row = row_of(sent, mine, theirs, known, counted)
        if row is None:
            return None
        ids.append(row)
    return ids


def row_of(sent: str, left: Line, right: Line, known: Sequence[Known], counted: Counted) -> str | None:
    """Return the id of the row that explains two different lines whose cas numbers agree; None if there is none."""
    if len(left.numbers) != len(right.numbers) or not all(map(counted.agree, left.numbers, right.numbers)):
        return None
    return next((row.id for row in known if row.explains(sent, left.text, right.text)), None)


def differing_rows(world: World, table: Table, left: Rows, right: Rows, counted: Counted) -> tuple[Rows, Rows] | None:
    """Return the rows of a table that differ, on each side; None where all are the same."""
    columns = [(table.name, column.name) for column in table.columns]
    cas = {place for place, column in enumerate(columns) if column in world.volatile(6)}
    times = {place for place, column in enumerate(columns) if column in world.volatile(7)}
    mine, theirs = _by_stable(left, cas | times), _by_stable(right, cas | times)
    stable = Counter(key for key, _ in mine), Counter(key for key, _ in theirs)
    if stable[0] != stable[1]:
        return _only(mine, stable[0] - stable[1]), _only(theirs, stable[1] - stable[0])
    pairs = [(a, b) for (_, a), (_, b) in zip(mine, theirs, strict=True) if not _agree(a, b, cas, times, counted)]
    return ([a for a, _ in pairs], [b for _, b in pairs]) if pairs else None


def _by_stable(rows: Rows, volatile: set[int]) -> list[tuple[str, Row]]:
    """Return rows with a text of the cells that must be equal, in its order."""
    keyed = [(repr([cell for place, cell in enumerate(row) if place not in volatile]), row) for row in rows]
    return sorted(keyed, key=lambda pair: pair[0])


def _only(rows: list[tuple[str, Row]], wanted: Counter[str]) -> Rows:
    return [row for key, row in rows if wanted[key]]


def _agree(left: Row, right: Row, cas: set[int], times: set[int], counted: Counted) -> bool:
    for place in cas | times:
        mine, theirs = left[place], right[place]
        if not (isinstance(mine, int) and isinstance(theirs, int)):
            if mine != theirs:
                return False
        elif place in cas:
            if not counted.agree(mine, theirs):
                return False
        elif abs(mine - theirs) > TOLERANCE:
            return False
    return True
