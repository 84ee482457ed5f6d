"""Content that SQL shows otherwise than the plugin's wire: one pair of functions for each, between the two.

The SQL side is what MySQL's SQL shows: text is text whatever its character set, CHAR is without padding, YEAR a year,
ENUM its member. Where SQLite cannot hold that, bytes stand for it: a BIGINT UNSIGNED above 2^63-1, and the number of
no member of an ENUM or SET, is a BLOB of its 20 decimal digits (BLOBs sort behind numbers and among themselves as the
numbers do); what a client stored as raw bytes in a column of `store.storage_types` is a BLOB of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from kvref.collations.charsets import Charset
from kvref.engine.mapping import ColumnCodec
from kvref.engine.operations import Cell

LARGEST_INTEGER: Final = (1 << 63) - 1
_DIGITS_OF_NINE: Final = 9
# Bytes of a DECIMAL for each number of digits up to nine (MySQL's decimal2bin, as seen in columns:type-132).
_DECIMAL_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def _same(cell: Cell) -> Cell:
    return cell


def text(charset: Charset, padding: int) -> ColumnCodec | None:
    """Return the form of a text column, None where cells are what SQL shows; `padding`: bytes of CHAR on the wire."""
    space = charset.encode(" ")

    def to_sql(cell: str | bytes) -> str | bytes:
        shown = cell
        if isinstance(cell, bytes) and charset.unit:
            try:
                shown = charset.decode(cell)
            except UnicodeDecodeError:
                return cell
        if not padding:
            return shown
        return shown.rstrip(" ") if isinstance(shown, str) else shown.rstrip(b" ")  # bytes: UTF-8 with surrogates

    def from_sql(cell: Cell) -> Cell:
        data = charset.encode(cell) if isinstance(cell, str) else cell
        if not isinstance(data, bytes):
            return cell
        padded = data + space * ((padding - len(data)) // len(space))
        return padded if charset.unit or isinstance(cell, bytes) else padded.decode("utf-8", "surrogateescape")

    return ColumnCodec(to_sql, from_sql, pads=bool(padding)) if charset.unit or padding else None


def _digits(number: int) -> bytes:
    return b"%020d" % number


def _number(digits: bytes) -> int:
    return int(digits) if digits.isdigit() else 0


def _from_unsigned(cell: Cell) -> Cell:
    if isinstance(cell, bytes) and cell.isdigit():
        return int(cell)
    # SQL wrote a number that SQLite took for a real one: its digits are lost.
    return min(int(cell), (1 << 64) - 1) if isinstance(cell, float) else cell


UNSIGNED: Final = ColumnCodec(lambda cell: cell if cell <= LARGEST_INTEGER else _digits(cell), _from_unsigned)
# InnoDB keeps a year as one byte: 0, or years from 1900 (columns:type-047, columns:type-137).
YEAR: Final = ColumnCodec(
    lambda n: n + 1900 if n else 0, lambda cell: cell - 1900 if isinstance(cell, int) and cell else 0
)
# 8.0 cannot read integers of three bytes (columns:type-116, columns:type-133).
READS_ZERO: Final = ColumnCodec(_same, lambda _: 0)


def enum(members: Sequence[str]) -> ColumnCodec:
    """Return the form of ENUM: the wire has the number of the member, from 1; 0 is the empty text (type-140)."""
    labels = ("", *members)
    numbers = {member: number for number, member in enumerate(labels)}
    return ColumnCodec(
        lambda number: labels[number] if number <= len(members) else _digits(number),
        lambda cell: _number(cell) if isinstance(cell, bytes) else numbers.get(str(cell), 0),
    )


def bit_set(members: Sequence[str]) -> ColumnCodec:
    """Return the form of SET: the wire has the sum of the members' bits (columns:type-141)."""
    bits = {member: 1 << number for number, member in enumerate(members)}

    def to_sql(number: int) -> Cell:
        named = [member for member, bit in bits.items() if number & bit]
        return ",".join(named) if number < 1 << len(members) else _digits(number)

    def from_sql(cell: Cell) -> Cell:
        return _number(cell) if isinstance(cell, bytes) else sum(bits.get(member, 0) for member in str(cell).split(","))

    return ColumnCodec(to_sql, from_sql)


