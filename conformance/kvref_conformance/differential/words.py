"""Draw the words of a command: keys that meet rows, `@@` words of every kind, numbers around every limit, values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.differential.draw import chance, weighted
from kvref_conformance.differential.pools import NEIGHBOURS, NUMBER_KEYS, ODD_KEYS, STORED_KEYS, VALUES
from kvref_conformance.differential.world import CODECS

if TYPE_CHECKING:
    from random import Random

    from kvref_conformance.differential.world import Column, Container, World

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


def draw_key(rnd: Random, container: Container, version: str) -> bytes:
    """Draw a key for a mapping: one of its rows', the same in another spelling, around the width, or any other."""
    column = container.key
    kind = weighted(rnd, _KEYS)
    if column.kind == "integer":
        kind = {"other spelling": "row", "neighbour": "number", "width": "number"}.get(kind, kind)
    if kind == "number":
        return rnd.choice(NUMBER_KEYS)
    if kind == "odd":
        return rnd.choice(ODD_KEYS)
    text = {
        "any": lambda: rnd.choice(STORED_KEYS),
        "neighbour": lambda: rnd.choice(NEIGHBOURS) + rnd.choice(["", "", "b"]),
        "width": lambda: _around_width(rnd, column),
    }.get(kind, lambda: _row_key(rnd, container))()
    if kind == "other spelling":
        text = rnd.choice(
            [text.upper(), text.lower(), text.swapcase(), text.title(), text.replace("e", "é"), text + "x"]
        )
    return sendable(encoded(rnd, text, column, version))


def _row_key(rnd: Random, container: Container) -> str:
    assert container.table is not None, "a wrong row has no keys"
    place = next(n for n, column in enumerate(container.table.columns) if column.name == container.key.name)
    keys = [str(row[place]) for row in container.table.rows if row[place] is not None]
    return rnd.choice([*keys, *STORED_KEYS[:2]])


def _around_width(rnd: Random, column: Column) -> str:
    letter = rnd.choice("xxxé漢😀")
    length = (column.width or 8) + rnd.choice([-1, 0, 0, 1, 2])
    return letter * max(1, length - 1) + rnd.choice(["", letter, "y", " y"])


def encoded(rnd: Random, text: str, column: Column, version: str) -> bytes:
    """Return the bytes of a text, mostly in the column's character set, sometimes in another."""
    codec = CODECS[column.charset(version)] if column.kind == "text" else "utf-8"
    if chance(rnd, 0.1):
        codec = rnd.choice(["utf-8", "latin-1"])
    return text.encode(codec, "replace")


def sendable(key: bytes) -> bytes:
    """Return a key without what ends a word, and not longer than a key may be; empty becomes a key of one letter."""
    word = b"".join(key.split()).replace(b"\0", b"")
    return word[:LONGEST_KEY] or b"k"


def draw_word(rnd: Random, world: World, container: Container, *, prefixed: float, ranges: bool) -> bytes:
    """Draw a word for a verb with keys.

    Args:
        rnd: source of chance.
        world: gives the delimiter and the other names.
        container: the mapping meant.
        prefixed: how likely the mapping is named in the word.
        ranges: whether a range may be drawn.
    """
    key = draw_key(rnd, container, world.version)
    if ranges and chance(rnd, 0.06):
        key = rnd.choice(RANGES) + (b"" if chance(rnd, 0.1) else key)
        if chance(rnd, 0.35):
            key += rnd.choice(RANGES) + draw_key(rnd, container, world.version)
    if not chance(rnd, prefixed):
        return key
    name = draw_name(rnd, world, container)
    between = world.delimiter
    form = weighted(rnd, _FORMS)
    if form == "bare":
        return b"@@" + name
    if form == "no key":
        return b"@@" + name + between
    if form == "wrong delimiter":
        return b"@@" + name + rnd.choice([between[:1], between[-1:], between[::-1], b".", b":", b""]) + key
    if form == "doubled":
        return b"@@" + name + between * 2 + key
    if form == "in front":
        return b"@@" + between + name + between + key
    if form == "two":
        return b"@@" + name + between + b"@@" + draw_name(rnd, world, container) + between + key
    return b"@" * (1 if form == "one mark" else 2) + name + between + key


def draw_name(rnd: Random, world: World, container: Container) -> bytes:
    """Draw the name of a mapping: the one meant, in another case, of a wrong row, or of none."""
    form = weighted(rnd, {"meant": 10.0, "other case": 0.7, "any row": 1.2, "none": 0.5})
    name = container.name
    if form == "other case":
        name = name.swapcase()
    elif form == "any row":
        name = rnd.choice(world.containers).name
    elif form == "none":
        name = rnd.choice(["nope", name + "x", name[:-1], "@" + name, "default", ""])
    return name.encode()


def draw_value(rnd: Random, world: World, container: Container) -> bytes:
    """Draw a value: a part for each column, more, fewer, with separators where they are not meant, or anything."""
    columns = container.values
    if len(columns) < 2:
        return _part(rnd, columns[0] if columns else None)
    count = max(1, len(columns) + weighted(rnd, {0: 7.0, -1: 1, 1: 1, 2: 0.3}))
    parts = [_part(rnd, columns[min(n, len(columns) - 1)]) for n in range(count)]
    value = world.separator.join(b"" if chance(rnd, 0.1) else part for part in parts)
    if chance(rnd, 0.06):
        value = rnd.choice([world.separator, world.separator[:1], world.separator[-1:]]) + value
    if chance(rnd, 0.06):
        value += rnd.choice([world.separator, world.separator * 2, world.separator[:1]])
    return value


def _part(rnd: Random, column: Column | None) -> bytes:
    if column is not None and column.kind == "integer" and not chance(rnd, 0.15):
        low, high = column.limits
        return rnd.choice([*NUMBER_KEYS, *(b"%d" % number for number in (low, high, low - 1, high + 1, 1, 5, 9, 99))])
    if column is not None and column.width is not None and chance(rnd, 0.15):
        letter = rnd.choice([b"z", b"z", b"\xc3\xa9", b"\xe9", b"\xf0\x9f\x98\x80"])
        return letter * max(0, column.width + rnd.choice([-1, 0, 1, 2]))
    return rnd.choice(VALUES)
