"""Tables to fuzz: one as the demo's, one of several value columns, one of numbers, and the others' own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from helpers.commands import kvref
from helpers.database import sql
from helpers.serving import Served, serving

from fuzz.other_clients import NAME
from kvref_testbed.targets import SQLServer

NEIGHBOUR: Final = NAME.decode()
_OPTIONAL: Final = (
    "f INT UNSIGNED NOT NULL DEFAULT 0, c BIGINT UNSIGNED NOT NULL DEFAULT 0, e INT UNSIGNED NOT NULL DEFAULT 0"
)
TABLES: Final = {
    "fuzz": f"k VARCHAR(250) NOT NULL PRIMARY KEY, v VARCHAR(1024), {_OPTIONAL}",
    "wide": f"k VARCHAR(40) NOT NULL PRIMARY KEY, a VARCHAR(20), b VARCHAR(200), {_OPTIONAL}",
    "ints": "k INT NOT NULL PRIMARY KEY, v INT",
    NEIGHBOUR: f"k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(1024), {_OPTIONAL}",
}
CONTAINERS: Final = {
    "fuzz": ("v", "f", "c", "e"),
    "wide": ("a|b", "f", "c", "e"),
    "ints": ("v", "0", "0", "0"),
    NEIGHBOUR: ("v", "f", "c", "e"),
}
# Small caches, so that what is left of growth would be a leak.
SETTINGS: Final = ("--set", "row_cache_bytes=1048576", "--set", "innodb_lock_wait_timeout=5")


def rows() -> list[tuple[str, ...]]:
    """Return the rows of `containers`; the first is of the default mapping."""
    return [(name, "test", name, "k", *columns, "PRIMARY") for name, columns in CONTAINERS.items()]


@contextmanager
def over_sqlite(folder: Path, *options: str) -> Iterator[Served]:
    """Serve the tables from a new file for the block."""
    path = folder / "fuzz.sqlite"
    assert kvref("init", "--demo", "--store", f"sqlite:///{path}").returncode == 0
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM containers")
        for name, columns in TABLES.items():
            db.execute(f'CREATE TABLE "test.{name}" ({columns})')
        db.executemany(f"INSERT INTO containers VALUES ({', '.join('?' * 9)})", rows())
    with serving(path, *SETTINGS, *options) as served:
        yield served


@contextmanager
def over_mysql(database: SQLServer, *options: str) -> Iterator[Served]:
    """Serve the tables, created again, from a database for the block."""
    sql(database, "DELETE FROM innodb_memcache.containers")
    for name, columns in TABLES.items():
        sql(database, f"DROP TABLE IF EXISTS test.{name}", f"CREATE TABLE test.{name} ({columns}) ENGINE = InnoDB")
    for row in rows():
        sql(database, f"INSERT INTO innodb_memcache.containers VALUES {row!r}")
    with serving(database.dsn, *SETTINGS, *options) as served:
        yield served
