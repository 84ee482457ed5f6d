"""Features of a mapping: of its row, key, values and table; each predicate returns the names that have it.

Names are as the row has them. What acts on writes outside the mapped columns is a feature of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
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
WIDE: Final = frozenset({"BIGINT"})
NARROW: Final = frozenset({"TINYINT", "BOOL", "BOOLEAN", "SMALLINT"})
TEXTS: Final = frozenset({"CHAR", "CHARACTER", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"})
UNICODE: Final = ("utf8mb4", "utf8mb3", "utf8")


@dataclass(frozen=True, slots=True)
class Subject:
    """A mapping: its row, what the row makes, the table, the options in force, and other rows that map the table."""

    row: Container
    mapping: Mapping
    table: Table
    details: TableDetails
    delimiter: bytes
    separator: bytes
    others: tuple[Container, ...]

    @property
    def key(self) -> ColumnDetails:
        return self.of(self.mapping.key)

    @property
    def values(self) -> list[ColumnDetails]:
        return [self.of(column) for column in self.mapping.values]

    @property
    def several(self) -> tuple[str, ...]:
        """Return the names of the value columns if there are two or more."""
        names = tuple(column.name for column in self.mapping.values)
        return names if len(names) > 1 else ()

    @property
    def extras(self) -> dict[str, ColumnDetails]:
        """Return the columns for flags, cas and expiry that are in use, by their use."""
        return {use: self.of(column) for use, column in self.mapping.options.items() if column is not None}

    @property
    def named(self) -> dict[str, str | None]:
        """Return the row's cells for flags, cas and expiry, by their use."""
        return {"flags": self.row.flags, "cas": self.row.cas_column, "expiry": self.row.expire_time_column}

    @property
    def unmapped(self) -> list[ColumnDetails]:
        """Return the table's other columns, except generated ones."""
        return [self.details.columns.get(name) or ColumnDetails(name, "") for name in self.mapping.unmapped]

    @property
    def column_names(self) -> set[str]:
        return {*self.table.columns, *self.table.unusable}

    @property
    def full_name(self) -> str:
        """Return schema and table as the row names them, in lower case."""
        return f"{self.row.db_schema}.{self.row.db_table}".lower()

    def of(self, column: Column) -> ColumnDetails:
        return self.details.columns.get(column.name) or ColumnDetails(column.name, "")


Predicate = Callable[[Subject], Iterable[str]]
Test = Callable[[Subject], object]
ColumnTest = Callable[[ColumnDetails], object]


def key_when(test: Test) -> Predicate:
    return lambda s: [s.key.name] if test(s) else []


def text_key_when(test: Test) -> Predicate:
    return key_when(lambda s: s.mapping.key.kind is Kind.TEXT and test(s))


def row_when(test: Test) -> Predicate:
    return lambda s: [s.row.name] if test(s) else []


def table_when(test: Test) -> Predicate:
    return lambda s: [s.mapping.source] if test(s) else []


def value_when(test: ColumnTest) -> Predicate:
    return lambda s: [each.name for each in s.values if test(each)]


def of_type(*words: str) -> Predicate:
    return value_when(lambda column: column.word in words)


def several_when(test: ColumnTest) -> Predicate:
    return lambda s: [each.name for each in s.values if s.several and test(each)]


def single_when(test: Test) -> Predicate:
    return lambda s: [s.mapping.values[0].name] if not s.several and test(s) else []


def unmapped_when(test: ColumnTest) -> Predicate:
    return lambda s: [each.name for each in s.unmapped if test(each)]


def use(name: str, test: ColumnTest = bool) -> Predicate:
    """Return a predicate that returns the column in use for flags, cas or expiry if the test is true of it."""
    return lambda s: [column.name for use, column in s.extras.items() if use == name and test(column)]


def unused(name: str) -> Predicate:
    """Return a predicate that returns the row's cell for flags, cas or expiry if it is not in use."""
    return lambda s: [] if name in s.extras else [s.named[name] or "NULL"]


def has_equal(subject: Subject, one: str, other: str, *, otherwise: bool = False) -> bool:
    """Return whether the key's collation treats two texts as equal; `otherwise` for an unknown collation."""
    known = collations.COLLATIONS.get(subject.key.collation.lower())
    return otherwise if known is None else collations.order(known).compare(one, other) == 0


def ignores_case(subject: Subject) -> bool:
    """Return whether the key's collation ignores case; SQLite's NOCASE does so for ASCII."""
    return has_equal(subject, "a", "A", otherwise=subject.key.collation.lower().endswith(("nocase", "_ci")))


def pads(subject: Subject) -> bool:
    known = collations.COLLATIONS.get(subject.key.collation.lower())
    return known is not None and known.pads


def is_narrow(subject: Subject) -> bool:
    width = subject.mapping.key.width
    return width is not None and width < MAX_KEY


def index_of(row: Container) -> str:
    return (row.unique_idx_name_on_key or "").lower()


