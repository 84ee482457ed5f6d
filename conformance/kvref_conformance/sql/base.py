"""What the suite asks of a database, and the statements that are the same on both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Row = tuple[object, ...]

CONTAINER_COLUMNS: Final = (
    "name, db_schema, db_table, key_columns, value_columns, "
    "flags, cas_column, expire_time_column, unique_idx_name_on_key"
)


class Database(ABC):
    """A connection to the tables behind an endpoint; every statement commits itself.

    Args:
        containers: name of the table of mappings.
        options: name of the table of options.
    """

    def __init__(self, containers: str, options: str) -> None:
        self.containers = containers
        self.options = options

    @abstractmethod
    def query(self, statement: str) -> list[Row]:
        """Run a SELECT and return its rows."""

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Run a statement without rows."""

    @abstractmethod
    def create_table(self, name: str) -> None:
        """Create a table of the shape of the plugin's demo_test, keys compared without case."""

    @abstractmethod
    def tables(self, prefix: str) -> list[str]:
        """Return the names of the tables that begin so."""

    @abstractmethod
    def has_plugin(self) -> bool:
        """Tell whether the C plugin is active in this server."""

    @abstractmethod
    def load_plugin_again(self) -> None:
        """Unload the C plugin and load it, so that it reads its configuration."""

    @abstractmethod
    def revive(self) -> None:
        """Make the connection usable again after a statement that was interrupted."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def insert(self, table: str, row: Row) -> None:
        """Insert a row."""

    def replace(self, tables: Mapping[str, Sequence[Row]]) -> None:
        """Replace the contents of tables, all of them or, when one statement fails, none."""
        self.execute("BEGIN")
        try:
            for table, rows in tables.items():
                self.execute(f"DELETE FROM {table}")  # noqa: S608 - names are the suite's own
                for row in rows:
                    self.insert(table, row)
        except BaseException:
            self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def map_table(self, name: str, table: str) -> None:
        """Insert a containers row: a mapping of that name to a table of `create_table`'s shape."""
        self.insert(self.containers, (name, "test", table, "c1", "c2", "c3", "c4", "c5", "PRIMARY"))
