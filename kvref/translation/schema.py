"""The tables of a world as its statements made them, by MySQL's names, and what they are called in SQLite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlglot import exp

if TYPE_CHECKING:
    from kvref.translation.tables import Table

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
