"""The SQL side of a target over MySQL or MariaDB: schemas created again for each conversation, and SQL connections."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, Protocol

import pymysql

from kvref.errors import SuiteError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.holes import Json

SYSTEM_SCHEMAS: Final = ("information_schema", "mysql", "performance_schema", "sys")
SCHEMAS: Final = "SELECT schema_name FROM information_schema.schemata"
# Longer than InnoDB waits for a row lock (50 s). Some statements wait without limit: on 5.6 a DROP DATABASE while one
# of its tables is mapped (columns:side-020).
STATEMENT_SECONDS: Final = 70.0


class Server(Protocol):
    """Who answers SQL."""

    def connect(self, patience: float) -> Connection[Cursor]:
        """Open a SQL connection with autocommit; a statement is given up after so many seconds."""


class Restartable(Protocol):
    """A server program that stops and starts on the same data."""

    def start(self) -> None:
        """Start it."""

    def stop(self) -> None:
        """Stop it in order."""

    def kill(self) -> None:
        """Kill it with SIGKILL."""


def start_again(server: Restartable, action: str) -> None:
    """Do the `restart` or `kill9` of a server step.

    Raises:
        SuiteError: the action is another one.
    """
    if action == "restart":
        server.stop()
    elif action == "kill9":
        server.kill()
    else:
        raise SuiteError(f"a server step is reload, restart or kill9, not {action!r}")
    server.start()


class MySQLDatabase:
    """The databases of one server.

    Args:
        server: whose databases are dropped and made.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connections: dict[str, Connection[Cursor]] = {}

    def query(self, *statements: str) -> tuple[tuple[object, ...], ...]:
        """Run statements on a connection of their own and return the rows of the last; raises pymysql's errors."""
        rows: tuple[tuple[object, ...], ...] = ()
        with closing(self._server.connect(STATEMENT_SECONDS)) as connection:
            for statement in statements:
                rows = rows_of(connection, statement)
        return rows

    def fill(self, script: Iterable[str], conversation: Conversation) -> None:
        """Drop every schema that is not the server's own, and make those of a conversation.

        Args:
            script: the statements of the plugin's own schema.
            conversation: its set-up follows.

        Raises:
            SuiteError: a statement failed.
        """
        with closing(self._server.connect(STATEMENT_SECONDS)) as connection:
            ((version,),) = rows_of(connection, "SELECT VERSION()")
            schemas = [schema for (schema,) in rows_of(connection, SCHEMAS) if schema not in SYSTEM_SCHEMAS]
            drops = [f"DROP DATABASE `{schema}`" for schema in schemas]
            for statement in (*drops, "CREATE DATABASE test", *script, *conversation.sql):
                try:
                    rows_of(connection, statement)
                except pymysql.err.MySQLError as error:
                    where = f"{conversation.id}: set-up on {version}"
                    raise SuiteError(f"{where}: {statement!r} failed: {error}") from error

    def execute(self, name: str, statement: str) -> dict[str, Json]:
        """Run a statement; see `ReplayTarget.execute`."""
        try:
            if name not in self._connections:
                self._connections[name] = self._server.connect(STATEMENT_SECONDS)
            with self._connections[name].cursor() as cursor:
                affected = cursor.execute(statement)
                if not cursor.description:
                    return {"affected": affected}
                return {"rows": [[_cell(cell) for cell in row] for row in cursor.fetchall()]}
        except pymysql.err.MySQLError as error:
            number, text = (*error.args, 0, "")[:2]
            return {"error": [number, str(text)]}

    def close(self) -> None:
        """Close the SQL connections of a conversation; the server rolls back what they left open."""
        for connection in self._connections.values():
            if connection.open:
                connection.close()
        self._connections.clear()


def rows_of(connection: Connection[Cursor], statement: str) -> tuple[tuple[object, ...], ...]:
    """Run a statement and return its rows; raises pymysql's errors."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return tuple(cursor.fetchall())


def _cell(cell: object) -> Json:
    if cell is None or isinstance(cell, int | float | str):
        return cell
    return cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)
