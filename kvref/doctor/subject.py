"""One mapping with everything that is known of its row and table: what features are found in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref.storage.config.details import ColumnDetails

if TYPE_CHECKING:
    from kvref.engine.mapping import Column, Mapping
    from kvref.storage.config.containers import Container, Table
    from kvref.storage.config.details import TableDetails

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
