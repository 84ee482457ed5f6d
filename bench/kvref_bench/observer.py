"""What SQL sees of one mapping's rows: the table is found in the containers row, whoever made it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol
from urllib.parse import unquote

import pymysql

from kvref import collations
from kvref_bench.errors import BenchError
from kvref_bench.sql import login

if TYPE_CHECKING:
    from collections.abc import Sequence

Name = int | str
Isolation = Literal["READ COMMITTED", "READ UNCOMMITTED"]
SQLITE: Final = "sqlite:///"
LOCK_WAIT_TIMEOUT: Final = 1205


class Place(NamedTuple):
    """Where the rows of a mapping are: a table as SQL names it, and its key column."""

    table: str
    key: str


class Observer(Protocol):
    """One connection; every statement is a transaction of its own."""

    def present(self, keys: Sequence[Name]) -> set[Name]:
        """Return those of the keys that have a row which this connection sees."""

    def delete(self, keys: Sequence[Name]) -> None:
        """Delete the rows of the keys."""

    def close(self) -> None:
        """Close the connection."""


class InnoDB:
    """An observer of a MySQL or MariaDB server.

    dsn, mapping: as of `observe`. isolation: of its reads. patience: seconds that it waits for a row lock.
    """

    def __init__(self, dsn: str, mapping: str, isolation: Isolation = "READ COMMITTED", patience: int = 50) -> None:
        self._connection = login.parse(dsn).connect()
        containers = "SELECT db_schema, db_table, key_columns FROM innodb_memcache.containers WHERE name = %s"
        with self._connection.cursor() as cursor:
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")
            cursor.execute("SET SESSION innodb_lock_wait_timeout = %s", (patience,))
            cursor.execute(containers, (mapping,))
            rows = cursor.fetchall()
        self._place = _place(rows, mapping, "`")

    def present(self, keys: Sequence[Name]) -> set[Name]:
        """Return those of the keys that have a row which this connection sees."""
        statement = f"SELECT {self._place.key} FROM {self._where()}"  # noqa: S608 - names of the containers row, quoted
        return {_name(row[0]) for row in self._run(statement, keys)}

    def delete(self, keys: Sequence[Name]) -> None:
        """Delete the rows of the keys."""
        self._run(f"DELETE FROM {self._where()}", keys)  # noqa: S608 - as above

    def lock(self, keys: Sequence[Name]) -> bool:
        """Wait until no other transaction has locked a row of the keys; False when that took too long."""
        # One by one: with all of them a small table is read whole, and rows of others are waited for.
        key, table = self._place.key, self._place.table
        statement = f"SELECT {key} FROM {table} WHERE {key} = %s FOR UPDATE"  # noqa: S608 - as above
        try:
            with self._connection.cursor() as cursor:
                for name in keys:
                    cursor.execute(statement, (name,))
        except pymysql.err.OperationalError as error:
            if error.args[0] != LOCK_WAIT_TIMEOUT:
                raise
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _where(self) -> str:
        return f"{self._place.table} WHERE {self._place.key} IN %s"

    def _run(self, statement: str, keys: Sequence[Name]) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, (list(keys),))
            return cursor.fetchall()


class SQLite:
    """An observer of a SQLite file that kvref serves; it sees what is committed.

    dsn, mapping: as of `observe`.
    """

    def __init__(self, dsn: str, mapping: str) -> None:
        path = Path(unquote(dsn.removeprefix(SQLITE)))
        if not path.is_file():
            raise BenchError(f"--sql {dsn!r}: there is no file {path}; name the store of the server")
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        collations.register(self._connection)
        containers = "SELECT db_schema, db_table, key_columns FROM containers WHERE name = ?"
        rows = self._connection.execute(containers, (mapping,)).fetchall()
        self._place = _place([self._in_one_file(*row) for row in rows], mapping, '"')

    def present(self, keys: Sequence[Name]) -> set[Name]:
        """Return those of the keys that have a row which this connection sees."""
        return {_name(row[0]) for row in self._run(f"SELECT {self._place.key}", keys)}

    def delete(self, keys: Sequence[Name]) -> None:
        """Delete the rows of the keys."""
        self._run("DELETE", keys)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _in_one_file(self, schema: str, table: str, key: str) -> tuple[str, str, str]:
        # SQLite has no schemas in one file: the table called literally so, where there is one.
        names = self._connection.execute(
            "SELECT 1 FROM sqlite_schema WHERE name = ?", (f"{schema}.{table}",)
        ).fetchall()
        return ("", f"{schema}.{table}" if names else table, key)

    def _run(self, what: str, keys: Sequence[Name]) -> list[Any]:
        marks = ", ".join("?" * len(keys))
        statement = f"{what} FROM {self._place.table} WHERE {self._place.key} IN ({marks})"
        return self._connection.execute(statement, list(keys)).fetchall()


def observe(dsn: str, mapping: str) -> Observer:
    """Open a connection that sees what is committed.

    dsn: of a MySQL or MariaDB server, or `sqlite:///PATH`. mapping: name of a row of `containers`.

    Raises:
        BenchError: the DSN cannot be read, the database not reached, or it has no such mapping.
    """
    return SQLite(dsn, mapping) if dsn.startswith(SQLITE) else InnoDB(dsn, mapping)


def _place(rows: Sequence[Any], mapping: str, quote: str) -> Place:
    if not rows:
        raise BenchError(f"containers has no row {mapping!r}; prepare the scenario's table on this server first")
    schema, table, key = (str(each) for each in rows[0])
    quoted = [f"{quote}{each.replace(quote, quote * 2)}{quote}" for each in (schema, table, key)]
    return Place(f"{quoted[0]}.{quoted[1]}" if schema else quoted[1], quoted[2])


def _name(cell: int | str | bytes) -> Name:
    return cell.decode() if isinstance(cell, bytes) else cell
