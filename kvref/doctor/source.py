"""Sources of `kvref doctor`: the tables of a SQLite file, of a server, or of a dump, opened read-only."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from kvref import collations
from kvref.errors import ConfigError, StoreError, install
from kvref.storage.base import MYSQL, without_password
from kvref.storage.config.containers import TableDetails
from kvref.storage.sqlite.errors import of_opening
from kvref.storage.sqlite.file import SCHEME, path_of
from kvref.storage.sqlite.schema import SQLiteCatalog, table_details

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref.engine.mapping import Mapping
    from kvref.profiles import Profile
    from kvref.storage.config.containers import Catalog

LOCK_WAIT: Final = 10.0  # seconds


class Source(ABC):
    """A database or dump whose tables are examined."""

    name: str
    """Shown in reports: the DSN without its password, or the file."""
    notes: list[str]
    """Parts that could not be examined, or were left out."""
    log_refusal: str = ""
    """Why `row_cache_binlog=1` cannot follow the server's binary log, and what to change; "" if it can, or is not for
    this store."""
    version: str = ""
    """Version of the MySQL server, as in `8.0.33`; "" for other servers, or if it is not known."""
    of_mysql: bool = False
    """Whether the tables are of MySQL, so that the plugin may serve them, or may have."""

    @abstractmethod
    def catalog(self, profile: Profile) -> Catalog:
        """Return the tables as a profile reads them."""

    @abstractmethod
    def details(self, schema: str, name: str) -> TableDetails:
        """Return triggers, constraints and columns of a table that the catalog has."""

    def why_missing(self, schema: str, name: str) -> str:  # noqa: ARG002 - a default
        """Return why a table that the catalog lacks may exist; "" if it does not exist."""
        return ""

    def not_granted(self, mapping: Mapping, profile: Profile) -> str:  # noqa: ARG002 - a default
        """Return the privileges that the account lacks on a mapping's table, with the GRANT; "" if none."""
        return ""

    def not_cached(self, mapping: Mapping) -> str:  # noqa: ARG002 - a default
        """Return why `row_cache_binlog=1` does not cache a mapping's rows; "" if it does, or does not apply."""
        return ""


def open_source(dsn: str) -> AbstractContextManager[Source]:
    """Open sqlite:///PATH or mysql://USER@HOST/ for reading.

    Raises:
        ConfigError: another DSN.
        StoreError: the file or server cannot be read; also for errors within the block.
    """
    if dsn.startswith(MYSQL):
        return _mysql(dsn)
    if dsn.startswith(SCHEME):
        return _file(path_of(dsn))
    raise ConfigError(f"store {without_password(dsn)!r}: write sqlite:///PATH or mysql://USER@HOST/")


@contextmanager
def _file(path: Path) -> Iterator[SQLiteSource]:
    if path.is_dir():
        raise StoreError(f"store {path}: it is a directory: name a file")
    if not path.is_file():
        raise StoreError(f"store {path}: there is no such file: `kvref init` creates one")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=LOCK_WAIT)) as connection:
            collations.register(connection)
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            connection.execute("PRAGMA schema_version").fetchone()
            source = SQLiteSource(f"{SCHEME}{path}", connection)
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                source.notes.append(
                    f"the journal mode of the file is {mode}: `kvref serve` and `kvref init` set WAL, which stays"
                )
            yield source
    except sqlite3.Error as error:
        raise of_opening(path, error) from error


class SQLiteSource(Source):
    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        self.name = name
        self.notes = []
        self._connection = connection
        self._catalog: SQLiteCatalog | None = None

    def catalog(self, profile: Profile) -> SQLiteCatalog:
        self._catalog = SQLiteCatalog(self._connection, profile)
        return self._catalog

    def details(self, schema: str, name: str) -> TableDetails:
        source = None if self._catalog is None else self._catalog.source_of(schema, name)
        if self._catalog is None or source is None:
            return TableDetails()
        return table_details(self._connection, self._catalog, source)


@contextmanager
def _mysql(dsn: str) -> Iterator[Source]:
    try:
        import pymysql  # noqa: PLC0415 - an extra

        from kvref.storage.mysql.binlog.follower import refusal  # noqa: PLC0415
        from kvref.storage.mysql.cluster import Nodes  # noqa: PLC0415
        from kvref.storage.mysql.login import cause, parse  # noqa: PLC0415
    except ModuleNotFoundError as lack:
        raise ConfigError(f"store mysql://…: {lack}: {install('mysql')}") from lack
    login = parse(dsn)
    nodes = Nodes(login)
    try:
        with closing(nodes.connect(LOCK_WAIT)) as connection, closing(nodes):
            yield _MySQLSource(without_password(dsn), connection, refusal(login))
    except pymysql.err.MySQLError as error:
        raise StoreError(f"store {without_password(dsn)}: {cause(error)}") from error


class _MySQLSource(Source):
    def __init__(self, name: str, connection: Connection[Cursor], log_refusal: str) -> None:
        from kvref.storage.mysql import vitess  # noqa: PLC0415 - an extra
        from kvref.storage.mysql.login import fetch_all  # noqa: PLC0415

        self.name = name
        self.log_refusal = log_refusal
        of_vitess = vitess.is_gate(connection)
        self.notes = [*vitess.LIMITS] if of_vitess else []
        self._connection = connection
        self._rows = partial(fetch_all, connection)
        version = "".join(str(row[0]) for row in self._rows("SELECT VERSION()"))
        self.of_mysql = "MariaDB" not in version and not of_vitess
        self.version = version if self.of_mysql else ""

    def catalog(self, profile: Profile) -> Catalog:
        from kvref.storage.mysql.schema import MySQLCatalog  # noqa: PLC0415 - an extra

        return MySQLCatalog(self._connection, profile)

    def details(self, schema: str, name: str) -> TableDetails:
        from kvref.storage.mysql.schema import table_details as mysql_details  # noqa: PLC0415 - an extra

        return mysql_details(self._connection, schema, name)

    def not_granted(self, mapping: Mapping, profile: Profile) -> str:
        from kvref.storage.mysql.grants import missing  # noqa: PLC0415 - an extra

        return missing(self._rows, mapping, profile)

    def not_cached(self, mapping: Mapping) -> str:
        from kvref.storage.mysql.binlog.eligibility import terms  # noqa: PLC0415 - an extra

        return terms(self._rows, mapping, 0.0).refusal
