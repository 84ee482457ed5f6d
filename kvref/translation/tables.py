"""A MySQL table as its DDL describes it, and the SQLite statements that make one like it.

Declared types stay as written, because a server over SQLite reads them; text columns carry MySQL's name of their
collation. Index names are global in SQLite: an index is called `<table>.<index>`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


# Types whose contents are characters of a character set, and those whose contents are bytes.
TEXT_TYPES: Final = frozenset({"CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET"})
BYTE_TYPES: Final = frozenset({"BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"})


def quote(name: str) -> str:
    """Return an identifier quoted for SQLite."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        name: as written.
        type: the type's name in upper case, without width and sign.
        declared: the type for SQLite, with width and sign.
        charset: the character set of its text, None for other types.
        collation: MySQL's name of its collation, None for other types.
        nullable: whether NULL is allowed.
        default: DEFAULT as SQLite's SQL.
        generated: the expression of a generated column as SQLite's SQL, with VIRTUAL or STORED behind it.
        auto_increment: whether SQL fills in the next number.
        null_is_now: where it is NOT NULL, SQL takes NULL for the current time (TIMESTAMP of 5.6).
    """

    name: str
    type: str
    declared: str
    charset: str | None = None
    collation: str | None = None
    nullable: bool = True
    default: str | None = None
    generated: str | None = None
    auto_increment: bool = False
    null_is_now: bool = False

    @property
    def holds_bytes(self) -> bool:
        """Return whether the column holds bytes without a character set."""
        return self.type in BYTE_TYPES

    def sql(self) -> str:
        """Return the definition for SQLite."""
        words = [quote(self.name), self.declared]
        if self.collation is not None:
            words.append(f"COLLATE {self.collation}")
        if not self.nullable:
            words.append("NOT NULL")
        if self.default is not None:
            words.append(f"DEFAULT {self.default}")
        if self.generated is not None:
            words.append(f"GENERATED ALWAYS AS {self.generated}")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index: its columns in order, and whether it is unique."""

    columns: tuple[str, ...]
    unique: bool


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Args:
        source: its name in SQLite.
        columns: in order.
        primary: columns of the primary key.
        descending: those of them that are in descending order.
        indexes: secondary indexes by name.
        foreign: FOREIGN KEY clauses as SQLite's SQL.
        checks: CHECK conditions as SQLite's SQL.
        temporary: whether it belongs to one connection.
    """

    source: str
    columns: tuple[Column, ...]
    primary: tuple[str, ...] = ()
    descending: frozenset[str] = frozenset()
    indexes: dict[str, Index] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    temporary: bool = False

    def column(self, name: str) -> Column | None:
        """Return a column by name, whatever its case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)

    def create(self) -> Iterator[str]:
        """Yield the statements that make the table with its indexes.

        InnoDB keeps rows in the order of the primary key, so a SELECT without ORDER BY shows them so; a table WITHOUT
        ROWID does the same.
        """
        parts = [column.sql() for column in self._with_key_not_null()]
        if self.primary:
            key = (f"{quote(name)} DESC" if name in self.descending else quote(name) for name in self.primary)
            parts.append(f"PRIMARY KEY ({', '.join(key)})")
        parts += self.foreign
        kind = "TEMP TABLE" if self.temporary else "TABLE"
        clustered = " WITHOUT ROWID" if self.primary else ""
        yield f"CREATE {kind} {quote(self.source)} ({', '.join(parts)}){clustered}"
        for name, index in self.indexes.items():
            unique = "UNIQUE " if index.unique else ""
            columns = ", ".join(map(quote, index.columns))
            yield f"CREATE {unique}INDEX {quote(f'{self.source}.{name}')} ON {quote(self.source)} ({columns})"

    def _with_key_not_null(self) -> Iterator[Column]:
        key = {name.lower() for name in self.primary}
        for column in self.columns:
            yield replace(column, nullable=False) if column.name.lower() in key else column
