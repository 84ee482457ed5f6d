"""MySQL: the plugin's schema `innodb_memcache`, the suite's tables in database `test`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pymysql
from pymysql.constants import ER

from kvref_conformance.errors import CannotJudge, NotRun
from kvref_conformance.sql import vitess
from kvref_conformance.sql.base import Database, Row, literal

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor


# No statement of the suite takes long; one that waits for a lock that is never released fails after this time.
READ_SECONDS: Final = 60


class MySql(Database):
    """A connection to a MySQL server.

    Args:
        host: host name or address.
        port: TCP port.
        user: account.
        password: its password, may be empty.
        unix_socket: path of the socket, instead of host and port.

    Raises:
        CannotJudge: the server cannot be reached, or has no database innodb_memcache or test.
    """

    def __init__(self, host: str, port: int, user: str, password: str, unix_socket: str | None) -> None:
        super().__init__("mysql")
        self._where = (host, port, user, password, unix_socket)
        self._connect = partial(
            pymysql.connect,
            host=host,
            port=port,
            user=user,
            password=password,
            unix_socket=unix_socket,
            database="test",
            autocommit=True,
            connect_timeout=10,
            read_timeout=READ_SECONDS,
        )
        try:
            self._connection: Connection[Cursor] = self._connect()
            self.query(f"SELECT COUNT(*) FROM {self.containers}")  # noqa: S608 - a constant
        except pymysql.MySQLError as error:
            where = unix_socket or f"{host}:{port}"
            raise CannotJudge(f"--sql: cannot use the MySQL server at {where}: {error.args[-1]}") from error

    def query(self, statement: str) -> list[Row]:
        """Run a SELECT and return its rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]

    def execute(self, statement: str) -> None:
        """Run a statement without rows; a table that it makes in Vitess gets a vindex of its key.

        Raises:
            NotRun: it makes a view in Vitess.
        """
        if self._is_vitess and vitess.makes_view(statement):
            raise NotRun("needs views: vtgate does not change rows by a view")
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
        if self._is_vitess and (name := vitess.created(statement)):
            vitess.add_vindex(self.query, name, vitess.key_of(self.query, name))

    @property
    def _is_vitess(self) -> bool:
        return "Vitess" in str(self._connection.server_version)  # type: ignore[attr-defined]

    def create_table(self, name: str, columns: str, key: str = "") -> None:
        """Create an InnoDB table; text columns without a character set take the server's.

        In Vitess, a vindex of the key column finds the shard of a row; one that compares texts as collations do.
        """
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({columns}) ENGINE=INNODB")
        if self._is_vitess:
            vitess.add_vindex(self.query, name, key)

    def insert(self, table: str, row: Row) -> None:
        """Insert a row; vtgate wants the columns by name, until it has seen a new table."""
        statement = f"INSERT INTO {table} VALUES ({', '.join(map(literal, row))})"  # noqa: S608 - own names
        self.execute(vitess.with_columns(self.query, statement) if self._is_vitess else statement)

    def let_flags_be_null(self, *, allowed: bool) -> None:
        """Redefine the column."""
        self.execute(
            f"ALTER TABLE {self.containers} MODIFY flags VARCHAR(250) {'' if allowed else 'NOT NULL'} DEFAULT '0'"
        )

    def tables(self, prefix: str) -> list[str]:
        """Return the names of the tables of `test` that begin so."""
        rows = self.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'test'")
        return [str(name) for (name,) in rows if str(name).startswith(prefix)]

    def product(self) -> str:
        """Return `MySQL 8.0.33`, `MariaDB 10.11.14` or `Vitess 8.4.6`, the version of MySQL that vtgate reports."""
        if self._is_vitess:
            reported = str(self._connection.server_version)  # type: ignore[attr-defined]
            return f"Vitess {reported.partition('-')[0]}"
        [[version]] = self.query("SELECT VERSION()")
        number, _, more = str(version).partition("-")
        return f"{'MariaDB' if more.startswith('MariaDB') else 'MySQL'} {number}"

    def has_plugin(self) -> bool:
        """Return whether daemon_memcached is active."""
        states = self.query(
            "SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = 'daemon_memcached'"
        )
        return states == [("ACTIVE",)]

    def over_sql(self) -> str:
        """Return galera, vitess, mysql or mariadb of a server without the plugin; else ""."""
        over = super().over_sql()
        clustered = over == "mariadb" and self.query("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'") == [("wsrep_on", "ON")]
        return "galera" if clustered else over

    def load_plugin_again(self) -> None:
        """Unload daemon_memcached and load it."""
        try:
            self.execute("UNINSTALL PLUGIN daemon_memcached")
        except pymysql.err.OperationalError as error:
            if error.args[0] != ER.SP_DOES_NOT_EXIST:  # an interrupted reload may have unloaded it already
                raise
        self.execute("INSTALL PLUGIN daemon_memcached SONAME 'libmemcached.so'")

    def revive(self) -> None:
        """Reconnect if an interrupt closed the connection."""
        if not self._connection.open:
            self._connection = self._connect()

    def connect_again(self) -> None:
        """Close and open the connection: a restarted server closed it."""
        self.close()
        self._connection = self._connect()

    def another(self) -> MySql:
        """Open a further connection to the same server."""
        return MySql(*self._where)

    def close(self) -> None:
        """Close the connection, also one that the server has closed."""
        if self._connection.open:
            self._connection.close()
