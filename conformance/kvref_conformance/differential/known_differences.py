"""Differences that are explained: the rows of `known_differences.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import SuiteError
from kvref_conformance.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELDS: Final = {"id", "profiles", "sent", "one", "other", "reason", "evidence"}
# A row with it is one of frames.
_DIFFERS: Final = "differs"


@dataclass(frozen=True, slots=True)
class Known:
    """One row.

    Args:
        id: under which it is counted.
        sent: what the step sent must contain this.
        pair: a whole line of one side, LF, the same line of the other side.
        reason: why it is no finding.
        differs: names of fields of a frame that may differ; all others are the same. None: it is a row of text lines.
    """

    id: str
    sent: re.Pattern[bytes]
    pair: re.Pattern[bytes]
    reason: str
    differs: frozenset[str] | None = None

    def explains_frame(self, sent: str, left: Frame, right: Frame) -> bool:
        """Return whether the row explains two different frames; the patterns fit them as lines for a reader.

        Args:
            sent: the step's frames, a line each.
            left: one side's reply.
            right: the other side's.
        """
        if self.differs is None or any(
            getattr(left, each.name) != getattr(right, each.name)
            for each in fields(Frame)
            if each.name not in self.differs
        ):
            return False
        lines = (str(replace(frame, opaque=bytes(4))).encode() for frame in (left, right))
        return self._fits(sent.encode(), *lines)

    def explains(self, sent: bytes, left: bytes, right: bytes) -> bool:
        """Return whether the row explains two different lines."""
        return self.differs is None and self._fits(sent, left, right)

    def _fits(self, sent: bytes, left: bytes, right: bytes) -> bool:
        return self.sent.search(sent) is not None and any(
            self.pair.fullmatch(b"\n".join(pair)) for pair in ((left, right), (right, left))
        )


def load(profiles: Iterable[str]) -> tuple[Known, ...]:
    """Load the rows that count when endpoints of these profiles take part."""
    return parse(files(__package__).joinpath("known_differences.toml").read_text(encoding="utf-8"), profiles)


def parse(text: str, profiles: Iterable[str]) -> tuple[Known, ...]:
    """Read rows.

    Raises:
        SuiteError: a row lacks a field, has one too many or an empty one.
    """
    taking_part = set(profiles)
    rows = tomllib.loads(text).get("known", [])
    for row in rows:
        if row.keys() - {_DIFFERS} != _FIELDS or not all(row.values()):
            raise SuiteError(
                f"differential/known_differences.toml: a row has the fields {', '.join(sorted(_FIELDS))}, none empty,"
                f" one of frames {_DIFFERS} too: {row}"
            )
    return tuple(_known(row) for row in rows if taking_part.intersection(row["profiles"]))


def _known(row: dict[str, Any]) -> Known:
    sent = re.compile(row["sent"].encode(), re.MULTILINE)
    pair = re.compile(f"(?:{row['one']})\\n(?:{row['other']})".encode())
    differs = frozenset(row[_DIFFERS]) if _DIFFERS in row else None
    return Known(row["id"], sent, pair, row["reason"], differs)
