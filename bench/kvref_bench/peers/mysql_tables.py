"""The tables behind an endpoint in MySQL or MariaDB."""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import ER

from kvref_bench.errors import BenchError
from kvref_bench.peers.base_tables import DATABASE, Tables, cells, key_length, key_type, kind, value_columns, value_type
from kvref_bench.sql import login as logins

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pymysql.cursors import Cursor

    from kvref_bench.scenario.records import Table
    from kvref_bench.sql.login import Login

CONTAINERS: Final = "innodb_memcache.containers"
PLUGIN: Final = "daemon_memcached"
STATEMENT: Final = 1 << 20  # bytes: a quarter of what 5.6 takes
# Names as regular expressions.
COUNTED: Final = (
    "Binlog_", "Bytes_", "Com_", "Connections$", "Handler_", "Innodb_buffer_pool_read", "Innodb_data_fsyncs$",
    "Innodb_log_", "Innodb_os_log_", "Innodb_row_lock_waits$", "Innodb_rows_", "Questions$", "Threads_created$",
)  # fmt: skip
VARIABLES: Final = "SHOW GLOBAL VARIABLES WHERE variable_name RLIKE %s"
CONFIGURING: Final = "^(innodb|daemon_memcached|log_bin$|sync_|binlog|query_cache|max_connections$|thread_handling$)"
HIDDEN: Final = re.compile("(^|_)(host|hostname|file|error|timestamp)$")
# What asking for them adds to.
OURS: Final = ("Com_show_status",)


class MySQLTables(Tables):
    """The database `kvref_bench` of a server, and the plugin's configuration where it has one."""

    containers_table = CONTAINERS
    options_table = "innodb_memcache.config_options"
    mark = "%s"
    block = 250_000
    serial = "id INT NOT NULL AUTO_INCREMENT PRIMARY KEY"

    def __init__(self, login: Login) -> None:
        self.login = login

    @contextmanager
    def cursor(self, doing: str) -> Iterator[Cursor]:
        """Yield a cursor for the block.

        doing: completes "… could not …" in the BenchError that every error of the server becomes.
        """
        with closing(self.login.connect()) as connection, connection.cursor() as cursor:
            try:
                yield cursor
            except pymysql.MySQLError as error:
                where = self.login.where
                raise BenchError(f"the SQL server at {where} could not {doing}: {logins.cause(error)}") from error

    def query(self, statement: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """See `Tables`."""
        with self.cursor(f"run {statement!r}") as cursor:
            cursor.execute(statement, arguments or None)
            return list(cursor.fetchall())

    def name(self, table: Table) -> str:
        """See `Tables`."""
        return f"{DATABASE}.{table.name}"

    def types(self, table: Table) -> tuple[str, str]:
        """See `Tables`."""
        text = f" CHARACTER SET {table.collation.split('_')[0]} COLLATE {table.collation}"
        key, value = (f"{each}{text if kind(each) == 'text' else ''}" for each in (key_type(table), value_type(table)))
        return key, value

    def create(self, table: Table) -> None:
        """See `Tables`."""
        key, value = self.types(table)
        with self.cursor(f"make the table {DATABASE}.{table.name}") as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET latin1 COLLATE latin1_bin")
            cursor.execute(f"USE {DATABASE}")
            cursor.execute(f"DROP TABLE IF EXISTS {table.name}")
            cursor.execute(f"CREATE TABLE {table.name} ({self.columns(table)}) ENGINE=InnoDB")
            for name, body in table.procedures.items():
                cursor.execute(f"DROP PROCEDURE IF EXISTS {name}")
                cursor.execute(f"CREATE PROCEDURE {name} (IN the_key {key}, IN the_value {value}) {body}")

    def insert(self, table: Table, rows: list[tuple[bytes, bytes]]) -> None:
        """See `Tables`: many rows in each INSERT."""
        at_once = max(1, STATEMENT // (2 * (key_length(table) + table.values.sizes[1]) + 16))
        names = ", ".join(["k", *value_columns(table)])
        with self.cursor(f"fill the table {DATABASE}.{table.name}") as cursor:
            for first in range(0, len(rows), at_once):
                some = rows[first : first + at_once]
                literals = (",".join(starmap(_literal, cells(table, row))) for row in some)
                cursor.execute(
                    f"INSERT INTO {self.name(table)} ({names}) VALUES {','.join(f'({each})' for each in literals)}"
                )

    def ddl(self, table: Table) -> str:
        """See `Tables`."""
        [[_, made]] = self.query(f"SHOW CREATE TABLE {DATABASE}.{table.name}")
        bodies = [self.query(f"SHOW CREATE PROCEDURE {DATABASE}.{name}")[0][2] for name in table.procedures]
        return ";\n".join(map(str, [made, *bodies]))

    def variables(self) -> dict[str, str]:
        """See `Tables`: of InnoDB, the plugin and the log, without names of files."""
        named = {str(name): str(value) for name, value in self.query(VARIABLES, (CONFIGURING,))}
        return {name: named[name] for name in sorted(named) if "/" not in named[name] and not HIDDEN.search(name)}

    def counters(self) -> dict[str, int]:
        """See `Tables`."""
        found = self.query("SHOW GLOBAL STATUS WHERE variable_name RLIKE %s", (f"^({'|'.join(COUNTED)})",))
        return {str(name): int(value) for name, value in found if str(value).isdigit() and name not in OURS}

    def version(self) -> str:
        """Return what the server says of itself, e.g. `8.0.33`."""
        return str(self.query("SELECT VERSION()")[0][0])

    def has_plugin(self) -> bool:
        """Return whether daemon_memcached is active."""
        rows = self.query("SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = %s", (PLUGIN,))
        return rows == [("ACTIVE",)]

    def unload_plugin(self) -> None:
        """Unload daemon_memcached, which lets go of every table."""
        with self.cursor(f"unload {PLUGIN}") as cursor:
            try:
                cursor.execute(f"UNINSTALL PLUGIN {PLUGIN}")
            except pymysql.err.OperationalError as error:
                if error.args[0] != ER.SP_DOES_NOT_EXIST:  # what was interrupted may have unloaded it
                    raise

    def load_plugin(self) -> None:
        """Load daemon_memcached, which reads its configuration."""
        with self.cursor(f"load {PLUGIN}") as cursor:
            cursor.execute(f"INSTALL PLUGIN {PLUGIN} SONAME 'libmemcached.so'")


def _literal(of: str, content: bytes) -> str:
    return content.decode() if of == "number" else f"x'{content.hex()}'"