def is_secondary(subject: Subject) -> bool:
    return index_of(subject.row) != "primary"


def _primary_key_on_others(subject: Subject) -> list[str]:
    found = is_secondary(subject) and "PRIMARY" in subject.table.unique and subject.mapping.secondary
    return [".".join(subject.table.unique["PRIMARY"])] if found else []


def _repeated(names: Iterable[str | None]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if name is not None and count > 1)


def text_values(subject: Subject, is_wanted: Callable[[str], bool]) -> list[str]:
    """Return the value columns of text whose character set passes a test."""
    texts = (each for each in subject.mapping.values if each.kind is Kind.TEXT and subject.of(each).word in TEXTS)
    return [column.name for column in texts if is_wanted(column.charset.name)]


def _not_columns(subject: Subject) -> list[str]:
    """Return the row's cells for flags, cas and expiry that name something other than a column of the table."""
    return [cell for cell in subject.named.values() if cell and cell not in {"0", *subject.column_names}]


def _in_other_case(subject: Subject) -> list[str]:
    names = {name.lower() for name in subject.column_names}
    return [cell for cell in _not_columns(subject) if cell.lower() in names]


def is_before_text(subject: Subject, column: Column) -> bool:
    """Return whether a value column is text and the table's next column too."""
    following = dict(zip((each.name for each in subject.mapping.values), subject.mapping.following, strict=False))
    after = following.get(column.name, ())
    return column.kind is Kind.TEXT and bool(after) and after[0].kind is Kind.TEXT


def is_last_in_table(subject: Subject) -> bool:
    first = subject.mapping.values[0]
    return first.kind is Kind.TEXT and subject.table.order[-1:] == (first.name,)


