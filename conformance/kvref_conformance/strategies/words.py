"""Draw the words of a command: keys that meet rows, `@@` words of every kind, numbers around every limit, values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.sql.columns import CODECS
from kvref_conformance.strategies.cells import draw_cell
from kvref_conformance.strategies.draw import chance, pick, weighted
from kvref_conformance.strategies.pools import SIMILAR, STORED_KEYS, VALUES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn

    from kvref_conformance.sql.columns import Cell, Column
    from kvref_conformance.strategies.palette import Palette
    from kvref_conformance.strategies.world import Container, Table, World

LONGEST_KEY: Final = 250
RANGES: Final = (b"@>", b"@>=", b"@<", b"@<=")
EXPIRIES: Final = {
    0: 14.0, 100: 1, 2591999: 0.5, 2592000: 0.5, 2592001: 0.2, 1_000_000_000: 1, 1_900_000_000: 1, 2_147_483_647: 0.5,
    2_147_483_648: 0.4, 4_294_967_294: 0.2, 4_294_967_295: 0.5,
}  # fmt: skip
# How a mapping is named in a word.
_FORMS: Final = {
    "whole": 9.0, "bare": 1.2, "no key": 0.6, "wrong delimiter": 0.5, "doubled": 0.3, "in front": 0.3, "two": 0.2,
    "one mark": 0.1,
}  # fmt: skip


def draw_key(draw: DrawFn, table: Table, column: Column, palette: Palette) -> bytes:
    """Draw a key: of a row of the table, the same in another spelling, about as long as the column, or any other.

    Args:
        draw: of the composite strategy.
        table: the table.
        column: its key column.
        palette: what is drawn from.
    """
    kind = weighted(draw, palette.keys)
    if column.kind == "integer":
        kind = {"other spelling": "row", "neighbour": "number", "width": "number"}.get(kind, kind)
    if kind == "number":
        limits = _limits(column) if palette.letters else []
        return pick(draw, [*palette.number_keys, *limits])
    if kind == "odd" and (odd := palette.odd_keys_of(column)):
        return pick(draw, odd)
    text = {
        "any": lambda: str(draw_cell(draw, column, palette)) if palette.letters else pick(draw, STORED_KEYS),
        "neighbour": lambda: pick(draw, SIMILAR) + pick(draw, ["", "", "b"]),
        "width": lambda: _around_width(draw, column, palette.wide_letters),
    }.get(kind, lambda: _row_key(draw, table, column, palette))()
    if kind == "other spelling":
        text = pick(
            draw, [text.upper(), text.lower(), text.swapcase(), text.title(), text.replace("e", "é"), text + "x"]
        )
    return sendable(_encoded_somehow(draw, text, column, palette))


def _row_key(draw: DrawFn, table: Table, column: Column, palette: Palette) -> str:
    place = table.columns.index(column)
    keys = [str(row[place]) for row in table.rows if row[place] is not None]
    keys += palette.letters[:2] or STORED_KEYS[:2]
    return pick(draw, keys)


def _limits(column: Column) -> list[bytes]:
    """Return numbers around the limits of an integer column."""
    if column.kind != "integer":
        return []
    low, high = column.limits
    return [b"%d" % number for number in (low, high, low - 1, high + 1, 1, 5, 9, 99)]


def _around_width(draw: DrawFn, column: Column, letters: str) -> str:
    letter = pick(draw, letters)
    length = (column.width or 8) + pick(draw, [-1, 0, 0, 1, 2])
    return letter * max(1, length - 1) + pick(draw, ["", letter, "y", " y"])


def _encoded_somehow(draw: DrawFn, text: str, column: Column, palette: Palette) -> bytes:
    """Return the bytes of a text, mostly in the column's character set, sometimes in another."""
    if palette.malformed and chance(draw, 0.1):
        return text.encode(pick(draw, ["utf-8", "latin-1"]), "replace")
    return encoded(text, column, palette.version)


def encoded(text: Cell, column: Column, version: str) -> bytes:
    """Return the bytes of a cell's text in the column's character set."""
    return str(text).encode(CODECS[column.charset(version)] if column.kind == "text" else "utf-8", "replace")


def sendable(key: bytes) -> bytes:
    """Return a key without what ends a word, and not longer than a key may be; empty becomes a key of one letter."""
    word = b"".join(key.split()).replace(b"\0", b"")
    return word[:LONGEST_KEY] or b"k"


