"""The columns of a mapped table: which cells a value becomes, which value cells show, which keys are one row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.model.effects import Outcome

if TYPE_CHECKING:
    from kvref.profiles import Profile
    from kvref_conformance.sql.columns import Cell, Column

LEADING: Final = re.compile(r"\s*([+-]?\d+)")
DECIMAL: Final = re.compile(r"[+-]?\d+")
# Characters of generated keys other than ASCII, and their equals in a case- and accent-insensitive collation.
FOLDED: Final = str.maketrans({"é": "e", "É": "e"})


class RefusedError(Exception):
    """A key or a value does not fit; `outcome` is what the command is answered."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a mapped table: one key column and one value column or more.

    Args:
        profile: facts.
        key: key column.
        values: value columns, in the order of the list.
        separator: in force.
    """

    profile: Profile
    key: Column
    values: tuple[Column, ...]
    separator: str = "|"

    @property
    def refusal_removes(self) -> bool:
        """Return whether a `set` whose value is refused deletes the row."""
        facts = self.profile
        return facts["text.too_large_set"] == "removes-row" and facts["store.long_value"] == "error"

    def shown(self, cells: tuple[Cell, ...]) -> str:
        """Return the value of a row as the protocol shows it: bytes, one character each; NULL is empty."""
        return self.separator.join(map(_shown, self.values, cells))

    def cell_of(self, word: str) -> Cell:
        """Return what the key column holds for a key as sent; raises RefusedError."""
        if self.key.kind == "integer":
            return self._number(self.key, word)
        text = self._text(self.key, word)
        if len(text) <= (self.key.width or len(text)):
            return text
        if self.profile["store.long_key"] == "error":
            raise RefusedError(Outcome.REFUSED)
        return text[: self.key.width]

    def row_of(self, key: Cell) -> str:
        """Return the same text for all keys that are one row."""
        if isinstance(key, str) and (self.key.collation or "").endswith("_ci"):
            return key.translate(FOLDED).lower()
        return str(key)

    def cells_of(self, value: str) -> tuple[Cell, ...]:
        """Return the cells that a value becomes; raises RefusedError."""
        if len(self.values) == 1:
            return (self._cell(self.values[0], value),)
        strict = self.profile["columns.separator"] == "string"
        parts = value.split(self.separator) if strict else self._cut(value)
        if len(parts) > len(self.values) and self.profile["columns.surplus"] == "error":
            raise RefusedError(Outcome.REFUSED)
        cells: list[Cell] = []
        for column, part in zip(self.values, parts, strict=False):
            try:
                absent = part is None or (not part and column.kind == "integer" and strict)
                cells.append(None if absent else self._cell(column, part or ""))
            except RefusedError as refused:
                if refused.outcome != Outcome.NOT_STORED:
                    raise
                break  # the plugin stops at a part that is not a number (col-050)
        return (*cells, *[None] * (len(self.values) - len(cells)))

    def _cut(self, value: str) -> list[str | None]:
        # A set of bytes, runs of which count once; an empty first part is seen by the first byte alone (sep-031).
        first: list[str | None] = [None] if value.startswith(self.separator[0]) else []
        return first + [part for part in re.split(f"[{re.escape(self.separator)}]", value) if part]

    def _cell(self, column: Column, data: str) -> Cell:
        if column.kind == "integer":
            return self._number(column, data)
        text = self._text(column, data)
        if len(text) <= (column.width or len(text)):
            return text
        if self.profile["store.long_value"] == "error":
            raise RefusedError(Outcome.TOO_LARGE)
        return text[: column.width]

    def _text(self, column: Column, data: str) -> str:
        charset = (column.collation or "").partition("_")[0]
        if charset in {"latin1", ""}:
            return data
        sent = data.encode("latin-1")
        try:
            return sent.decode()
        except UnicodeDecodeError as error:
            if self.profile["store.malformed_text"] == "error":
                raise RefusedError(Outcome.MALFORMED) from error
            return sent[: error.start].decode()

    def _number(self, column: Column, data: str) -> int:
        low, high = column.limits
        if self.profile["store.integer_text"] == "error":
            if DECIMAL.fullmatch(data) and low <= int(data) <= high:
                return int(data)
            raise RefusedError(Outcome.REFUSED)
        leading = LEADING.match(data)
        if leading is None:
            raise RefusedError(Outcome.NOT_STORED)
        # strtoll, whose result goes in by its low bits
        number = max(-(1 << 63), min(int(leading[1]), (1 << 63) - 1))
        return (number - low) % (high - low + 1) + low


def _shown(column: Column, cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, int) or (column.collation or "").startswith("latin1"):
        return str(cell)
    return str(cell).encode().decode("latin-1")
