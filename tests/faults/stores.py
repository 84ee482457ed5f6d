"""What kvref serves in tests of faults: a DSN, and the rows as SQL sees them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from helpers.commands import kvref
from helpers.database import sql

from kvref import collations
from kvref_testbed.targets import SQLServer

Rows = dict[str, str]


@dataclass
class Store:
    """Where rows are.

    Args:
        dsn: for `kvref serve`.
        rows: reads the demo table by SQL.
        file: of SQLite.
        server: of MySQL or MariaDB.
    """

    dsn: str
    rows: Callable[[], Rows]
    file: Path | None = None
    server: SQLServer | None = None


def sqlite_store(file: Path) -> Store:
    """Make a SQLite file with the configuration tables and an empty demo table."""
    assert kvref("init", "--demo", "--store", f"sqlite:///{file}").returncode == 0
    in_file(file, "DELETE FROM demo_test")
    return Store(f"sqlite:///{file}", lambda: dict(in_file(file, "SELECT c1, c2 FROM demo_test")), file=file)


def sql_store(server: SQLServer) -> Store:
    """Take a started server's demo table, emptied."""
    sql(server, "DELETE FROM test.demo_test")
    return Store(server.dsn, lambda: dict(sql(server, "SELECT c1, c2 FROM test.demo_test")), server=server)


def in_file(file: Path, *statements: str) -> list[tuple[str, str]]:
    """Run statements on a SQLite file, and return what the last one found."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=60)) as connection:
        collations.register(connection)
        found: list[tuple[str, str]] = []
        for statement in statements:
            found = connection.execute(statement).fetchall()
        return found