# By the feature's name: the columns, tables or names in which a mapping has it; empty if it does not have it.
PREDICATES: Final[dict[str, Predicate]] = {
    "name-of-one-letter": row_when(lambda s: len(s.row.name) == 1),
    "name-with-blank": row_when(lambda s: " " in s.row.name),
    "name-with-delimiter": row_when(lambda s: not set(s.delimiter).isdisjoint(s.row.name.encode())),
    "name-empty": row_when(lambda s: not s.row.name),
    "name-with-at-signs": row_when(lambda s: s.row.name.startswith("@@")),
    "table-named-as-file": lambda s: [each for each in [f"{s.row.db_schema}.{s.row.db_table}"] if {*each} & {*"@/\\"}],
    "text-key": text_key_when(lambda _: True),
    "narrow-key": text_key_when(is_narrow),
    "wide-key": text_key_when(lambda s: not is_narrow(s)),
    "unicode-key": text_key_when(lambda s: s.mapping.key.charset.name in UNICODE),
    "key-not-utf8": text_key_when(lambda s: s.mapping.key.charset.name not in UNICODE),
    "latin1-key": text_key_when(lambda s: s.mapping.key.charset.name == "latin1"),
    "ucs2-key": text_key_when(lambda s: s.mapping.key.charset.name == "ucs2"),
    "key-ignores-case": text_key_when(ignores_case),
    "key-minds-case": text_key_when(lambda s: not ignores_case(s)),
    "key-ignores-accents": text_key_when(lambda s: has_equal(s, "e", "é")),
    "key-expands": text_key_when(lambda s: has_equal(s, "ss", "ß")),
    "key-ignores-trailing-blanks": text_key_when(pads),
    "char-key": key_when(lambda s: s.key.word in ("CHAR", "CHARACTER")),
    "integer-key": key_when(lambda s: s.key.word in INTEGERS),
    "unsigned-bigint-key": key_when(lambda s: s.key.word == "BIGINT" and s.key.unsigned),
    "three-byte-key": key_when(lambda s: s.key.word in ("MEDIUMINT", "DATE")),
    "year-key": key_when(lambda s: s.key.word == "YEAR"),
    "enum-key": key_when(lambda s: s.key.word == "ENUM"),
    "nullable-integer-key": key_when(lambda s: s.key.word in INTEGERS and s.key.nullable),
    "nullable-unsigned-key": key_when(lambda s: s.key.word in INTEGERS and s.key.nullable and s.key.unsigned),
    "auto-increment-key": key_when(lambda s: s.key.auto_increment),
    "secondary-index": lambda s: [s.row.unique_idx_name_on_key or ""] if is_secondary(s) else [],
    "no-primary-key": table_when(lambda s: is_secondary(s) and "PRIMARY" not in s.table.unique),
    "primary-key-beside": _primary_key_on_others,
    "two-indexes-on-key": key_when(lambda s: list(s.table.unique.values()).count((s.mapping.key.name,)) > 1),
    "composite-primary-key": key_when(lambda s: s.mapping.unsearchable),
    "key-among-values": key_when(lambda s: s.mapping.key in s.mapping.values),
    "value-named-twice": lambda s: _repeated(c.name for c in s.mapping.values),
    "one-value": single_when(lambda _: True),
    "several-values": several_when(lambda _: True),
    "several-with-integer": several_when(lambda c: c.word in INTEGERS),
    "several-not-null": several_when(lambda c: not c.nullable),
    "several-text-behind": lambda s: [c.name for c in s.mapping.values if c.name in s.several and is_before_text(s, c)],
    "several-cut-by-bytes": lambda s: s.several if len(s.separator) > 1 else (),
    "several-without-options": lambda s: () if s.extras else s.several,
    "text-value": of_type(*TEXTS),
    "text-value-of-limited-width": lambda s: [c.name for c in s.mapping.values if c.kind is Kind.TEXT and c.cuts],
    "several-of-limited-width": lambda s: [c.name for c in s.mapping.values if c.name in s.several and c.cuts],
    "unicode-value": lambda s: text_values(s, UNICODE.__contains__),
    "value-not-utf8": lambda s: text_values(s, lambda name: name not in UNICODE),
    "latin1-value": lambda s: text_values(s, lambda name: name == "latin1"),
    "not-null-text-value": value_when(lambda c: c.word in TEXTS and not c.nullable),
    "nullable-value": value_when(lambda c: c.nullable),
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
    "unsigned-value": value_when(lambda c: c.word in INTEGERS - WIDE and c.unsigned),
    "unique-value": lambda s: [c.name for c in s.mapping.values if (c.name,) in s.table.unique.values()],
    "text-behind-value": single_when(lambda s: is_before_text(s, s.mapping.values[0])),
    "value-last-in-table": single_when(is_last_in_table),
    "flags-column": use("flags"),
    "flags-signed-int": use("flags", lambda c: c.word in ("INT", "INTEGER") and not c.unsigned),
    "flags-unsigned-int": use("flags", lambda c: c.word in ("INT", "INTEGER") and c.unsigned),
    "flags-narrow": use("flags", lambda c: c.word in NARROW),
    "flags-wide": use("flags", lambda c: c.word in WIDE),
    "flags-year": use("flags", lambda c: c.word == "YEAR"),
    "no-flags-column": unused("flags"),
    "cas-column": use("cas"),
    "cas-signed": use("cas", lambda c: not c.unsigned),
    "cas-narrow": lambda s: [s.mapping.cas.name] if s.mapping.cas is not None and repeats(s.mapping.cas) else [],
    "cas-unsigned-bigint": use("cas", lambda c: c.word in WIDE and c.unsigned),
    "no-cas-column": unused("cas"),
    "expiry-column": use("expiry"),
    "expiry-of-31-bits": use("expiry", lambda c: c.word in INTEGERS - WIDE and not c.unsigned),
    "expiry-beyond-31-bits": use("expiry", lambda c: c.word in WIDE or c.unsigned),
    "no-expiry-column": unused("expiry"),
    "no-options": lambda s: [] if s.extras else [s.row.name],
    "nullable-flags": use("flags", lambda c: c.nullable),
    "nullable-cas": use("cas", lambda c: c.nullable),
    "nullable-expiry": use("expiry", lambda c: c.nullable),
    "not-null-options": lambda s: [c.name for c in s.extras.values() if not c.nullable],
    "three-byte-option": lambda s: [c.name for c in s.extras.values() if c.word in ("MEDIUMINT", "DATE")],
    "option-is-no-column": _not_columns,
    "option-in-other-case": _in_other_case,
    "option-null": lambda s: [name for name, text in s.named.items() if text is None],
    "flags-among-values": lambda s: [c.name for c in s.mapping.values if c.name == s.row.flags],
    "cas-is-expiry": lambda s: _repeated(
        each for each in (s.row.cas_column, s.row.expire_time_column) if each in s.table.columns
    ),
    "unmapped-nullable": unmapped_when(lambda c: c.nullable),
    "unmapped-with-default": unmapped_when(lambda c: c.default),
    "unmapped-not-null": unmapped_when(lambda c: not c.nullable),
    "unmapped-without-value": unmapped_when(lambda c: not (c.nullable or c.default or c.auto_increment or c.generated)),
    "unmapped-not-null-with-default": unmapped_when(lambda c: not c.nullable and c.default),
    "virtual-column": lambda s: [c.name for c in s.details.columns.values() if c.generated == "virtual"],
    "triggers": lambda s: s.details.triggers,
    "checks": lambda s: s.details.checks,
    "fulltext": lambda s: s.details.fulltext,
    "refers-to-others": lambda s: s.details.refers_to,
    "others-refer-to-it": lambda s: s.details.referred_by,
    "others-cascade": lambda s: s.details.cascading,
    "table-mapped-again": lambda s: [row.name for row in s.others],
    "table-mapped-by-another-key": lambda s: [each.name for each in s.others if index_of(each) != index_of(s.row)],
    "maps-the-configuration": table_when(lambda s: s.full_name == "innodb_memcache.containers"),
    "maps-the-system": table_when(lambda s: s.full_name.startswith("mysql.")),
}
