"""SQLite: kvref's own file, with the configuration tables and the mapped tables side by side.

Statements are MySQL's here too; `session.py` carries them out as SQLite's.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Final

from kvref_conformance.errors import CannotJudge
from kvref_conformance.sql.base import Database, Row
from kvref_conformance.sql.layout import EXPECTED
from kvref_conformance.translation.schema import DEFAULT_SCHEMA
from kvref_conformance.translation.session import Result, Session
from kvref_conformance.translation.translate import Translator

TABLES: Final = f"{DEFAULT_SCHEMA}."


class Sqlite(Database):
    """A connection to the file behind a kvref server.

    Args:
        path: the file; it must exist.
        version: of the MySQL server whose defaults its tables shall have, such as `8.0.33`.
        known: what another connection to the file knows of its tables.

    Raises:
        CannotJudge: no such file, no database, or no table `containers` in it.
    """

    def __init__(self, path: str, version: str, known: tuple[Translator, threading.Lock] | None = None) -> None:
        super().__init__("sqlite")
        if not Path(path).is_file():
            raise CannotJudge(f"--sql: no file {path!r}; name the file that `kvref serve --store` uses")
        self._path, self._version = path, version
        self._known = known or (Translator(version), threading.Lock())
        no_store = f"--sql: {path!r} is not a store of kvref ({EXPECTED})"
        try:
            self._session = Session(Path(path), *self._known)
        except sqlite3.Error as error:
            raise CannotJudge(f"{no_store}: {error}") from error
        try:
            self.query(f"SELECT COUNT(*) FROM {self.containers}")  # noqa: S608 - a constant
        except sqlite3.Error as error:
            self.close()
            raise CannotJudge(f"{no_store}: {error}") from error

    def query(self, statement: str) -> list[Row]:
        """Run a SELECT and return its rows."""
        return [tuple(row) for row in self._result(statement)["rows"]]

    def execute(self, statement: str) -> None:
        """Run a statement without rows."""
        self._result(statement)

    def create_table(self, name: str, columns: str, key: str = "") -> None:  # noqa: ARG002 - for shards
        """Create a table with SQLite's forms of the types and collations."""
        self.execute(f"CREATE TABLE {name} ({columns})")

    def let_flags_be_null(self, *, allowed: bool) -> None:
        """Do nothing: kvref declares the column so."""

    def tables(self, prefix: str) -> list[str]:
        """Return the names of the tables that begin so."""
        with closing(sqlite3.connect(self._path)) as connection:  # the session knows those only that it made
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        names = [str(name).removeprefix(TABLES) for (name,) in rows]
        return [name for name in names if name.startswith(prefix)]

    def product(self) -> str:
        """Return `SQLite 3.40.1`."""
        return f"SQLite {sqlite3.sqlite_version}"

    def has_plugin(self) -> bool:
        """Return that there is no C plugin behind a SQLite file."""
        return False

    def load_plugin_again(self) -> None:
        """Refuse: no plugin is behind a SQLite file."""
        raise CannotJudge("no C plugin is behind a SQLite file")

    def revive(self) -> None:
        """Do nothing: an interrupted statement leaves the connection usable."""

    def connect_again(self) -> None:
        """Do nothing: there is no server process."""

    def another(self) -> Sqlite:
        """Open the file once more."""
        return Sqlite(self._path, self._version, self._known)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _result(self, statement: str) -> Result:
        result = self._session.execute(statement)
        if "error" in result:
            raise sqlite3.OperationalError(f"{result['error'][1]}: {statement}")
        return result
