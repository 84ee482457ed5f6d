"""The tables behind an endpoint in the file of kvref's SQLite store."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from kvref import collations
from kvref_bench.errors import BenchError
from kvref_bench.peers.rows import CAS, DATABASE, in_blocks, key_length, told, value_type
from kvref_bench.peers.tables import containers_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.scenario.records import Table
    from kvref_testbed.targets.progress import Progress

SCHEME: Final = "sqlite:///"
BLOCK: Final = 50_000  # rows in one transaction
BUSY_SECONDS: Final = 30.0


class SQLiteTables:
    """A file that `kvref serve` serves."""

    def __init__(self, dsn: str) -> None:
        self.path = Path(unquote(dsn.removeprefix(SCHEME)))
        if not self.path.is_file():
            raise BenchError(f"no file {self.path}: make it with `kvref init --store {dsn}`")

    @contextmanager
    def connection(self, doing: str) -> Iterator[sqlite3.Connection]:
        """Yield a connection for the block, which is one transaction.

        doing: completes "… could not …" in the BenchError that every error of SQLite becomes.
        """
        try:
            with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as connection, connection:
                collations.register(connection)
                yield connection
        except sqlite3.Error as error:
            raise BenchError(f"{self.path} could not {doing}: {error}") from error

    def create(self, table: Table) -> None:
        """See `Tables`; the database is part of the table's name.

        Without the procedures: no series over SQL is measured here.
        """
        name = _quoted(table)
        key = "INT" if table.keys.shape == "int" else f"VARCHAR({key_length(table)}) COLLATE {table.collation}"
        extras = f", flags INT DEFAULT 0, cas BIGINT UNSIGNED DEFAULT {CAS}, exp INT DEFAULT 0" if table.extras else ""
        with self.connection(f"have the table {name}") as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(f"CREATE TABLE {name} (k {key} NOT NULL PRIMARY KEY, v {value_type(table)}{extras})")

    def fill(self, table: Table, progress: Progress) -> None:
        """See `Tables`."""
        told(f"rows of {table.name}", table.keys.count, self._insert(table), progress)

    def _insert(self, table: Table) -> Iterator[int]:
        done = 0
        number = table.keys.shape == "int"
        for block in in_blocks(table, BLOCK):
            with self.connection(f"fill the table {_quoted(table)}") as connection:
                connection.executemany(
                    f"INSERT INTO {_quoted(table)} (k, v) VALUES (?, ?)",
                    ((int(key) if number else key.decode(), value.decode()) for key, value in block),
                )
            done += len(block)
            yield done

    def map(self, table: Table) -> None:
        """See `Tables`."""
        with self.connection("have rows in `containers`, which `kvref init` makes") as connection:
            connection.execute("DELETE FROM containers WHERE db_schema = ? OR name = ?", (DATABASE, table.mapping))
            row = containers_row(table)
            connection.execute(f"INSERT INTO containers VALUES ({', '.join('?' * len(row))})", row)

    def replaced(self, table: Table) -> str | None:
        """See `Tables`."""
        asked = "SELECT db_schema, db_table FROM containers WHERE name = ? AND db_schema <> ?"
        with self.connection("read `containers`") as connection:
            rows = connection.execute(asked, (table.mapping, DATABASE)).fetchall()
        return f"{rows[0][0]}.{rows[0][1]}" if rows else None

    def delimiter(self) -> str:
        """See `Tables`."""
        with self.connection("read `config_options`") as connection:
            rows = connection.execute("SELECT value FROM config_options WHERE name = 'table_map_delimiter'").fetchall()
        return str(rows[0][0]) if rows else "."

    def containers(self) -> list[dict[str, str]]:
        """See `Tables`."""
        with self.connection("read `containers`") as connection:
            cursor = connection.execute("SELECT * FROM containers WHERE db_schema = ?", (DATABASE,))
            names = [column[0] for column in cursor.description]
            return [{name: str(cell) for name, cell in zip(names, row, strict=True)} for row in cursor.fetchall()]

    def ddl(self, table: Table) -> str:
        """See `Tables`."""
        with self.connection("read its schema") as connection:
            name = f"{DATABASE}.{table.name}"
            rows = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchall()
        if not rows:
            raise BenchError(f"{self.path} has no table {name} any more")
        return str(rows[0][0])

    def variables(self) -> dict[str, str]:
        """See `Tables`: what the file keeps, and the library that reads it here."""
        with self.connection("read its configuration") as connection:
            asked = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "page_size")}
        return {f"sqlite_{name}": str(value) for name, value in asked.items()} | {"sqlite": sqlite3.sqlite_version}

    def counters(self) -> dict[str, int]:
        """See `Tables`: a file counts nothing."""
        return {}


def _quoted(table: Table) -> str:
    return f'"{DATABASE}.{table.name}"'
