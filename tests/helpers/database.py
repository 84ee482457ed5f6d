"""A SQL server with the plugin's schema on it, for tests of kvref over InnoDB."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil

from helpers.commands import kvref
from helpers.live import sql_server_or_skip
from helpers.waiting import until, until_equal
from kvref_testbed.targets import SQLServer


@contextmanager
def database_or_skip(name: str, options: Sequence[str] = ()) -> Iterator[SQLServer]:
    """Start a private SQL server, see `sql_server_or_skip`, and give it the configuration tables and the demo table."""
    with sql_server_or_skip(name, options) as server:
        assert kvref("init", "--demo", "--store", server.dsn).returncode == 0
        yield server


def sql(database: SQLServer, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements as root, each its own transaction, and return what the last one found."""
    with closing(database.connect(60)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def until_rows(database: SQLServer, query: str, rows: list[tuple[Any, ...]]) -> None:
    """Wait until a query finds these rows."""
    # information_schema.innodb_trx is cached for clients that read it more often than every 0.1 s.
    until_equal(lambda: sql(database, query), rows, pause=0.15 if "innodb_trx" in query else 0.02)


def until_one_waits(database: SQLServer) -> None:
    """Wait until one transaction waits for a lock."""
    until_rows(database, "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'", [(1,)])


def map_table(database: SQLServer, name: str, values: str, *columns: str, index: str = "PRIMARY") -> None:
    """Create InnoDB table test.NAME, whose first column is the key, and a container of the same name.

    values: the row's value_columns. columns: as CREATE TABLE has them, with constraints behind them.
    """
    key = columns[0].split()[0]
    sql(
        database,
        f"CREATE TABLE test.{name} ({', '.join(columns)}) ENGINE = InnoDB",
        f"INSERT INTO innodb_memcache.containers VALUES ('{name}', 'test', '{name}', '{key}', '{values}', '0', '0', '0', '{index}')",
    )


def pid(database: SQLServer) -> int:
    """Return the process of a server; its pid_file may be a path inside its own root folder."""
    ((port,),) = sql(database, "SELECT @@port")
    listening = [each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    process = next(each.pid for each in listening if each.laddr.port == port)
    assert process is not None
    return process


@contextmanager
def stopped(database: SQLServer) -> Iterator[None]:
    """Let a server do nothing at all for the block."""
    process = pid(database)
    os.kill(process, signal.SIGSTOP)
    try:
        until(lambda: _states(process) == {"T"})  # a thread that runs may answer once more
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _states(process: int) -> set[str]:
    """Return the states of the threads of a process."""
    return {each.read_text().rpartition(") ")[2][0] for each in Path(f"/proc/{process}/task").glob("*/stat")}
