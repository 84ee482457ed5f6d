"""The layout of the tables behind an endpoint that the suite expects, and what is wrong with those that are there."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

import pymysql

from kvref_conformance.sql.base import CONTAINER_COLUMNS, POLICY_COLUMNS

if TYPE_CHECKING:
    from kvref_conformance.sql.base import Database

# A row that no endpoint can use: its table does not exist.
PROBE: Final = ("kvc_probe", "test", "kvc_missing", "k", "v", None, None, None, "PRIMARY")
EXPECTED: Final = (
    "the suite expects containers, config_options and cache_policies, in MySQL in the schema innodb_memcache, and makes"
    ' its own tables in the schema test (in SQLite: tables named "test.NAME"); `kvref implement DIR` writes the schema'
)


def problems(database: Database) -> list[str]:
    """Return why the suite cannot use the configuration tables, each once; empty if it can.

    Args:
        database: behind the endpoint.
    """
    wanted = {
        database.containers: CONTAINER_COLUMNS,
        database.options: "name, value",
        database.policies: POLICY_COLUMNS,
    }
    found = []
    for table, columns in wanted.items():
        try:
            database.query(f"SELECT {columns} FROM {table} LIMIT 1")  # noqa: S608 - constants
        except (sqlite3.Error, pymysql.MySQLError) as error:
            found.append(f"{table} needs the columns {columns}: {error}")
    return found


def complaints(database: Database) -> list[str]:
    """Return what is wrong with the configuration tables although the suite can use them.

    Args:
        database: behind the endpoint, with tables that have no `problems`.
    """
    if database.engine != "sqlite" or _takes_null_flags(database):
        return []
    return ["your `containers.flags` refuses NULL: declare it without NOT NULL"]


def _takes_null_flags(database: Database) -> bool:
    """Return whether a mapping can be without a flags column; in MySQL the suite changes the column itself."""
    delete = f"DELETE FROM {database.containers} WHERE name = '{PROBE[0]}'"  # noqa: S608 - constants
    database.execute(delete)
    try:
        database.insert(database.containers, PROBE)
    except sqlite3.Error:
        return False
    database.execute(delete)
    return True
