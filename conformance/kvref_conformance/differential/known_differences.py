"""Differences that are explained: the rows of `known_differences.toml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final, TypedDict

from kvref_conformance.data.tables import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME: Final = "known_differences.toml"


class _Row(TypedDict):
    id: str
    profiles: tuple[str, ...]
    sent: str
    one: str
    other: str
    reason: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """One row.

    Args:
        id: under which it is counted.
        sent: what the step sent must contain this; frames in words are lines.
        pair: a whole line of one side, LF, the same line of the other side; a frame in words is a line.
        reason: why it is not a finding.
    """

    id: str
    sent: re.Pattern[str]
    pair: re.Pattern[str]
    reason: str

    def explains(self, sent: str, left: str, right: str) -> bool:
        """Return whether the row explains two different lines, which have no cas numbers any more."""
        return self.sent.search(sent) is not None and any(
            self.pair.fullmatch("\n".join(pair)) for pair in ((left, right), (right, left))
        )


def load(profiles: Iterable[str]) -> tuple[Known, ...]:
    """Load the rows that count when endpoints of these profiles take part."""
    return parse(files(__package__).joinpath(NAME).read_text(encoding="utf-8"), profiles)


def parse(text: str, profiles: Iterable[str]) -> tuple[Known, ...]:
    """Read rows; raises as `tables.rows_of`."""
    taking_part = set(profiles)
    rows = rows_of(text, NAME, "known", _Row)
    return tuple(_known(row) for row in rows if taking_part.intersection(row["profiles"]))


def _known(row: _Row) -> Known:
    pair = re.compile(f"(?:{row['one']})\\n(?:{row['other']})")
    return Known(row["id"], re.compile(row["sent"], re.MULTILINE), pair, row["reason"])
