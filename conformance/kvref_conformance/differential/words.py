"""Draw the words of a command: keys that meet rows, `@@` words of every kind, numbers around every limit, values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.differential.draw import chance, pick, weighted
from kvref_conformance.differential.pools import NEIGHBOURS, NUMBER_KEYS, ODD_KEYS, STORED_KEYS, VALUES
from kvref_conformance.sql.columns import CODECS

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from kvref_conformance.differential.world import Container, World
    from kvref_conformance.sql.columns import Column

LONGEST_KEY: Final = 250
RANGES: Final = (b"@>", b"@>=", b"@<", b"@<=")
TIMES: Final = {
    b"0": 14.0, b"100": 1, b"+100": 0.2, b"2591999": 0.5, b"2592000": 0.5, b"1000000000": 1, b"1900000000": 1,
    b"2147483647": 0.5, b"2147483648": 0.5, b"4294967295": 0.3, b"4294967296": 0.3, b"99999999999": 0.3, b"-1": 0.5,
    b"-100": 0.2, b"abc": 0.2, b"1x": 0.2,
}  # fmt: skip
# How a mapping is named in a word.
_FORMS: Final = {
    "whole": 9.0, "bare": 1.2, "no key": 0.6, "wrong delimiter": 0.5, "doubled": 0.3, "in front": 0.3, "two": 0.2,
    "one mark": 0.1,
}  # fmt: skip


_KEYS: Final = {
    "row": 6.0, "other spelling": 1.5, "any": 2, "neighbour": 0.6, "width": 0.6, "odd": 0.6, "number": 0.4,
}  # fmt: skip


def draw_key(draw: DrawFn, container: Container, version: str) -> bytes:
    """Draw a key for a mapping: one of its rows', the same in another spelling, around the width, or any other."""
    column = container.key
    kind = weighted(draw, _KEYS)
    if column.kind == "integer":
        kind = {"other spelling": "row", "neighbour": "number", "width": "number"}.get(kind, kind)
    if kind == "number":
        return pick(draw, NUMBER_KEYS)
    if kind == "odd":
        return pick(draw, ODD_KEYS)
    text = {
        "any": lambda: pick(draw, STORED_KEYS),
        "neighbour": lambda: pick(draw, NEIGHBOURS) + pick(draw, ["", "", "b"]),
        "width": lambda: _around_width(draw, column),
    }.get(kind, lambda: _row_key(draw, container))()
    if kind == "other spelling":
        text = pick(
            draw, [text.upper(), text.lower(), text.swapcase(), text.title(), text.replace("e", "é"), text + "x"]
        )
    return sendable(encoded(draw, text, column, version))


def _row_key(draw: DrawFn, container: Container) -> str:
    assert container.table is not None, "a wrong row has no keys"
    place = next(n for n, column in enumerate(container.table.columns) if column.name == container.key.name)
    keys = [str(row[place]) for row in container.table.rows if row[place] is not None]
    return pick(draw, [*keys, *STORED_KEYS[:2]])


def _around_width(draw: DrawFn, column: Column) -> str:
    letter = pick(draw, "xxxé漢😀")
    length = (column.width or 8) + pick(draw, [-1, 0, 0, 1, 2])
    return letter * max(1, length - 1) + pick(draw, ["", letter, "y", " y"])


def encoded(draw: DrawFn, text: str, column: Column, version: str) -> bytes:
    """Return the bytes of a text, mostly in the column's character set, sometimes in another."""
    codec = CODECS[column.charset(version)] if column.kind == "text" else "utf-8"
    if chance(draw, 0.1):
        codec = pick(draw, ["utf-8", "latin-1"])
    return text.encode(codec, "replace")


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
    key = draw_key(draw, container, world.version)
    if ranges and chance(draw, 0.06):
        key = pick(draw, RANGES) + (b"" if chance(draw, 0.1) else key)
        if chance(draw, 0.35):
            key += pick(draw, RANGES) + draw_key(draw, container, world.version)
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


def draw_value(draw: DrawFn, world: World, container: Container) -> bytes:
    """Draw a value: a part for each column, more, fewer, with separators where they are not meant, or anything."""
    columns = container.values
    if len(columns) < 2:
        return _part(draw, columns[0] if columns else None)
    count = max(1, len(columns) + weighted(draw, {0: 7.0, -1: 1, 1: 1, 2: 0.3}))
    parts = [_part(draw, columns[min(n, len(columns) - 1)]) for n in range(count)]
    value = world.separator.join(b"" if chance(draw, 0.1) else part for part in parts)
    if chance(draw, 0.06):
        value = pick(draw, [world.separator, world.separator[:1], world.separator[-1:]]) + value
    if chance(draw, 0.06):
        value += pick(draw, [world.separator, world.separator * 2, world.separator[:1]])
    return value


def _part(draw: DrawFn, column: Column | None) -> bytes:
    if column is not None and column.kind == "integer" and not chance(draw, 0.15):
        low, high = column.limits
        return pick(draw, [*NUMBER_KEYS, *(b"%d" % number for number in (low, high, low - 1, high + 1, 1, 5, 9, 99))])
    if column is not None and column.width is not None and chance(draw, 0.15):
        letter = pick(draw, [b"z", b"z", b"\xc3\xa9", b"\xe9", b"\xf0\x9f\x98\x80"])
        return letter * max(0, column.width + pick(draw, [-1, 0, 1, 2]))
    return pick(draw, VALUES)