def draw_word(draw: DrawFn, world: World, container: Container, *, prefixed: float, ranges: bool) -> bytes:
    """Draw a word for a verb with keys.

    Args:
        draw: of the composite strategy.
        world: gives the delimiter and the other names.
        container: the mapping meant.
        prefixed: how likely the mapping is named in the word.
        ranges: whether a range may be drawn.
    """
    key = _key(draw, world, container)
    if ranges and chance(draw, 0.06):
        key = pick(draw, RANGES) + (b"" if chance(draw, 0.1) else key)
        if chance(draw, 0.35):
            key += pick(draw, RANGES) + _key(draw, world, container)
    if not chance(draw, prefixed):
        return key
    name = draw_name(draw, world, container)
    between = world.delimiter
    form = weighted(draw, _FORMS)
    if form == "bare":
        return b"@@" + name
    if form == "no key":
        return b"@@" + name + between
    if form == "wrong delimiter":
        return b"@@" + name + pick(draw, [between[:1], between[-1:], between[::-1], b".", b":", b""]) + key
    if form == "doubled":
        return b"@@" + name + between * 2 + key
    if form == "in front":
        return b"@@" + between + name + between + key
    if form == "two":
        return b"@@" + name + between + b"@@" + draw_name(draw, world, container) + between + key
    return b"@" * (1 if form == "one mark" else 2) + name + between + key


def _key(draw: DrawFn, world: World, container: Container) -> bytes:
    assert container.table is not None, "a wrong row has no keys"
    return draw_key(draw, container.table, container.key, world.palette)


def draw_name(draw: DrawFn, world: World, container: Container) -> bytes:
    """Draw the name of a mapping: the one meant, in another case, of a wrong row, or of none."""
    form = weighted(draw, {"meant": 10.0, "other case": 0.7, "any row": 1.2, "none": 0.5})
    name = container.name
    if form == "other case":
        name = name.swapcase()
    elif form == "any row":
        name = pick(draw, world.containers).name
    elif form == "none":
        name = pick(draw, ["nope", name + "x", name[:-1], "@" + name, "default", ""])
    return name.encode()


def draw_value(draw: DrawFn, columns: Sequence[Column], separator: bytes, palette: Palette) -> bytes:
    """Draw a value: a part for each column, more, fewer, with separators where they are not meant, or anything.

    Args:
        draw: of the composite strategy.
        columns: value columns.
        separator: in force.
        palette: what is drawn from.
    """
    if len(columns) < 2:
        return _part(draw, columns[0] if columns else None, palette)
    count = max(1, len(columns) + weighted(draw, {0: 7.0, -1: 1, 1: 1, 2: 0.3}))
    parts = [_part(draw, columns[min(n, len(columns) - 1)], palette) for n in range(count)]
    value = separator.join(b"" if chance(draw, 0.1) else part for part in parts)
    if palette.malformed and chance(draw, 0.06):
        value = pick(draw, [separator, separator[:1], separator[-1:]]) + value
    if palette.malformed and chance(draw, 0.06):
        value += pick(draw, [separator, separator * 2, separator[:1]])
    return value


def _part(draw: DrawFn, column: Column | None, palette: Palette) -> bytes:
    if column is not None and column.kind == "integer" and not chance(draw, 0.5 if palette.letters else 0.15):
        return pick(draw, [*palette.number_keys, *_limits(column)])
    if column is not None and palette.letters:
        return _known_part(draw, column, palette)
    if column is not None and column.width is not None and chance(draw, 0.15):
        letter = pick(draw, [b"z", b"z", b"\xc3\xa9", b"\xe9", b"\xf0\x9f\x98\x80"])
        return letter * max(0, column.width + pick(draw, [-1, 0, 1, 2]))
    return pick(draw, VALUES)


def _known_part(draw: DrawFn, column: Column, palette: Palette) -> bytes:
    """Draw a part whose cell the model knows: mostly one that fits."""
    if chance(draw, 0.7):
        cell = draw_cell(draw, column, palette)
        return b"" if cell is None else encoded(cell, column, palette.version)
    if column.kind == "text" and chance(draw, 0.2) and (odd := palette.odd_keys_of(column)):
        return pick(draw, odd)
    size = max(0, (column.width or 8) + pick(draw, [-1, 0, 1]))
    return encoded(draw(st.text(f"{palette.letters} ", min_size=size, max_size=size)), column, palette.version)
