"""A table as statements make it, and as a server shows it: the rows of information_schema and SHOW INDEX."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kvref import collations
from kvref.collations.charsets import CHARSETS, OTHER_CHARSETS
from kvref.collations.names import default_charset, default_collation
from kvref.doctor.dump.statements import Key, NotUnderstood
from kvref.storage.config.containers import ColumnDetails

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from kvref.doctor.dump.script import Server

BYTES: Final = "binary"  # the character set of types without characters
_OF_BYTES: Final = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob",
    "longtext": "longblob",
}  # fmt: skip
_TEXTS: Final = frozenset({*_OF_BYTES, "enum", "set"})
# sqlglot's names of types that are not MySQL's.
_NAMES: Final = {"timestamptz": "timestamp", "boolean": "tinyint"}
_WORDS: Final = frozenset(
    "tinyint smallint mediumint int bigint decimal float double bit year date time datetime timestamp char varchar"
    " binary varbinary tinyblob blob mediumblob longblob tinytext text mediumtext longtext enum set json geometry uuid"
    " vector".split()
)
# Default collations of OTHER_CHARSETS that are not `<charset>_general_ci` (SHOW CHARACTER SET).
_DEFAULTS: Final = {
    "big5": "big5_chinese_ci", "dec8": "dec8_swedish_ci", "hp8": "hp8_english_ci",
    "swe7": "swe7_swedish_ci", "ujis": "ujis_japanese_ci", "sjis": "sjis_japanese_ci", "tis620": "tis620_thai_ci",
    "euckr": "euckr_korean_ci", "gb2312": "gb2312_chinese_ci", "gbk": "gbk_chinese_ci", "latin5": "latin5_turkish_ci",
    "cp932": "cp932_japanese_ci", "eucjpms": "eucjpms_japanese_ci", "gb18030": "gb18030_chinese_ci",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Text:
    """Character set and collation of a text."""

    charset: str
    collation: str


def text_of(server: Server, charset: str, collation: str, otherwise: Text | None = None) -> Text:
    """Return the character set and collation of a text; raises NotUnderstood for unknown ones.

    Args:
        server: whose defaults apply.
        charset, collation: "" if not given.
        otherwise: if neither is given; None for the server's default.
    """
    charset, collation = charset.lower(), collation.lower()
    if not charset and not collation and otherwise is not None:
        return otherwise
    if collation and collation != "default":
        named = collations.charset_of(collation) or _charset_in(collation)
        # The short names of MariaDB are of any character set of Unicode.
        return Text(charset or named or "utf8mb4", f"{charset or 'utf8mb4'}_{collation}" if not named else collation)
    if charset in ("", "default"):
        charset = default_charset(server.name)
        if server.mariadb:
            charset = "utf8mb4" if server.version >= (11, 6, 0) else "latin1"
    return Text(charset, _default_collation(server, charset))


def _charset_in(collation: str) -> str:
    name = collation.partition("_")[0]
    if name in CHARSETS or name in OTHER_CHARSETS or name == BYTES:
        return name
    if name == "uca1400":
        return ""
    raise NotUnderstood(f"the collation {collation} is not known")


def _default_collation(server: Server, charset: str) -> str:
    if charset == BYTES:
        return BYTES
    if charset not in CHARSETS and charset not in OTHER_CHARSETS:
        raise NotUnderstood(f"the character set {charset} is not known")
    if server.mariadb and charset.startswith(("utf", "ucs")) and server.version >= (11, 5, 0):
        return f"{charset}_uca1400_ai_ci"
    if charset in CHARSETS:
        return default_collation(charset, "5.6" if server.mariadb else server.name)
    return _DEFAULTS.get(charset, f"{charset}_general_ci")


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type: its name and what is in its parentheses, as information_schema shows them."""

    word: str
    arguments: str = ""
    unsigned: bool = False

    @property
    def is_text(self) -> bool:
        return self.word in _TEXTS

    @property
    def declared(self) -> str:
        """Return the type as information_schema shows it, without ZEROFILL."""
        arguments = f"({self.arguments})" if self.arguments else ""
        return f"{self.word}{arguments}{' unsigned' if self.unsigned else ''}"

    def with_text(self, text: Text) -> Type:
        """Return the type of a column with this character set: for `binary`, the type of bytes."""
        if text.charset == BYTES and self.word in _OF_BYTES:
            return Type(_OF_BYTES[self.word], self.arguments)
        return self