def raw(stored: Callable[[str], bytes], width: int) -> ColumnCodec:
    """Return the form of a type that the plugin does not convert: `width` bytes, which `stored` makes of SQL's text."""
    return ColumnCodec(_same, lambda cell: _raw(cell, stored, width))


def _raw(cell: Any, stored: Callable[[str], bytes], width: int) -> bytes:
    if isinstance(cell, bytes):
        return cell.ljust(width, b"\0")
    try:
        return stored(str(cell)).ljust(width, b"\0")
    except (ValueError, ArithmeticError):
        return str(cell).encode("utf-8", "replace")[:width].ljust(width, b"\0")  # SQLite let SQL write any text


def floating(code: str) -> Callable[[str], bytes]:
    """Return the storage of FLOAT ("f") or DOUBLE ("d"): little-endian IEEE 754 (type-130, type-131)."""
    return lambda shown: struct.pack(f"<{code}", float(shown))


def decimal(precision: int, scale: int) -> Callable[[str], bytes]:
    """Return the storage of DECIMAL: groups of nine digits, big-endian, the sign bit turned over (columns:type-132)."""

    def stored(shown: str) -> bytes:
        number = Decimal(shown)
        digits = f"{number.copy_abs():0{precision + 1}.{scale}f}".replace(".", "").rjust(precision, "0")[-precision:]
        whole, fraction = digits[: precision - scale], digits[precision - scale :]
        head = len(whole) % _DIGITS_OF_NINE
        groups = [whole[:head], *_nines(whole[head:]), *_nines(fraction)]
        data = bytearray(b"".join(int(g or "0").to_bytes(_DECIMAL_BYTES[len(g)], "big") for g in groups))
        if number < 0:
            data = bytearray(byte ^ 0xFF for byte in data)
        data[0] ^= 0x80
        return bytes(data)

    return stored


def _nines(digits: str) -> list[str]:
    return [digits[start : start + _DIGITS_OF_NINE] for start in range(0, len(digits), _DIGITS_OF_NINE)]


def decimal_width(precision: int, scale: int) -> int:
    return sum(digits // 9 * 4 + _DECIMAL_BYTES[digits % 9] for digits in (precision - scale, scale))


def date_time(fraction: int) -> Callable[[str], bytes]:
    """Return the storage of DATETIME(n): year and month, day, hour, minute, second packed in 40 bits (type-134)."""

    def stored(shown: str) -> bytes:
        moment = datetime.fromisoformat(shown)
        days = (moment.year * 13 + moment.month) << 5 | moment.day
        packed = days << 17 | moment.hour << 12 | moment.minute << 6 | moment.second
        return ((1 << 39) + packed).to_bytes(5, "big") + _fraction(moment.microsecond, fraction)

    return stored


def timestamp(fraction: int) -> Callable[[str], bytes]:
    """Return the storage of TIMESTAMP(n): UNIX time; SQL's text is taken for UTC (columns:type-135)."""

    def stored(shown: str) -> bytes:
        moment = datetime.fromisoformat(shown).replace(tzinfo=UTC)
        return int(moment.timestamp()).to_bytes(4, "big") + _fraction(moment.microsecond, fraction)

    return stored


def time(fraction: int) -> Callable[[str], bytes]:
    """Return the storage of TIME(n): hours, minutes, seconds packed in 24 bits, negative ones subtracted (type-136)."""

    def stored(shown: str) -> bytes:
        hours, minutes, seconds = shown.lstrip("-").split(":")
        whole, _, decimals = seconds.partition(".")
        packed = int(hours) << 12 | int(minutes) << 6 | int(whole)
        width = (fraction + 1) // 2
        part = int.from_bytes(_fraction(int(decimals.ljust(6, "0")[:6]), fraction), "big")
        number = packed << 8 * width | part
        middle = 1 << 8 * width + 23
        return (middle - number if shown.startswith("-") else middle + number).to_bytes(3 + width, "big")

    return stored


def _fraction(microseconds: int, digits: int) -> bytes:
    width = (digits + 1) // 2
    unit: int = 10 ** (6 - 2 * width)
    return (microseconds // unit).to_bytes(width, "big")


def bits(width: int) -> Callable[[str], bytes]:
    """Return the storage of BIT(n), `width` bytes: the number, big-endian."""
    return lambda shown: int(shown).to_bytes(width, "big")
