"""Declared types of columns, as MySQL spells them, to mapped columns: tables, and one function for each kind.

SQLite's grammar takes no list in a type: `v "ENUM('x','y')"` is written in quotes. INTEGER is SQLite's, 64 bits wide;
MySQL's own is INT. A column's character set is that of its collation where that is one of MySQL's, else the
profile's default.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvref import collations
from kvref.collations.charsets import CHARSETS, Charset
from kvref.engine.mapping import Column, Kind
from kvref.profiles import Profile
from kvref.storage.config import codecs

_DECLARED: Final = re.compile(
    r"\s*([A-Z]\w*(?:\s+[A-Z]\w*)*?)\s*(?:\((.*)\))?((?:\s+(?:UNSIGNED|SIGNED|ZEROFILL))*)\s*", re.IGNORECASE
)
# Types whose arguments are texts; those of the others are lengths, of which MySQL's largest has ten digits.
_LISTS: Final = frozenset({"ENUM", "SET"})
_NUMBERS: Final = re.compile(r"\s*(?:\d{1,10}\s*(?:,\s*\d{1,10}\s*)?)?", re.ASCII)
_MEMBER: Final = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared type in its parts, and the rules of a profile for types.

    Args:
        name, charset: of the column.
        word: the type's name in upper case.
        arguments: the text in the parentheses.
        unsigned: UNSIGNED or ZEROFILL follows the type.
        pads: the wire shows CHAR and BINARY padded.
        raw: what the plugin does not convert has InnoDB's storage form on the wire.
    """

    name: str
    word: str
    arguments: str
    unsigned: bool
    charset: Charset
    pads: bool
    raw: bool

    def number(self, position: int, missing: int) -> int:
        given = self.arguments.split(",")
        return int(given[position]) if position < len(given) and given[position].strip() else missing

    @property
    def members(self) -> list[str]:
        return members(self.arguments)


def members(arguments: str) -> list[str]:
    """Return the members of an ENUM or SET by what is in the parentheses of its type."""
    return [member.replace("''", "'") for member in _MEMBER.findall(arguments)]


def column_of(
    name: str, declared: str, collation: str, profile: Profile, charset: Charset | None = None
) -> Column | None:
    """Return the column of a declared type, or None if no mapping can use the type.

    The collation is SQLite's name; the character set is that of the collation unless the store reports one.
    """
    match = _DECLARED.fullmatch(declared)
    if match is None:
        return None
    word = " ".join(match[1].upper().split())
    raw = profile["store.storage_types"] == "raw"
    make = _KINDS.get(word) or (_RAW_KINDS.get(word) if raw else None)
    if make is None or not (word in _LISTS or _NUMBERS.fullmatch(match[2] or "")):
        return None
    return make(
        Declared(
            name,
            word,
            match[2] or "",
            unsigned=match[3].upper().strip() not in ("", "SIGNED"),
            charset=charset or CHARSETS[collations.charset_of(collation) or str(profile["store.default_charset"])],
            pads=profile["store.char_padding"] == "shown",
            raw=raw,
        )
    )


_BITS: Final = {
    "TINYINT": 8, "BOOL": 8, "BOOLEAN": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "INTEGER": 64, "BIGINT": 64,
}  # fmt: skip


def _integer(declared: Declared) -> Column:
    bits = _BITS[declared.word]
    codec = codecs.UNSIGNED if bits == 64 and declared.unsigned else None
    if bits == 24 and declared.raw:
        codec = codecs.READS_ZERO
    low, high = (0, (1 << bits) - 1) if declared.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return Column(declared.name, Kind.INTEGER, low=low, high=high, codec=codec)


_DEFAULT: Final = re.compile(r"'?(-?\d{1,20})'?", re.ASCII)


def as_bigint(declared: str, default: str | None, *, nullable: bool) -> str:
    """Return the definition of a column that becomes a BIGINT, for an ALTER TABLE of MySQL; see `constraints`.

    An integer column keeps its sign, since its numbers may be negative.
    """
    match = _DECLARED.fullmatch(declared)
    signed = match is not None and match[1].upper() in _BITS and match[3].upper().strip() in ("", "SIGNED")
    return f"BIGINT{'' if signed else ' UNSIGNED'}{constraints(default, nullable=nullable)}"


def constraints(default: str | None, *, nullable: bool) -> str:
    """Return NOT NULL and DEFAULT of a column, if that is a number as the store shows it, as they follow its type."""
    number = _DEFAULT.fullmatch(default or "")
    return ("" if nullable else " NOT NULL") + (f" DEFAULT {number[1]}" if number else "")


def _date(declared: Declared) -> Column:
    # To InnoDB an integer of three bytes (columns:type-133).
    return Column(declared.name, Kind.INTEGER, high=(1 << 24) - 1, codec=codecs.READS_ZERO)


def _year(declared: Declared) -> Column:
    if declared.raw:
        return Column(declared.name, Kind.INTEGER, high=255, codec=codecs.YEAR)
    return Column(declared.name, Kind.INTEGER, low=1901, high=2155)


