"""The tables behind an endpoint in the file of kvref's SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from kvref import collations
from kvref_bench.errors import BenchError
from kvref_bench.peers.base_tables import DATABASE, Tables, cells, key_type, kind, value_columns, value_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.scenario.records import Table

SCHEME: Final = "sqlite:///"
BUSY_SECONDS: Final = 30.0
FROM_BYTES: Final[dict[str, Callable[[bytes], object]]] = {"text": bytes.decode, "number": int, "bytes": bytes}


class SQLiteTables(Tables):
    """A file that `kvref serve` serves; the database is part of a table's name."""

    containers_table = "containers"
    options_table = "config_options"
    mark = "?"
    block = 50_000
    serial = "id INTEGER PRIMARY KEY"

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

    def query(self, statement: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """See `Tables`."""
        with self.connection(f"run {statement!r}") as connection:
            return connection.execute(statement, tuple(arguments)).fetchall()

    def name(self, table: Table) -> str:
        """See `Tables`."""
        return f'"{DATABASE}.{table.name}"'

    def types(self, table: Table) -> tuple[str, str]:
        """See `Tables`."""
        key = key_type(table)
        return f"{key} COLLATE {table.collation}" if kind(key) == "text" else key, value_type(table)

    def create(self, table: Table) -> None:
        """See `Tables`; without the procedures: no series over SQL is measured here."""
        self.query(f"DROP TABLE IF EXISTS {self.name(table)}")
        self.query(f"CREATE TABLE {self.name(table)} ({self.columns(table)})")

    def insert(self, table: Table, rows: list[tuple[bytes, bytes]]) -> None:
        """See `Tables`."""
        names = ["k", *value_columns(table)]
        with self.connection(f"fill the table {self.name(table)}") as connection:
            connection.executemany(
                f"INSERT INTO {self.name(table)} ({', '.join(names)}) VALUES ({', '.join([self.mark] * len(names))})",
                ([FROM_BYTES[of](each) for of, each in cells(table, row)] for row in rows),
            )

    def ddl(self, table: Table) -> str:
        """See `Tables`."""
        rows = self.query("SELECT sql FROM sqlite_master WHERE name = ?", (f"{DATABASE}.{table.name}",))
        if not rows:
            raise BenchError(f"{self.path} has no table {DATABASE}.{table.name} any more")
        return str(rows[0][0])

    def variables(self) -> dict[str, str]:
        """See `Tables`: what the file keeps, and the library that reads it here."""
        pragmas = {name: self.query(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "page_size")}
        return {f"sqlite_{name}": str(value) for name, value in pragmas.items()} | {"sqlite": sqlite3.sqlite_version}