def type_of(written: exp.DataType) -> Type:
    """Return a type as information_schema shows it; raises NotUnderstood for one that is not known here."""
    name = written.this.name.lower()
    word = _NAMES.get(name, name)
    unsigned = word not in _WORDS and word.startswith("u")
    word = word[1:] if unsigned else word
    if word not in _WORDS:
        raise NotUnderstood(f"the type {word[:40]} is not known")
    arguments = written.expressions
    if word in ("enum", "set"):
        if not arguments or not all(each.is_string for each in arguments):
            raise NotUnderstood("a list of members that are not texts")
        return Type(word, ",".join("'" + each.name.replace("'", "''") + "'" for each in arguments))
    if word in ("text", "blob") and arguments:
        raise NotUnderstood(f"{word} with a length")
    width = "1" if name == "boolean" else ",".join(each.name for each in arguments)
    return Type(word, width, unsigned)


PRIMARY: Final = "PRIMARY"
FULLTEXT: Final = "FULLTEXT"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        text: character set and collation; None for types without characters.
        default: it has a DEFAULT that is not NULL.
        generated: `virtual`, `stored` or empty.
        value: its DEFAULT; None for an expression, or without one.
    """

    name: str
    type: Type
    text: Text | None
    nullable: bool = True
    default: bool = False
    generated: str = ""
    auto_increment: bool = False
    value: exp.Expr | None = None

    def described(self) -> tuple[str | None, ...]:
        """Return what information_schema says: name, type, character set, YES or NO for NULL, extra, collation."""
        extra = f"{self.generated} generated" if self.generated else "auto_increment" if self.auto_increment else ""
        charset, collation = (None, None) if self.text is None else (self.text.charset, self.text.collation)
        return self.name, self.type.declared, charset, "YES" if self.nullable else "NO", extra, collation

    def details(self) -> ColumnDetails:
        charset, collation = ("", "") if self.text is None else (self.text.charset, self.text.collation)
        return ColumnDetails(
            self.name, self.type.declared, charset, collation, self.nullable, self.default, self.auto_increment,
            self.generated,
        )  # fmt: skip


class Part(NamedTuple):
    """One part of an index: a column ("" for an expression), the length of its beginning, descending or not."""

    column: str
    length: int | None = None
    descending: bool = False


class Index(NamedTuple):
    """One index: its parts in order; `kind` is FULLTEXT, SPATIAL or empty."""

    parts: tuple[Part, ...]
    unique: bool = False
    kind: str = ""


class Foreign(NamedTuple):
    """A foreign key: the table that it refers to, and whether it does something on DELETE or UPDATE."""

    parent: Key
    acts: bool


@dataclass(slots=True)
class Table:
    """One table.

    Args:
        text: default character set and collation of columns.
        indexes: by name, in the order of their definition.
        checks: CHECK constraints by name, each with the names of its columns in lower case.
        doubt: why what is known of the table may be wrong; empty if it is certain.
    """

    text: Text
    engine: str = "InnoDB"
    partitioned: bool = False
    columns: list[Column] = field(default_factory=list)
    indexes: dict[str, Index] = field(default_factory=dict)
    foreign: dict[str, Foreign] = field(default_factory=dict)
    checks: dict[str, frozenset[str]] = field(default_factory=dict)
    triggers: list[str] = field(default_factory=list)
    doubt: str = ""

    def copy(self) -> Table:
        """Return a table like this one, as CREATE TABLE … LIKE makes it."""
        columns, indexes, checks = list(self.columns), dict(self.indexes), dict(self.checks)
        return replace(self, columns=columns, indexes=indexes, checks=checks, foreign={}, triggers=[])

    def index_of(self, name: str) -> int:
        """Return the position of a column; raises NotUnderstood if it does not exist."""
        for position, column in enumerate(self.columns):
            if column.name.lower() == name.lower():
                return position
        raise NotUnderstood(f"there is no column {name}")

    def column(self, name: str) -> Column:
        return self.columns[self.index_of(name)]

    def has(self, name: str) -> bool:
        return any(column.name.lower() == name.lower() for column in self.columns)

    def change(self, name: str, /, **changes: Any) -> None:
        index = self.index_of(name)
        self.columns[index] = replace(self.columns[index], **changes)

    def insert(self, column: Column, after: str | None) -> None:
        """Add a column after another one; `after` is empty for the first position, None for the last."""
        if self.has(column.name):
            raise NotUnderstood(f"there is a column {column.name} already")
        index = len(self.columns) if after is None else 0 if not after else self.index_of(after) + 1
        self.columns.insert(index, column)

    def replace(self, name: str, column: Column, after: str | None) -> None:
        """Replace a column, in indexes too; `after` is as in `insert`, but None for the old position."""
        index = self.index_of(name)
        del self.columns[index]
        if after is None:
            self.columns.insert(index, column)
        else:
            self.insert(column, after)
        self._rename_in_indexes(name, column.name)

    def rename(self, old: str, new: str) -> None:
        self.change(old, name=new)
        self._rename_in_indexes(old, new)

    def _rename_in_indexes(self, old: str, new: str) -> None:
        for name, index in self.indexes.items():
            parts = [part._replace(column=new) if part.column.lower() == old.lower() else part for part in index.parts]
            self.indexes[name] = index._replace(parts=tuple(parts))

    def drop(self, name: str) -> None:
        """Remove a column, and the indexes and constraints that are left without columns."""
        del self.columns[self.index_of(name)]
        for index, each in list(self.indexes.items()):
            remaining = tuple(part for part in each.parts if part.column.lower() != name.lower())
            self.indexes[index] = each._replace(parts=remaining)
            if not remaining:
                del self.indexes[index]
        for check, names in list(self.checks.items()):
            if name.lower() in names and not any(self.has(each) for each in names):
                del self.checks[check]

    def add_index(self, name: str, index: Index) -> None:
        """Add an index; one without a name gets that of its first column, as MySQL names it."""
        for part in index.parts:
            if part.column:
                self.index_of(part.column)
        stem = name or index.parts[0].column or "functional_index"
        used = {each.lower() for each in self.indexes}
        free, number = stem, 2
        while not name and (free.lower() in used or free.upper() == PRIMARY):
            free, number = f"{stem}_{number}", number + 1
        if free.lower() in used:
            raise NotUnderstood(f"there is an index {free} already")
        self.indexes[free] = index
        if free == PRIMARY:
            for part in index.parts:
                self.change(part.column, nullable=False)

    def find_index(self, name: str) -> str:
        """Return an index's name as the table has it; raises NotUnderstood if it does not exist."""
        for each in self.indexes:
            if each.lower() == name.lower():
                return each
        raise NotUnderstood(f"there is no index {name}")

    def index_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of SHOW INDEX: the primary key, unique indexes without NULL (prefixes last), the others."""
        for name, index in sorted(self.indexes.items(), key=lambda each: self._rank(*each)):
            for number, part in enumerate(index.parts, 1):
                yield {
                    "Key_name": name,
                    "Non_unique": int(not index.unique),
                    "Seq_in_index": number,
                    "Column_name": self.column(part.column).name if part.column else None,
                    "Collation": "D" if part.descending else "A",
                    "Sub_part": part.length,
                    "Index_type": index.kind,
                    "Ignored": "NO",
                }

    def _rank(self, name: str, index: Index) -> tuple[bool, bool, bool, bool]:
        columns = [self.column(part.column) for part in index.parts if part.column]
        nullable = any(column.nullable for column in columns) or len(columns) < len(index.parts)
        return name != PRIMARY, not index.unique, nullable, any(part.length for part in index.parts)
