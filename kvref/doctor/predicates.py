"""Features of a mapping: of its row, key, values and table; each predicate yields the names that have it.

Names are in words of the row. What acts on writes outside the mapped columns are features of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref import collations
from kvref.engine.mapping import Column, Kind
from kvref.protocol.rules import MAX_KEY
from kvref.storage.config.containers import ColumnDetails, repeats

if TYPE_CHECKING:
    from kvref.engine.mapping import Mapping
    from kvref.storage.config.containers import Container, Table, TableDetails

INTEGERS: Final = frozenset({"TINYINT", "BOOL", "BOOLEAN", "SMALLINT", "INT", "INTEGER", "BIGINT"})
TEXTS: Final = frozenset({"CHAR", "CHARACTER", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"})


@dataclass(frozen=True, slots=True)
class Subject:
    """A mapping.

    Args:
        row: of `containers`.
        mapping: what the row makes.
        table: as the catalog sees it.
        details: of the table.
        delimiter: in force.
        separator: in force.
        others: the other rows that map the same table.
    """

    row: Container
    mapping: Mapping
    table: Table
    details: TableDetails
    delimiter: bytes
    separator: bytes
    others: tuple[Container, ...]

    @property
    def key(self) -> ColumnDetails:
        """The key column."""
        return self.of(self.mapping.key)

    @property
    def values(self) -> list[ColumnDetails]:
        """The value columns, in the order of the list."""
        return [self.of(column) for column in self.mapping.values]

    @property
    def several(self) -> bool:
        """Return whether there is more than one value column."""
        return len(self.mapping.values) > 1

    @property
    def extras(self) -> dict[str, ColumnDetails]:
        """The columns for flags, cas and expiry that are in use, by their use."""
        mapping = self.mapping
        used = {"flags": mapping.flags, "cas": mapping.cas, "expiry": mapping.expiry}
        return {use: self.of(column) for use, column in used.items() if column is not None}

    @property
    def named(self) -> dict[str, str | None]:
        """What the row says of flags, cas and expiry, by their use."""
        return {"flags": self.row.flags, "cas": self.row.cas_column, "expiry": self.row.expire_time_column}

    @property
    def unmapped(self) -> list[ColumnDetails]:
        """The table's other columns, but for generated ones."""
        return [self.details.columns.get(name) or ColumnDetails(name, "") for name in self.mapping.unmapped]

    def of(self, column: Column) -> ColumnDetails:
        """Return what is known of a mapped column."""
        return self.details.columns.get(column.name) or ColumnDetails(column.name, "")

    def values_of(self, *words: str) -> Iterator[str]:
        """Yield the names of value columns of these types."""
        return (each.name for each in self.values if each.word in words)


UNICODE: Final = ("utf8mb4", "utf8mb3", "utf8")
Predicate = Callable[[Subject], Iterable[str]]


def key_when(test: Callable[[Subject], object]) -> Predicate:
    """Return a predicate that yields the key column where the test holds."""
    return lambda subject: [subject.key.name] if test(subject) else []


def row_when(test: Callable[[Subject], object]) -> Predicate:
    """Return a predicate that yields the row's name where the test holds."""
    return lambda subject: [subject.row.name] if test(subject) else []


def is_text(subject: Subject) -> bool:
    """Return whether the key is text."""
    return subject.mapping.key.kind is Kind.TEXT


def ignores_case(collation: str) -> bool:
    """Return whether a collation holds letters of different case equal; SQLite's NOCASE does so for ASCII."""
    known = collations.COLLATIONS.get(collation.lower())
    if known is not None:
        return collations.order(known).compare("a", "A") == 0
    return collation.lower() == "nocase" or collation.lower().endswith("_ci")


def ignores_accents(collation: str) -> bool:
    """Return whether a collation holds accented letters equal to plain ones."""
    known = collations.COLLATIONS.get(collation.lower())
    return known is not None and collations.order(known).compare("e", "é") == 0


def expands(collation: str) -> bool:
    """Return whether a collation holds one letter equal to two."""
    known = collations.COLLATIONS.get(collation.lower())
    return known is not None and collations.order(known).compare("ss", "ß") == 0


def pads(collation: str) -> bool:
    """Return whether trailing blanks do not matter to a collation."""
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
    return is_text(subject) and width is not None and width < MAX_KEY


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


def _nullable(subject: Subject) -> list[str]:
    return [column.name for column in subject.unmapped if column.nullable]


def _without_value(subject: Subject) -> list[str]:
    columns = (column for column in subject.unmapped if not column.nullable and not column.default)
    return [column.name for column in columns if not column.auto_increment and not column.generated]


def _not_null(subject: Subject) -> list[str]:
    return [column.name for column in subject.unmapped if not column.nullable]


