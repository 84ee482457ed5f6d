"""Draw cells that SQL can write into a column: rows a conversation starts from, and changes between its steps."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.sql.columns import CODECS
from kvref_conformance.strategies.draw import between, chance, pick
from kvref_conformance.strategies.pools import STORED_BYTES, STORED_KEYS, STORED_VALUES

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from kvref_conformance.sql.columns import Cell, Column
    from kvref_conformance.strategies.palette import Palette
    from kvref_conformance.strategies.world import Table

NUMBERS: Final = (0, 1, 2, 5, 7, 9, 10, 99, -1, -5, 2020)


def row_pool(draw: DrawFn, table: Table, palette: Palette) -> tuple[tuple[Cell, ...], ...]:
    """Draw rows for a table; their keys differ in every collation."""
    rows: list[tuple[Cell, ...]] = []
    column = table.column("k")
    taken: set[str] = set()
    for number in range(between(draw, 0, 8)):
        row = draw_row(draw, table, palette, number)
        key = _distinct(row[table.columns.index(column)], column)
        if key not in taken:
            taken.add(key)
            rows.append(row)
    return tuple(rows)


def draw_row(draw: DrawFn, table: Table, palette: Palette, identity: int) -> tuple[Cell, ...]:
    """Draw a row that SQL takes, unless its key is there already; `identity` goes into a column `id`."""
    return tuple(identity if column.name == "id" else draw_cell(draw, column, palette) for column in table.columns)


def draw_cell(draw: DrawFn, column: Column, palette: Palette) -> Cell:
    """Draw a cell that SQL takes; a column's name says what it is for."""
    if column.nullable and chance(draw, 0.12):
        return None
    if column.kind == "integer":
        low, high = column.limits
        pool = palette.numbers.get(column.name, (*NUMBERS, *NUMBERS, low, high, low + 1, high - 1))
        return pick(draw, [number for number in pool if low <= number <= high])
    if column.kind == "bytes":
        return pick(draw, [cell for cell in STORED_BYTES if column.width is None or len(cell) <= column.width])
    if palette.letters:
        texts = st.text(palette.letters, min_size=0 if column.nullable else 1, max_size=column.width)
        return draw(texts | st.just(palette.letters[0] * (column.width or 1)))
    stored = STORED_KEYS if column.name == "k" else STORED_VALUES
    return pick(draw, [text for text in stored if fits(text, column, palette.version)])


def fits(text: str, column: Column, version: str) -> bool:
    """Return whether a text column takes a text as it is."""
    if column.width is not None and len(text) > column.width:
        return False
    charset = column.charset(version)
    if charset == "utf8" and any(ord(letter) > 0xFFFF for letter in text):
        return False
    try:
        text.encode(CODECS[charset])
    except UnicodeEncodeError:
        return False
    return True


def folded(cell: Cell) -> str:
    """Return a key so that two which any collation may hold equal are equal: letters without case and marks."""
    text = str(cell).rstrip(" ").casefold()
    # Accents, ligatures and ß fold in some collations; emoji are one weight in utf8mb4_general_ci.
    for old, new in (("é", "e"), ("e\u0301", "e"), ("ü", "u"), ("ﬁ", "fi"), ("z\u0301", "z"), ("ß", "ss")):
        text = text.replace(old, new)
    return text if all(ord(letter) <= 0xFFFF for letter in text) else "wide"


def _distinct(cell: Cell, column: Column) -> str:
    collation = column.collation or ""
    if collation.endswith("_bin"):
        return str(cell).rstrip(" ")
    return unicodedata.normalize("NFC", str(cell)).rstrip(" ") if collation.endswith("_cs") else folded(cell)
