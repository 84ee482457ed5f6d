"""The tables behind the mappings: aaa, the default one, and bbb and bbc, which are the same table.

Their value column is VARBINARY. Clients pickle, serialize and compress values, and the plugin cuts what is not text in
a text column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kvref_conformance.sql.base import Database

TABLES: Final = {"aaa": "interop_a", "bbb": "interop_b", "bbc": "interop_b"}
COLUMNS: Final = "c1 VARCHAR(120) PRIMARY KEY, c2 VARBINARY(8192), c3 INT, c4 BIGINT UNSIGNED, c5 INT"


def create(database: Database) -> None:
    """Make the tables and replace the rows of containers by the mappings; the endpoint must read them again."""
    for table in sorted(set(TABLES.values())):
        database.create_table(f"test.{table}", COLUMNS)
    rows = [(name, "test", table, "c1", "c2", "c3", "c4", "c5", "PRIMARY") for name, table in TABLES.items()]
    database.replace({database.containers: rows})
