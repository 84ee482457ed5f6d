"""The world of some hundred conversations: tables, mappings, options, rows; written down as MySQL's SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kvref.collations.names import default_charset
from kvref_conformance.sql.base import literal
from kvref_conformance.sql.columns import CODECS
from kvref_conformance.strategies.palette import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kvref_conformance.sql.columns import Cell, Column
    from kvref_conformance.strategies.palette import Palette

CONFIGURATION: Final = "innodb_memcache"
DEMO: Final = "demo_test"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of schema `test`.

    Args:
        name: of the table.
        columns: in order.
        primary: the column of the primary key, None where there is none.
        indexes: name and column of further indexes, in order.
        unique: names of those that are unique.
        engine: storage engine.
        rows: what it holds at the start of each conversation.
    """

    name: str
    columns: tuple[Column, ...]
    primary: str | None
    indexes: tuple[tuple[str, str], ...] = ()
    unique: frozenset[str] = frozenset()
    engine: str = "INNODB"
    rows: tuple[tuple[Cell, ...], ...] = ()

    @property
    def is_closed(self) -> bool:
        """Return whether the last column is an integer of two bytes or more, never NULL: nothing reads on behind it.

        One byte may be a blank to strtoull: 9 to 13, 32.
        """
        last = self.columns[-1]
        return last.kind == "integer" and not last.type.startswith("TINYINT") and not last.nullable

    def column(self, name: str) -> Column:
        """Return a column by name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def definition(self) -> str:
        """Return what is inside the parentheses of CREATE TABLE."""
        parts = [column.sql() for column in self.columns]
        if self.primary is not None:
            parts.append(f"PRIMARY KEY ({self.primary})")
        for name, column in self.indexes:
            parts.append(f"{'UNIQUE ' if name in self.unique else ''}KEY {name} ({column})")
        return ", ".join(parts)

    def create(self) -> str:
        """Return CREATE TABLE."""
        return f"CREATE TABLE test.{self.name} ({self.definition}) ENGINE={self.engine}"

    def fill(self) -> Iterator[str]:
        """Yield the statements that give the table its rows and no other."""
        yield f"DELETE FROM test.{self.name}"
        tuples = [f"({', '.join(map(literal, row))})" for row in self.rows]
        if tuples:
            yield f"INSERT INTO test.{self.name} VALUES {', '.join(tuples)}"


@dataclass(frozen=True, slots=True)
class Container:
    """A row of `containers`, and what the generator knows of it.

    Args:
        cells: name, schema, table, key, values, flags, cas, expiry, index, as they stand there.
        table: the table it maps; None: the row is wrong on purpose and maps nothing.
        fault: what is wrong with it, in words; empty where nothing is.
    """

    cells: tuple[str | None, ...]
    table: Table | None = None
    fault: str = ""

    @property
    def name(self) -> str:
        """Return the mapping's name."""
        return self.cells[0] or ""

    @property
    def key(self) -> Column:
        """Return the key column of a usable row."""
        assert self.table is not None, "a wrong row has no key column"
        return self.table.column(self.cells[3] or "")

    @property
    def values(self) -> tuple[Column, ...]:
        """Return the value columns of a usable row."""
        assert self.table is not None, "a wrong row has no value columns"
        names = {column.name: column for column in self.table.columns}
        return tuple(names[name] for name in re.split(r"[,;| ]+", self.cells[4] or "") if name in names)

    def insert(self) -> str:
        """Return INSERT."""
        return f"INSERT INTO {CONFIGURATION}.containers VALUES ({', '.join(map(literal, self.cells))})"


@dataclass(frozen=True, slots=True)
class World:
    """All of it.

    Args:
        number: in its seed.
        tables: with the plugin's own `demo_test`.
        containers: rows of `containers`, in order of insertion.
        options: rows of `config_options`.
        palette: what it was drawn from.
    """

    number: int
    tables: tuple[Table, ...]
    containers: tuple[Container, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    palette: Palette = EVERYTHING

    @property
    def delimiter(self) -> bytes:
        """Return the delimiter in force."""
        return self._option("table_map_delimiter", ".")

    @property
    def separator(self) -> bytes:
        """Return the separator in force."""
        return self._option("separator", "|")

    @property
    def usable(self) -> tuple[Container, ...]:
        """Return the rows that map a table."""
        return tuple(each for each in self.containers if each.table is not None)

    @property
    def mapped(self) -> tuple[Table, ...]:
        """Return the tables that a usable row maps."""
        names = {each.table.name for each in self.usable if each.table is not None}
        return tuple(table for table in self.tables if table.name in names)

    @property
    def secondary(self) -> bool:
        """Return whether a mapping uses a secondary index."""
        return any((each.cells[8] or "").upper() != "PRIMARY" for each in self.usable)

    def _option(self, name: str, builtin: str) -> bytes:
        # The plugin takes the bytes as they are stored, and the table has the server's default character set.
        return (self.options.get(name) or builtin).encode(CODECS[default_charset(self.palette.version)])

    def volatile(self, position: int) -> frozenset[tuple[str, str]]:
        """Return table and column of every cell in which the plugin writes by itself.

        Args:
            position: 6 for cas numbers, 7 for times of expiry, as in `Container.cells`.
        """
        return frozenset(
            (each.table.name, each.cells[position] or "") for each in self.usable if each.table is not None
        )

    def set_up(self) -> tuple[str, ...]:
        """Return what is run after the plugin's own configuration script and before the plugin is installed."""
        statements = [table.create() for table in self.tables if table.name != DEMO]
        others = [table for table in self.tables if table not in self.mapped]
        statements += [statement for table in others for statement in table.fill()]
        return (*statements, *self.configuration())

    def configuration(self) -> tuple[str, ...]:
        """Return what gives the configuration tables their rows and no other."""
        statements = [f"DELETE FROM {CONFIGURATION}.containers", f"DELETE FROM {CONFIGURATION}.config_options"]
        statements += [each.insert() for each in self.containers]
        statements += [
            f"INSERT INTO {CONFIGURATION}.config_options VALUES ({literal(name)}, {literal(value)})"
            for name, value in self.options.items()
        ]
        return tuple(statements)