def _generated(subject: Subject, kind: str) -> list[str]:
    return [column.name for column in subject.details.columns.values() if column.generated == kind]


def _by_another_key(subject: Subject) -> list[str]:
    own = (subject.row.unique_idx_name_on_key or "").lower()
    return [row.name for row in subject.others if (row.unique_idx_name_on_key or "").lower() != own]


def _is_configuration(subject: Subject) -> bool:
    named = (subject.row.db_schema or "").lower(), (subject.row.db_table or "").lower()
    return named == ("innodb_memcache", "containers")


TABLES: Final[dict[str, Predicate]] = {
    "unmapped-nullable": _nullable,
    "unmapped-with-default": lambda s: [c.name for c in s.unmapped if c.default],
    "unmapped-not-null": _not_null,
    "unmapped-without-value": _without_value,
    "unmapped-not-null-with-default": lambda s: [c.name for c in s.unmapped if not c.nullable and c.default],
    "virtual-column": lambda s: _generated(s, "virtual"),
    "triggers": lambda s: s.details.triggers,
    "checks": lambda s: s.details.checks,
    "fulltext": lambda s: s.details.fulltext,
    "refers-to-others": lambda s: s.details.refers_to,
    "others-refer-to-it": lambda s: s.details.referred_by,
    "others-cascade": lambda s: s.details.cascading,
    "table-mapped-again": lambda s: [row.name for row in s.others],
    "table-mapped-by-another-key": _by_another_key,
    "maps-the-configuration": lambda s: [s.mapping.source] if _is_configuration(s) else [],
    "maps-the-system": lambda s: [s.mapping.source] if (s.row.db_schema or "").lower() == "mysql" else [],
}


_WIDE: Final = frozenset({"BIGINT"})
_NARROW: Final = frozenset({"TINYINT", "BOOL", "BOOLEAN", "SMALLINT"})


def each_value(test: Callable[[ColumnDetails], object]) -> Predicate:
    """Return a predicate that yields the value columns for which the test holds."""
    return lambda subject: [each.name for each in subject.values if test(each)]


def of_type(*words: str) -> Predicate:
    """Return a predicate that yields the value columns of these types."""
    return lambda subject: subject.values_of(*words)


def when_several(test: Callable[[Subject], object]) -> Predicate:
    """Return a predicate that yields the value columns where there are several and the test holds."""
    return lambda s: [column.name for column in s.mapping.values] if s.several and test(s) else []


def when_single(test: Callable[[Subject], object]) -> Predicate:
    """Return a predicate that yields the value column where there is one only and the test holds."""
    return lambda s: [s.mapping.values[0].name] if not s.several and test(s) else []


def use(name: str, test: Callable[[ColumnDetails], object] = bool) -> Predicate:
    """Return a predicate that yields the column in use for flags, cas or expiry where the test holds."""

    def predicate(subject: Subject) -> list[str]:
        column = subject.extras.get(name)
        return [column.name] if column is not None and test(column) else []

    return predicate


def unused(name: str) -> Predicate:
    """Return a predicate that yields what the row says where flags, cas or expiry are not in use."""
    return lambda s: [] if name in s.extras else [s.named[name] or "NULL"]


def any_use(test: Callable[[ColumnDetails], object]) -> Predicate:
    """Return a predicate that yields the columns for flags, cas and expiry for which the test holds."""
    return lambda s: [column.name for column in s.extras.values() if test(column)]


def _text_values(subject: Subject, charsets: Callable[[str], bool]) -> Iterable[str]:
    return [
        column.name
        for column in subject.mapping.values
        if column.kind is Kind.TEXT and subject.of(column).word in TEXTS and charsets(column.charset.name)
    ]


def _named_nowhere(subject: Subject) -> list[str]:
    columns = {*subject.table.columns, *subject.table.unusable}
    return [text for text in subject.named.values() if text not in (None, "", "0") and text not in columns]


def _other_case(subject: Subject) -> list[str]:
    columns = {name.lower() for name in (*subject.table.columns, *subject.table.unusable)}
    return [text for text in _named_nowhere(subject) if text.lower() in columns]


def _used_twice(subject: Subject, among: Iterable[str | None]) -> list[str]:
    named = [text for text in among if text in subject.table.columns]
    return sorted({text for text in named if text is not None and named.count(text) > 1})


def _flags_among_values(subject: Subject) -> list[str]:
    return [column.name for column in subject.mapping.values if column.name == subject.row.flags]


def _text_behind(subject: Subject, column: Column) -> bool:
    behind = dict(zip((each.name for each in subject.mapping.values), subject.mapping.behind, strict=False))
    following = behind.get(column.name, ())
    return column.kind is Kind.TEXT and bool(following) and following[0].kind is Kind.TEXT


