"""Decimal numbers as the daemon reads them: C's strtol family with its checks (memcached util.c, safe_strto*)."""

from __future__ import annotations

import re
from typing import Final

# A conversion is accepted when it ends at the end of the word or at white space. A word that begins with
# white space and has no digits behind it is 0.
_NUMBER: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]+)(?=[ \t\n\v\f\r]|\Z)")
_LEADING: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_BLANK: Final = b" \t\n\v\f\r"


def signed(word: bytes) -> int | None:
    """Read a signed 64-bit number; None when the word is none (safe_strtol)."""
    value = _decimal(word)
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def unsigned(word: bytes) -> int | None:
    """Read an unsigned 64-bit number; None when the word is none or negative (safe_strtoull).

    A negative number is refused only where its 64-bit form has the top bit set, as in C.
    """
    value = _decimal(word)
    if value is None or abs(value) >= 1 << 64:
        return None
    wrapped = value % (1 << 64)
    return None if b"-" in word and wrapped >= 1 << 63 else wrapped


def fits_64_bits(word: bytes) -> bool:
    """Return whether the number in front of a word, if any, is one that strtol can return."""
    match = _LEADING.match(word)
    return match is None or -(1 << 63) <= _long(match[1]) < 1 << 63


def low_32_signed(value: int) -> int:
    """Return the low 32 bits as a signed number."""
    return ((value + (1 << 31)) % (1 << 32)) - (1 << 31)


def _decimal(word: bytes) -> int | None:
    match = _NUMBER.match(word)
    if match is None:
        return 0 if word[:1] and word[:1] in _BLANK and not _LEADING.match(word) else None
    # Python refuses to convert more than 4300 digits; more than 25 are out of range for every field.
    digits = match[1]
    return int(digits) if len(digits) <= 25 else _long(digits)


def _long(digits: bytes) -> int:
    sign = -1 if digits[:1] == b"-" else 1
    significant = digits.lstrip(b"+-").lstrip(b"0")
    return sign * (int(significant or b"0") if len(significant) <= 25 else 1 << 80)
