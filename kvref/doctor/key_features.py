"""Features of the row and of the key column; each predicate yields the names that have it, in words of the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kvref import collations
from kvref.doctor.subject import INTEGERS, Subject
from kvref.engine.mapping import Kind

LONGEST_KEY: Final = 250  # bytes
UNICODE: Final = ("utf8mb4", "utf8mb3", "utf8")
Predicate = Callable[[Subject], Iterable[str]]


def key_when(test: Callable[[Subject], object]) -> Predicate:
    """Return a predicate that yields the key column where the test holds."""
    return lambda subject: [subject.key.name] if test(subject) else []


def row_when(test: Callable[[Subject], object]) -> Predicate:
    """Return a predicate that yields the row's name where the test holds."""
    return lambda subject: [subject.row.name] if test(subject) else []


def is_text(subject: Subject) -> bool:
    """Tell whether the key is text."""
    return subject.mapping.key.kind is Kind.TEXT


def ignores_case(collation: str) -> bool:
    """Tell whether a collation holds letters of different case equal; SQLite's NOCASE does so for ASCII."""
    known = collations.COLLATIONS.get(collation.lower())
    if known is not None:
        return collations.order(known).compare("a", "A") == 0
    return collation.lower() == "nocase" or collation.lower().endswith("_ci")


def ignores_accents(collation: str) -> bool:
    """Tell whether a collation holds accented letters equal to plain ones."""
    known = collations.COLLATIONS.get(collation.lower())
    return known is not None and collations.order(known).compare("e", "é") == 0


def expands(collation: str) -> bool:
    """Tell whether a collation holds one letter equal to two."""
    known = collations.COLLATIONS.get(collation.lower())
    return known is not None and collations.order(known).compare("ss", "ß") == 0


def pads(collation: str) -> bool:
    """Tell whether trailing blanks do not matter to a collation."""
    known = collations.COLLATIONS.get(collation.lower())
    return known is not None and known.pads


def _file_name(subject: Subject) -> bool:
    names = f"{subject.row.db_schema}{subject.row.db_table}"
    return any(letter in names for letter in "@/\\")


def _integer(subject: Subject) -> bool:
    return subject.key.word in INTEGERS


def _secondary(subject: Subject) -> bool:
    return (subject.row.unique_idx_name_on_key or "").lower() != "primary"


def _beside_primary(subject: Subject) -> bool:
    return _secondary(subject) and "PRIMARY" in subject.table.unique and subject.mapping.secondary


def _two_indexes(subject: Subject) -> bool:
    own = (subject.mapping.key.name,)
    return sum(columns == own for columns in subject.table.unique.values()) > 1


def _holds_delimiter(subject: Subject) -> bool:
    return any(byte in subject.delimiter for byte in subject.row.name.encode())


def _twice(subject: Subject) -> list[str]:
    named = [column.name for column in subject.mapping.values]
    return sorted({name for name in named if named.count(name) > 1})


def _narrow(subject: Subject) -> bool:
    width = subject.mapping.key.width
    return is_text(subject) and width is not None and width < LONGEST_KEY


KEYS: Final[dict[str, Predicate]] = {
    "name-of-one-letter": row_when(lambda s: len(s.row.name) == 1),
    "name-with-blank": row_when(lambda s: " " in s.row.name),
    "name-with-delimiter": row_when(_holds_delimiter),
    "name-empty": row_when(lambda s: not s.row.name),
    "name-with-at-signs": row_when(lambda s: s.row.name.startswith("@@")),
    "table-named-as-file": lambda s: [f"{s.row.db_schema}.{s.row.db_table}"] if _file_name(s) else [],
    "text-key": key_when(is_text),
    "narrow-key": key_when(_narrow),
    "wide-key": key_when(lambda s: is_text(s) and not _narrow(s)),
    "unicode-key": key_when(lambda s: is_text(s) and s.mapping.key.charset.name in UNICODE),
    "key-not-utf8": key_when(lambda s: is_text(s) and s.mapping.key.charset.name not in UNICODE),
    "latin1-key": key_when(lambda s: is_text(s) and s.mapping.key.charset.name == "latin1"),
    "ucs2-key": key_when(lambda s: is_text(s) and s.mapping.key.charset.name == "ucs2"),
    "key-ignores-case": key_when(lambda s: is_text(s) and ignores_case(s.key.collation)),
    "key-minds-case": key_when(lambda s: is_text(s) and not ignores_case(s.key.collation)),
    "key-ignores-accents": key_when(lambda s: is_text(s) and ignores_accents(s.key.collation)),
    "key-expands": key_when(lambda s: is_text(s) and expands(s.key.collation)),
    "key-ignores-trailing-blanks": key_when(lambda s: is_text(s) and pads(s.key.collation)),
    "char-key": key_when(lambda s: s.key.word in ("CHAR", "CHARACTER")),
    "integer-key": key_when(_integer),
    "unsigned-bigint-key": key_when(lambda s: s.key.word == "BIGINT" and s.key.unsigned),
    "three-byte-key": key_when(lambda s: s.key.word in ("MEDIUMINT", "DATE")),
    "year-key": key_when(lambda s: s.key.word == "YEAR"),
    "enum-key": key_when(lambda s: s.key.word == "ENUM"),
    "nullable-integer-key": key_when(lambda s: _integer(s) and s.key.nullable),
    "nullable-unsigned-key": key_when(lambda s: _integer(s) and s.key.nullable and s.key.unsigned),
    "auto-increment-key": key_when(lambda s: s.key.auto_increment),
    "secondary-index": lambda s: [s.row.unique_idx_name_on_key or ""] if _secondary(s) else [],
    "no-primary-key": lambda s: [s.mapping.source] if _secondary(s) and "PRIMARY" not in s.table.unique else [],
    "primary-key-beside": lambda s: [".".join(s.table.unique["PRIMARY"])] if _beside_primary(s) else [],
    "two-indexes-on-key": key_when(_two_indexes),
    "composite-primary-key": key_when(lambda s: s.mapping.blind),
    "key-among-values": key_when(lambda s: s.mapping.key in s.mapping.values),
    "value-named-twice": _twice,
}
