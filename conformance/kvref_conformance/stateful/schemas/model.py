"""The model of a mapped table: which cells a value becomes, which value cells show, which keys are one.

It knows a table of one key column and one value column or more, and what the facts of a profile say of them; SQL,
sockets and hypothesis are elsewhere. Every answer is one text: what is generated leaves nothing open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kvref.profiles import Profile
    from kvref_conformance.differential.world import Column

Cell = str | int | None

TOO_LARGE: Final = "SERVER_ERROR object too large for cache<text>\r\n"
REFUSED: Final = "CLIENT_ERROR <text>\r\n"
MALFORMED: Final = "SERVER_ERROR <text>\r\n"
NOT_STORED: Final = "NOT_STORED\r\n"
LEADING: Final = re.compile(r"\s*([+-]?\d+)")
DECIMAL: Final = re.compile(r"[+-]?\d+")
# Characters of generated keys other than ASCII, and their equals in a case- and accent-insensitive collation.
FOLDED: Final = str.maketrans({"é": "e", "É": "e"})


class AnsweredError(Exception):
    """A command ends with this answer before it touches a row."""

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.answer = answer


@dataclass
class Row:
    """A row: the key as the table holds it, the value columns, the flags."""

    key: Cell
    cells: tuple[Cell, ...]
    flags: int | None


@dataclass
class Table:
    """A mapped table.

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
    rows: dict[Cell, Row] = field(default_factory=dict)

    def get(self, words: list[str]) -> str:
        """Answer `get`."""
        blocks = []
        for word in words:
            row = self._find(word)
            if row is not None:
                value = self.separator.join(map(shown, self.values, row.cells))
                blocks.append(f"VALUE {word} {(row.flags or 0) % (1 << 32)} {len(value)}\r\n{value}\r\n")
        return "".join(blocks) + "END\r\n"

    def store(self, verb: str, word: str, flags: int, value: str) -> str:
        """Answer `set`, `add` or `replace`; the value is bytes, one character each."""
        try:
            key = self._key(word)
            row = self.rows.get(self._folded(key))
        except AnsweredError as answered:
            return answered.answer
        if (verb == "add") == (row is not None) and verb != "set":
            return NOT_STORED
        try:
            cells = self._cells(value)
        except AnsweredError as answered:
            if verb == "set" and self._refusal_removes():
                self.rows.pop(self._folded(key), None)
            return answered.answer
        spelling = key if row is None or self.profile.flag("store.renames_key") else row.key
        self.rows[self._folded(key)] = Row(spelling, cells, flags)
        return "STORED\r\n"

    def delete(self, word: str) -> str:
        """Answer `delete`."""
        row = self._find(word)
        if row is None:
            return "NOT_FOUND\r\n"
        del self.rows[self._folded(row.key)]
        return "DELETED\r\n"

    def insert(self, key: Cell, cells: tuple[Cell, ...], flags: int | None) -> bool:
        """Add a row that SQL inserts; return whether the key is new."""
        if self._folded(key) in self.rows:
            return False
        self.rows[self._folded(key)] = Row(key, cells, flags)
        return True

    def content(self) -> list[tuple[Cell, ...]]:
        """Return the rows as SQL shows them, in no order."""
        return [(row.key, *row.cells, row.flags) for row in self.rows.values()]

    def _refusal_removes(self) -> bool:
        facts = self.profile
        return facts["text.too_large_set"] == "removes-row" and facts["store.long_value"] == "error"

    def _find(self, word: str) -> Row | None:
        try:
            return self.rows.get(self._folded(self._key(word)))
        except AnsweredError:
            return None

    def _key(self, word: str) -> Cell:
        if self.key.kind == "integer":
            return self._number(self.key, word)
        text = self._text(self.key, word)
        if len(text) <= (self.key.width or len(text)):
            return text
        if self.profile["store.long_key"] == "error":
            raise AnsweredError(REFUSED)
        return text[: self.key.width]

    def _folded(self, key: Cell) -> Cell:
        if isinstance(key, str) and (self.key.collation or "").endswith("_ci"):
            return key.translate(FOLDED).lower()
        return key

    def _cells(self, value: str) -> tuple[Cell, ...]:
        if len(self.values) == 1:
            return (self._cell(self.values[0], value),)
        strict = self.profile["columns.separator"] == "string"
        parts = value.split(self.separator) if strict else self._cut(value)
        if len(parts) > len(self.values) and self.profile["columns.surplus"] == "error":
            raise AnsweredError(REFUSED)
        cells: list[Cell] = []
        for column, part in zip(self.values, parts, strict=False):
            try:
                absent = part is None or (not part and column.kind == "integer" and strict)
                cells.append(None if absent else self._cell(column, part or ""))
            except AnsweredError as answered:
                if answered.answer != NOT_STORED:
                    raise
                break  # the plugin stops at a part that is no number (col-050)
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
            raise AnsweredError(TOO_LARGE)
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
                raise AnsweredError(MALFORMED) from error
            return sent[: error.start].decode()

    def _number(self, column: Column, data: str) -> int:
        low, high = column.limits
        if self.profile["store.integer_text"] == "error":
            if DECIMAL.fullmatch(data) and low <= int(data) <= high:
                return int(data)
            raise AnsweredError(REFUSED)
        leading = LEADING.match(data)
        if leading is None:
            raise AnsweredError(NOT_STORED)
        # strtoll, whose result goes in by its low bits
        number = max(-(1 << 63), min(int(leading[1]), (1 << 63) - 1))
        return (number - low) % (high - low + 1) + low


def shown(column: Column, cell: Cell) -> str:
    """Return a cell as the protocol shows it: bytes, one character each; NULL is empty."""
    if cell is None:
        return ""
    if isinstance(cell, int) or (column.collation or "").startswith("latin1"):
        return str(cell)
    return cell.encode().decode("latin-1")
