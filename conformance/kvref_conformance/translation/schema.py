"""MySQL's tables as their DDL describes them, and the SQLite statements that make tables like them.

Declared types stay as written, because a server over SQLite reads them; text columns carry MySQL's name of their
collation. Index names are global in SQLite: an index is called `<table>.<index>`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

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


CONFIGURATION: Final = "innodb_memcache"
DEFAULT_SCHEMA: Final = "test"
INNODB: Final = "INNODB"


@dataclass(slots=True)
class Schema:
    """What there is; keys are `schema.name`.

    Args:
        version: of the MySQL server whose defaults count, such as "8.0.33".
        tables: by key.
        temporary: temporary tables, which hide the others.
        views: the table below each view.
        triggers: for each table the statements that make its triggers, by name.
    """

    version: str
    tables: dict[str, Table] = field(default_factory=dict)
    temporary: dict[str, Table] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    triggers: dict[str, dict[str, str]] = field(default_factory=dict)

    def copy(self) -> Schema:
        """Return one that knows the same and goes its own way from here."""
        triggers = {key: dict(made) for key, made in self.triggers.items()}
        return Schema(self.version, dict(self.tables), dict(self.temporary), dict(self.views), triggers)

    def known(self, name: exp.Table) -> Table | None:
        """Return a table, or the one below a view; None where no statement made one."""
        key = key_of(name)
        key = self.views.get(key, key)
        return self.temporary.get(key) or self.tables.get(key)

    def needed(self, name: exp.Table) -> Table:
        """Return a table.

        Raises:
            NotImplementedError: no statement created one, so its definition is unknown.
        """
        table = self.known(name)
        if table is None:
            raise NotImplementedError(f"no statement made the table {key_of(name)}")
        return table

    def source(self, name: exp.Table) -> str:
        """Return SQLite's name of a table or, for a view, of the table below it."""
        table = self.known(name)
        return source_of(key_of(name)) if table is None else table.source

    def resolve(self, tree: exp.Expr) -> list[Table]:
        """Put SQLite's names in place of MySQL's in a query or a change, and return the tables it names."""
        is_query = isinstance(tree, exp.Query)
        found = []
        for name in list(tree.find_all(exp.Table)):
            table, key, alias = self.known(name), key_of(name), name.alias or name.name
            if table is not None:
                found.append(table)
            source = source_of(key) if is_query and key in self.views else self.source(name)
            name.set("db", None)
            name.set("this", exp.to_identifier(source, quoted=True))
            if is_query or name.find_ancestor(exp.Query):
                name.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        for column in tree.find_all(exp.Column):
            column.set("db", None)
        return found


def key_of(name: exp.Expr) -> str:
    """Return `schema.name` of a table as a statement names it; raises NotImplementedError for anything else."""
    if not isinstance(name, exp.Table):
        raise NotImplementedError(f"no name of a table: {name.sql(dialect='mysql')}")
    return f"{name.db or DEFAULT_SCHEMA}.{name.name}"


def source_of(key: str, engine: str = INNODB) -> str:
    """Return the name in SQLite of the table `schema.name`.

    The configuration tables have none but their own. InnoDB, and so the plugin, knows no table of another engine: such
    a table gets a name that no container can give.
    """
    schema, _, name = key.partition(".")
    source = name if schema == CONFIGURATION else key
    return source if engine.upper() == INNODB else f"{source} ({engine})"


def named(text: str) -> exp.Table:
    """Read the name of a table, `test.t` or `` `test`.`t 1` ``."""
    return exp.to_table(text.strip(), dialect="mysql")


def string(text: str) -> str:
    """Return a text as a literal of SQLite's."""
    return "'" + text.replace("'", "''") + "'"