def _first_value(subject: Subject) -> Column:
    return subject.mapping.values[0]


def _last_in_table(subject: Subject) -> bool:
    order = subject.table.order
    return _first_value(subject).kind is Kind.TEXT and bool(order) and order[-1] == _first_value(subject).name


VALUES: Final[dict[str, Predicate]] = {
    "one-value": when_single(lambda _: True),
    "several-values": when_several(lambda _: True),
    "several-with-integer": lambda s: s.values_of(*INTEGERS) if s.several else (),
    "several-not-null": lambda s: [each.name for each in s.values if s.several and not each.nullable],
    "several-text-behind": lambda s: [c.name for c in s.mapping.values if s.several and _text_behind(s, c)],
    "several-cut-by-bytes": when_several(lambda s: len(s.separator) > 1),
    "several-without-options": when_several(lambda s: not s.extras),
    "text-value": of_type(*TEXTS),
    "text-value-of-limited-width": lambda s: [c.name for c in s.mapping.values if c.kind is Kind.TEXT and c.cuts],
    "several-of-limited-width": lambda s: [c.name for c in s.mapping.values if s.several and c.cuts],
    "unicode-value": lambda s: _text_values(s, UNICODE.__contains__),
    "value-not-utf8": lambda s: _text_values(s, lambda name: name not in UNICODE),
    "latin1-value": lambda s: _text_values(s, lambda name: name == "latin1"),
    "not-null-text-value": each_value(lambda c: c.word in TEXTS and not c.nullable),
    "nullable-value": each_value(lambda c: c.nullable),
    "char-value": of_type("CHAR", "CHARACTER"),
    "tinytext-value": of_type("TINYTEXT"),
    "tinyblob-value": of_type("TINYBLOB"),
    "blob-value": of_type("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
    "storage-bytes-value": of_type("BINARY", "DECIMAL", "NUMERIC", "DATETIME", "TIMESTAMP", "TIME"),
    "float-value": of_type("FLOAT", "DOUBLE", "REAL"),
    "json-value": of_type("JSON"),
    "numbered-value": of_type("ENUM", "SET", "YEAR"),
    "three-byte-value": of_type("MEDIUMINT", "DATE"),
    "integer-value": of_type(*INTEGERS),
    "unsigned-value": each_value(lambda c: c.word in INTEGERS - _WIDE and c.unsigned),
    "unique-value": lambda s: [c.name for c in s.mapping.values if (c.name,) in s.table.unique.values()],
    "text-behind-value": when_single(lambda s: _text_behind(s, _first_value(s))),
    "value-last-in-table": when_single(_last_in_table),
    "flags-column": use("flags"),
    "flags-signed-int": use("flags", lambda c: c.word in ("INT", "INTEGER") and not c.unsigned),
    "flags-unsigned-int": use("flags", lambda c: c.word in ("INT", "INTEGER") and c.unsigned),
    "flags-narrow": use("flags", lambda c: c.word in _NARROW),
    "flags-wide": use("flags", lambda c: c.word in _WIDE),
    "flags-year": use("flags", lambda c: c.word == "YEAR"),
    "no-flags-column": unused("flags"),
    "cas-column": use("cas"),
    "cas-signed": use("cas", lambda c: not c.unsigned),
    "cas-narrow": lambda s: [s.mapping.cas.name] if s.mapping.cas is not None and repeats(s.mapping.cas) else [],
    "cas-unsigned-bigint": use("cas", lambda c: c.word in _WIDE and c.unsigned),
    "no-cas-column": unused("cas"),
    "expiry-column": use("expiry"),
    "expiry-of-31-bits": use("expiry", lambda c: c.word in INTEGERS - _WIDE and not c.unsigned),
    "expiry-beyond-31-bits": use("expiry", lambda c: c.word in _WIDE or c.unsigned),
    "no-expiry-column": unused("expiry"),
    "no-options": lambda s: [] if s.extras else [s.row.name],
    "nullable-flags": use("flags", lambda c: c.nullable),
    "nullable-cas": use("cas", lambda c: c.nullable),
    "nullable-expiry": use("expiry", lambda c: c.nullable),
    "not-null-options": any_use(lambda c: not c.nullable),
    "three-byte-option": any_use(lambda c: c.word in ("MEDIUMINT", "DATE")),
    "option-is-no-column": _named_nowhere,
    "option-in-other-case": _other_case,
    "option-null": lambda s: [name for name, text in s.named.items() if text is None],
    "flags-among-values": _flags_among_values,
    "cas-is-expiry": lambda s: _used_twice(s, (s.row.cas_column, s.row.expire_time_column)),
}
