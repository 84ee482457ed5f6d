"""SQLite's tables as the catalog sees them: declared types to columns, indexes, and the configuration tables.

The plugin's schema `innodb_memcache` is kept as plain tables `containers`, `config_options` and `cache_policies`. A
file is one database: `db_schema.db_table` names the table called literally so where there is one, else `db_table`.
"""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files
from typing import Any, Final

from kvref.errors import ConfigError
from kvref.semantics.mapping import Column, Kind
from kvref.storage.catalog import CONTAINER_COLUMNS, Container, Table

CONFIG_TABLES: Final = ("containers", "config_options", "cache_policies")
_DECLARED: Final = re.compile(r"\s*([A-Za-z ]+?)\s*(?:\(\s*(\d+)[^)]*\))?\s*(UNSIGNED)?\s*", re.IGNORECASE)
_INTEGER_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "INTEGER": 64, "BIGINT": 64}
# Longest content in bytes of MySQL's types without a declared width.
_BYTE_LIMITS: Final = {
    "TINYTEXT": 255, "TEXT": 65535, "MEDIUMTEXT": (1 << 24) - 1, "LONGTEXT": (1 << 32) - 1,
    "TINYBLOB": 255, "BLOB": 65535, "MEDIUMBLOB": (1 << 24) - 1, "LONGBLOB": (1 << 32) - 1,
}  # fmt: skip


def quote(identifier: str) -> str:
    """Return an identifier quoted for SQL; a hostile name stays a name."""
    if "\0" in identifier:
        raise ConfigError(f"{identifier!r} is no name SQLite can hold: it contains NUL")
    return '"' + identifier.replace('"', '""') + '"'


def create(connection: sqlite3.Connection) -> bool:
    """Create the configuration tables and the plugin's demo rows where they are missing.

    Returns:
        Whether anything was created; existing tables are left as they are.
    """
    there = {name.lower() for name in _tables(connection)}
    missing = [name for name in CONFIG_TABLES if name not in there]
    if "containers" in missing:
        missing.append("demo")
    for name in missing:
        script = files(__package__).joinpath(f"sqlite_{name}.sql").read_text(encoding="utf-8")
        connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")
    return bool(missing)


class SQLiteCatalog:
    """Read the configuration tables and the mapped tables' shape from one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def containers(self) -> list[Container]:
        """Return all rows of `containers`; raises ConfigError where table or columns are missing."""
        # Qualified: SQLite takes a bare "name" that no column has for a string literal.
        columns = ", ".join(f"containers.{quote(name)}" for name in CONTAINER_COLUMNS)
        rows = self._read(f"SELECT {columns} FROM containers", "containers")  # noqa: S608 - constant names
        return [
            Container(_text(row[0]), *(None if cell is None else _text(cell) for cell in row[1:]))
            for row in rows
            if row[0] is not None
        ]

    def options(self) -> dict[str, bytes | None]:
        """Return the rows of `config_options`; raises ConfigError where the table is missing."""
        rows = self._read("SELECT name, value FROM config_options", "config_options")
        return {_text(name): None if value is None else _text(value).encode() for name, value in rows}

    def table(self, schema: str, name: str) -> Table | None:
        """Return a table's columns and unique indexes, None when there is no such table."""
        tables = _tables(self._connection)
        source = next((n for n in (f"{schema}.{name}", name) if n in tables), None)
        if source is None:
            return None
        columns: dict[str, Column] = {}
        unusable: dict[str, str] = {}
        primary: dict[int, str] = {}
        for _, column, declared, _, _, position, hidden in self._pragma("table_xinfo", source):
            usable = column_of(column, declared)
            if hidden:
                unusable[column] = f"{declared} (generated)"
            elif usable is None:
                unusable[column] = declared
            else:
                columns[column] = usable
            if position:
                primary[position] = column
        unique = {"PRIMARY": tuple(primary[n] for n in sorted(primary))} if primary else {}
        unique |= self._unique_indexes(source)
        generated = frozenset(name for name, kind in unusable.items() if kind.endswith("(generated)"))
        return Table(source, columns, unusable, unique, generated)

    def _unique_indexes(self, source: str) -> dict[str, tuple[str, ...]]:
        found = {}
        for _, index, unique, origin, partial in self._pragma("index_list", source):
            if unique and origin != "pk" and not partial:
                columns = [column for _, _, column in self._pragma("index_info", index)]
                if None not in columns and self._serves(source, index, columns[0]):
                    found[index] = tuple(columns)
        return found

    def _serves(self, source: str, index: str, column: str) -> bool:
        """Tell whether a look-up by the column can use the index: one of another collation holds other rows equal."""
        table = quote(source)
        query = f"SELECT 1 FROM {table} INDEXED BY {quote(index)} WHERE {table}.{quote(column)} = 'x'"  # noqa: S608
        try:
            plan = self._connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
        except sqlite3.OperationalError:
            return False
        return any(str(step[-1]).startswith("SEARCH") for step in plan)

    def _pragma(self, name: str, argument: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(f"PRAGMA {name}({quote(argument)})").fetchall()
        except sqlite3.Error as error:
            raise ConfigError(f"{argument}: {error}") from error

    def _read(self, sql: str, table: str) -> list[tuple[object, ...]]:
        try:
            return self._connection.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            raise ConfigError(f"configuration table {table}: {error}: create the tables with `kvref init`") from error
        except sqlite3.Error as error:
            raise ConfigError(f"configuration table {table}: {error}") from error


def column_of(name: str, declared: str) -> Column | None:
    """Return the column a declared type makes, None for a type that no mapping can use.

    Args:
        name: the column's name.
        declared: its type as in CREATE TABLE, as MySQL spells types.
    """
    match = _DECLARED.fullmatch(declared)
    if match is None:
        return None
    kind, width, unsigned = match[1].upper(), int(match[2]) if match[2] else None, bool(match[3])
    if kind.endswith(" UNSIGNED"):
        kind, unsigned = kind.removesuffix(" UNSIGNED"), True
    if kind in _INTEGER_BITS:
        bits = _INTEGER_BITS[kind]
        # SQLite's integers are signed 64 bits: BIGINT UNSIGNED ends there.
        return Column(
            name,
            Kind.INTEGER,
            low=0 if unsigned else -(1 << bits - 1),
            high=min(1 << 63, 1 << bits - (not unsigned)) - 1,
        )
    if kind in ("CHAR", "VARCHAR", "CHARACTER", "CHARACTER VARYING"):
        return Column(name, Kind.TEXT, width, cuts=True)
    if kind in ("BINARY", "VARBINARY"):
        return Column(name, Kind.BYTES, width, counts_bytes=True, cuts=True)
    if kind in _BYTE_LIMITS:
        is_text = kind.endswith("TEXT")
        return Column(name, Kind.TEXT if is_text else Kind.BYTES, width or _BYTE_LIMITS[kind], counts_bytes=True)
    return None


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _text(cell: object) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
