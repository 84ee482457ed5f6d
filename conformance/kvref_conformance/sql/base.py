"""The suite's interface to a database, and the statements that are the same on both."""

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
POLICY_COLUMNS: Final = "policy_name, get_policy, set_policy, delete_policy, flush_policy"
# The plugin's demo_test; the server's default collation compares keys without case.
DEMO_COLUMNS: Final = "c1 VARCHAR(32) PRIMARY KEY, c2 VARCHAR(1024), c3 INT, c4 BIGINT UNSIGNED, c5 INT"


class Database(ABC):
    """A connection to the tables behind an endpoint: statements are MySQL's, and each commits itself.

    Args:
        engine: what it is, as cases name it: mysql or sqlite.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.containers = "innodb_memcache.containers"
        self.options = "innodb_memcache.config_options"
        self.policies = "innodb_memcache.cache_policies"

    @abstractmethod
    def query(self, statement: str) -> list[Row]:
        """Run a SELECT and return its rows."""

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Run a statement without rows."""

    @abstractmethod
    def create_table(self, name: str, columns: str, key: str = "") -> None:
        """Create a table.

        Args:
            name: of the table.
            columns: the text in the parentheses, in MySQL's syntax.
            key: the key column of its mapping; empty: the first column.
        """

    @abstractmethod
    def let_flags_be_null(self, *, allowed: bool) -> None:
        """Allow or forbid NULL in the column flags of `containers`, which the plugin's own script declares NOT NULL."""

    @abstractmethod
    def tables(self, prefix: str) -> list[str]:
        """Return the names of the tables that begin so."""

    @abstractmethod
    def product(self) -> str:
        """Return what it is and which version, such as `MySQL 8.0.33`."""

    @abstractmethod
    def has_plugin(self) -> bool:
        """Return whether the C plugin is active in this server."""

    @abstractmethod
    def load_plugin_again(self) -> None:
        """Unload the C plugin and load it, so that it reads its configuration."""

    @abstractmethod
    def revive(self) -> None:
        """Make the connection usable again after a statement that was interrupted."""

    @abstractmethod
    def connect_again(self) -> None:
        """Make the connection usable after the server may have been started again."""

    @abstractmethod
    def another(self) -> Database:
        """Open a further connection to the same tables; the caller closes it."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def is_engine(self, name: str) -> bool:
        """Return whether it is what a case needs: its engine, or `plugin`, a server with the C plugin."""
        return self.has_plugin() if name == "plugin" else name == self.engine

    def over_sql(self) -> str:
        """Return mysql or mariadb of a server without the plugin, which an endpoint reaches through SQL; else ""."""
        return "" if self.engine != "mysql" or self.has_plugin() else self.product().partition(" ")[0].lower()

    def insert(self, table: str, row: Row) -> None:
        """Insert a row of texts, numbers and NULL."""
        self.execute(f"INSERT INTO {table} VALUES ({', '.join(map(literal, row))})")  # noqa: S608 - own names

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
        """Insert a containers row: a mapping of that name to a table of DEMO_COLUMNS."""
        self.insert(self.containers, (name, "test", table, "c1", "c2", "c3", "c4", "c5", "PRIMARY"))


def literal(cell: object) -> str:
    """Return a text, bytes, a number or None as MySQL's SQL."""
    if cell is None or isinstance(cell, int):
        return "NULL" if cell is None else str(cell)
    if isinstance(cell, bytes):
        return f"X'{cell.hex()}'"
    text = str(cell).replace("\\", "\\\\").replace("'", "''").replace("\r", "\\r").replace("\n", "\\n")
    return f"'{text}'"