def _enum(declared: Declared) -> Column:
    # The wire has the member's number; the plugin takes any number of the same byte or two (type-020, type-140).
    high = 0xFF if len(declared.members) <= 0xFF else 0xFFFF
    return Column(declared.name, Kind.INTEGER, high=high, codec=codecs.enum(declared.members))


def _set(declared: Declared) -> Column:
    size = next(size for size in (1, 2, 3, 4, 8) if len(declared.members) <= 8 * size)
    return Column(declared.name, Kind.INTEGER, high=(1 << 8 * size) - 1, codec=codecs.bit_set(declared.members))


def _characters(declared: Declared) -> Column:
    fixed = "VAR" not in declared.word
    characters, charset = declared.number(0, 1 if fixed else 0), declared.charset
    codec = codecs.text(charset, characters * charset.room if fixed and declared.pads else 0)
    bounded = fixed or bool(declared.arguments)  # SQLite takes VARCHAR without a width
    width = characters * (1 if charset.varies else charset.unit or 1) if bounded else None
    return Column(declared.name, Kind.TEXT, width, cuts=True, charset=declared.charset, codec=codec)


# Longest content in bytes of MySQL's types without a declared width.
_LIMITS: Final = {"TINY": 255, "": 65535, "MEDIUM": (1 << 24) - 1, "LONG": (1 << 32) - 1}


def _text(declared: Declared) -> Column:
    width = declared.number(0, _LIMITS[declared.word.removesuffix("TEXT")])
    codec = codecs.text(declared.charset, 0)
    return Column(declared.name, Kind.TEXT, width, counts_bytes=True, charset=declared.charset, codec=codec)


def _blob(declared: Declared) -> Column:
    width = declared.number(0, _LIMITS[declared.word.removesuffix("BLOB")])
    return Column(declared.name, Kind.BYTES, width, counts_bytes=True)


def _binary(declared: Declared) -> Column:
    fixed = declared.word == "BINARY"
    width = declared.number(0, 1 if fixed else 0) or None
    padded = bool(width) and fixed and declared.pads
    codec = codecs.raw(str.encode, width or 0) if padded else None  # SQLite lets SQL write shorter content
    return Column(
        declared.name, Kind.BYTES, width, counts_bytes=True, cuts=True, fixed=padded, indexable=not fixed, codec=codec
    )


def _stored(width: Callable[[Declared], int], stored: Callable[[Declared], Callable[[str], bytes]]) -> _Maker:
    """Make a column of a type that the plugin does not convert: a number of bytes, and what SQL's text becomes."""

    def make(declared: Declared) -> Column:
        size = width(declared)
        codec = codecs.raw(stored(declared), size)
        return Column(declared.name, Kind.BYTES, size, counts_bytes=True, cuts=True, fixed=True, codec=codec)

    return make


def _floating(declared: Declared) -> Column:
    # FLOAT(p) with more than 24 bits is a DOUBLE; FLOAT(m,d) is not.
    single = declared.word == "FLOAT" and ("," in declared.arguments or declared.number(0, 0) <= 24)
    size, code = (4, "f") if single else (8, "d")
    codec = codecs.raw(codecs.floating(code), size)
    return Column(declared.name, Kind.BYTES, size, counts_bytes=True, exact=True, codec=codec)


def _opaque(declared: Declared) -> Column:
    # A BLOB to InnoDB; what SQL wrote is shown as its text, not in MySQL's binary form.
    return Column(declared.name, Kind.BYTES)


def _fraction_bytes(declared: Declared) -> int:
    return (declared.number(0, 0) + 1) // 2


_decimal = _stored(
    lambda d: codecs.decimal_width(d.number(0, 10), d.number(1, 0)),
    lambda d: codecs.decimal(d.number(0, 10), d.number(1, 0)),
)
_Maker = Callable[[Declared], Column]
_KINDS: Final[dict[str, _Maker]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(("CHAR", "CHARACTER", "VARCHAR", "CHARACTER VARYING", "CHAR VARYING"), _characters),
    **{f"{size}TEXT": _text for size in _LIMITS},
    **{f"{size}BLOB": _blob for size in _LIMITS},
    **dict.fromkeys(("BINARY", "VARBINARY"), _binary),
    "YEAR": _year,
}
# Types that the plugin does not convert.
_RAW_KINDS: Final[dict[str, _Maker]] = {
    **dict.fromkeys(("DECIMAL", "NUMERIC", "DEC", "FIXED"), _decimal),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DOUBLE PRECISION", "REAL"), _floating),
    **dict.fromkeys(
        ("JSON", "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "GEOMETRYCOLLECTION"), _opaque
    ),
    "ENUM": _enum,
    "SET": _set,
    "DATE": _date,
    "DATETIME": _stored(lambda d: 5 + _fraction_bytes(d), lambda d: codecs.date_time(d.number(0, 0))),
    "TIMESTAMP": _stored(lambda d: 4 + _fraction_bytes(d), lambda d: codecs.timestamp(d.number(0, 0))),
    "TIME": _stored(lambda d: 3 + _fraction_bytes(d), lambda d: codecs.time(d.number(0, 0))),
    "BIT": _stored(lambda d: (d.number(0, 1) + 7) // 8, lambda d: codecs.bits((d.number(0, 1) + 7) // 8)),
}
