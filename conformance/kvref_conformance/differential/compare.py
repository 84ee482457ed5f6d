"""Compare two text replies, except cas numbers and the differences in `known_differences.toml`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from kvref_conformance.corpus.holes import cas_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.differential.known_differences import Known
    from kvref_conformance.strategies.world import Table, World

Row: TypeAlias = "list[Json]"
Rows: TypeAlias = "list[Row]"

# Larger ones were written by SQL and are equal on both sides; no run counts so far.
LARGEST_COUNTED: Final = 1_000_000_000
# Seconds by which two times of expiry counted from now may differ.
TOLERANCE: Final = 3


class Counted:
    """The cas numbers of one conversation, left and right paired one to one."""

    def __init__(self) -> None:
        self._left: dict[int, int] = {}
        self._right: dict[int, int] = {}

    def agree(self, left: int, right: int) -> bool:
        """Pair two numbers; False where one of them has another partner already."""
        if not self.would_agree(left, right):
            return False
        if 0 < left < LARGEST_COUNTED:
            self._left[left], self._right[right] = right, left
        return True

    def would_agree(self, left: int, right: int) -> bool:
        """Return the result of `agree` without pairing."""
        if left == right and not 0 < left < LARGEST_COUNTED:
            return True
        if not (0 < left < LARGEST_COUNTED and 0 < right < LARGEST_COUNTED):
            return False
        return self._left.get(left, right) == right and self._right.get(right, left) == left


def same(left: bytes, right: bytes, counted: Counted) -> bool:
    """Return whether two answers are the same up to cas numbers, which are paired."""
    if b"VALUE" not in left:
        return left == right
    mine, theirs = _pieces(left), _pieces(right)
    return len(mine) == len(theirs) and all(
        counted.agree(a, b) if isinstance(a, int) and isinstance(b, int) else a == b
        for a, b in zip(mine, theirs, strict=True)
    )


def _pieces(answer: bytes) -> list[str | int]:
    text = answer.decode("latin-1")
    pieces: list[str | int] = []
    done = 0
    for begin, end in cas_spans(text):
        pieces += [text[done:begin], int(text[begin:end])]
        done = end
    return [*pieces, text[done:]]


def explained(sent: bytes, left: bytes, right: bytes, known: Sequence[Known], counted: Counted) -> list[str] | None:
    """Return the ids of the rows that explain the differing lines of two answers; None where a line is left over."""
    lines = left.split(b"\r\n"), right.split(b"\r\n")
    if len(lines[0]) != len(lines[1]):
        return None
    ids = []
    for mine, theirs in zip(*lines, strict=True):
        if same(mine + b"\r\n", theirs + b"\r\n", counted):
            continue
        row = next((row for row in known if row.explains(sent, mine, theirs)), None)
        if row is None:
            return None
        ids.append(row.id)
    return ids


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
