"""Features of the value columns and of the columns for flags, cas number and expiry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kvref.doctor.key_features import UNICODE, Predicate
from kvref.doctor.subject import INTEGERS, TEXTS, Subject
from kvref.engine.mapping import Column, Kind
from kvref.storage.config.details import ColumnDetails

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
