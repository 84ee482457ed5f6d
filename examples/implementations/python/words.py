"""Words of a request line: numbers, mapping switches and ranges."""

import re
from dataclasses import dataclass

WHITE = b"\t\v\f\r"
NUMBER = re.compile(rb"[\t\v\f\r]*([+-]?[0-9]+)(?:[\t\v\f\r].*)?", re.DOTALL)
U64 = 1 << 64
KEY_MAX = 250


def number(word: bytes) -> int | None:
    """Read a number of the grammar; None is not a number."""
    match = NUMBER.fullmatch(word)
    if match is not None:
        return int(match[1]) if len(match[1]) < 400 else U64 * U64
    return 0 if word[:1] and word[:1] in WHITE else None


def unsigned(word: bytes) -> int | None:
    """Read an unsigned number of 64 bits; a negative number below -2^63 is read modulo 2^64."""
    value = number(word)
    if value is None:
        return None
    if 0 <= value < U64:
        return value
    if -U64 < value < -(1 << 63):
        return value + U64
    return None


def signed(word: bytes) -> int | None:
    """Read a signed number of 64 bits."""
    value = number(word)
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def low32(value: int) -> int:
    """Read the low 32 bits of a number as a signed number."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def flags_of(word: bytes) -> int | None:
    """Read the flags of a storage line."""
    value = unsigned(word)
    return value if value is not None and value < 1 << 32 else None


def length_of(word: bytes) -> int | None:
    """Read the length of a data block."""
    value = number(word)
    return value if value is not None and 0 <= value <= 2147483645 else None


@dataclass(frozen=True)
class Switch:
    """A word that begins with `@@`: a name, and a key if a delimiter follows."""

    name: bytes
    key: bytes | None


def switch_of(word: bytes, delimiter: bytes) -> Switch | None:
    """Split an `@@` word; any other word is a key."""
    if not word.startswith(b"@@") or len(word) == 2:
        return None
    name, found, key = word[2:].partition(delimiter)
    return Switch(name, key if found else None)


@dataclass(frozen=True)
class Range:
    """Bounds of a range get, each with the mark that it is included."""

    low: tuple[bytes, bool] | None
    high: tuple[bytes, bool] | None


def _bound(text: bytes) -> tuple[bytes, bool]:
    """Read a bound behind its mark."""
    return (text[1:], True) if text.startswith(b"=") else (text, False)


def range_of(word: bytes) -> Range | None:
    """Read a word that begins with `@>` or `@<`."""
    for mark, other in ((b"@>", b"@<"), (b"@<", b"@>")):
        if word.startswith(mark):
            first, found, second = word[2:].partition(other)
            mine = _bound(first)
            yours = _bound(second) if found else None
            return Range(mine, yours) if mark == b"@>" else Range(yours, mine)
    return None
