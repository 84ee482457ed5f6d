"""SQLite: kvref's own file, with the configuration tables and the mapped tables side by side."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kvref_conformance.errors import CannotJudge
from kvref_conformance.sql.base import Database, Row


class Sqlite(Database):
    """A connection to the file behind a kvref server.

    Args:
        path: the file; it must exist.

    Raises:
        CannotJudge: no such file, no database, or no table `containers` in it.
    """

    def __init__(self, path: str) -> None:
        super().__init__("containers", "config_options")
        if not Path(path).is_file():
            raise CannotJudge(f"--sql: no file {path!r}; name the file that `kvref serve --store` uses")
        # Autocommit: a SELECT begins a fresh view each time, as the server commits beside us.
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None)
        try:
            self.query("SELECT COUNT(*) FROM containers")
        except sqlite3.Error as error:
            self.close()
            raise CannotJudge(f"--sql: {path!r} is no store of kvref: {error}") from error

    def query(self, statement: str) -> list[Row]:
        """Run a SELECT and return its rows."""
        return list(self._connection.execute(statement).fetchall())

    def execute(self, statement: str) -> None:
        """Run a statement without rows."""
        self._connection.execute(statement)

    def insert(self, table: str, row: Row) -> None:
        """Insert a row."""
        self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - own names

    def create_table(self, name: str) -> None:
        """Create a table of the shape of demo_test, keys compared without case."""
        self.execute(
            f"CREATE TABLE {name} (c1 VARCHAR(32) NOT NULL COLLATE NOCASE PRIMARY KEY, c2 VARCHAR(1024), c3 INT, "
            "c4 BIGINT UNSIGNED, c5 INT)"
        )

    def tables(self, prefix: str) -> list[str]:
        """Return the names of the tables that begin so."""
        rows = self.query("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [str(name) for (name,) in rows if str(name).startswith(prefix)]

    def has_plugin(self) -> bool:
        """Tell that no C plugin is behind a SQLite file."""
        return False

    def load_plugin_again(self) -> None:
        """Refuse: no plugin is behind a SQLite file."""
        raise CannotJudge("no C plugin is behind a SQLite file")

    def revive(self) -> None:
        """Do nothing: an interrupted statement leaves the connection usable."""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
