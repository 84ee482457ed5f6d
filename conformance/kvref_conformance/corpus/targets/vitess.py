"""The replay target of `kvref serve` over Vitess: tables are made again in the keyspaces that are there."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import pymysql

from kvref.errors import SuiteError
from kvref_conformance.corpus.targets.innodb import InnoDBTarget
from kvref_conformance.corpus.targets.mysql_database import STATEMENT_SECONDS, MySQLDatabase, rows_of
from kvref_conformance.corpus.targets.sqlite import plugin_schema
from kvref_conformance.sql import vitess

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pymysql.connections import Connection as SQLConnection
    from pymysql.cursors import Cursor

    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.corpus.targets.innodb import Database
    from kvref_conformance.corpus.targets.kvref_process import Machine

KEYSPACES: Final = ("innodb_memcache", "test")


class Below(Protocol):
    """The mysqld of all shards."""

    def query(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements with autocommit, and return what the last one found; raises pymysql's errors."""


class VitessTarget(InnoDBTarget):
    """The `ReplayTarget` of kvref over Vitess that runs, whose owner ends both.

    Args:
        machine: `kvref serve` from vtgate.
        gate: all tables of `KEYSPACES` are dropped, again and again.
        below: has the global variables.
        version: the MySQL version whose recordings it is compared with.
    """

    def __init__(self, machine: Machine, gate: Database, below: Below, version: str) -> None:
        super().__init__(machine, gate, version, VitessDatabase(gate), plugin_schema())
        self._below = below

    def _set_up(self, conversation: Conversation, shared: Sequence[str]) -> None:
        self._below.query(*[f"SET GLOBAL {setting}" for setting in shared])
        self._database.fill(self._schema, conversation)


class VitessDatabase(MySQLDatabase):
    """The keyspaces behind one vtgate."""

    def fill(self, script: Iterable[str], conversation: Conversation) -> None:
        """Drop all tables, and make those of a conversation, each with a vindex; see `MySQLDatabase.fill`."""
        with closing(self._server.connect(STATEMENT_SECONDS)) as connection:
            for keyspace in KEYSPACES:
                for (table,) in rows_of(connection, f"SHOW TABLES FROM {keyspace}"):
                    rows_of(connection, f"DROP TABLE {keyspace}.`{table}`")
            for statement in (*script, *conversation.sql):
                try:
                    self._run(connection, statement)
                except pymysql.err.MySQLError as error:
                    raise SuiteError(f"{conversation.id}: set-up on Vitess: {statement!r} failed: {error}") from error

    def execute(self, name: str, statement: str) -> dict[str, Json]:
        """Run a statement; see `ReplayTarget.execute`."""
        try:
            return super().execute(name, vitess.with_columns(self.query, statement))
        except pymysql.err.MySQLError as error:
            number, text = (*error.args, 0, "")[:2]
            return {"error": [number, str(text)]}

    def _run(self, connection: SQLConnection[Cursor], statement: str) -> None:
        query = partial(rows_of, connection)
        query(vitess.with_columns(query, statement))
        name = vitess.created(statement)
        if name.startswith(f"{KEYSPACES[1]}."):
            vitess.add_vindex(query, name, "k" if name != "test.demo_test" else "c1")
