"""The tables behind an endpoint and their rows, in MySQL (`mysql_tables.py`) as in SQLite (`sqlite_tables.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from kvref_bench.workload import keys, values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.scenario.records import Table
    from kvref_testbed.targets.progress import Progress

DATABASE: Final = "kvref_bench"
PRIMARY: Final = "PRIMARY"
# Values that append and prepend make longer, and numbers that incr does, have room.
ROOM: Final = 1024
LONGEST_TEXT: Final = 16383
# No row has cas 0: a `cas` with 0 is a `set`.
EXTRAS: Final = ", flags INT DEFAULT 0, cas BIGINT UNSIGNED DEFAULT 1, exp INT DEFAULT 0"


def rows(table: Table) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each row that exists when a point begins."""
    for key in keys.table_keys(table.keys):
        yield key, values.value(table.values, key)


def key_length(table: Table) -> int:
    """Return the bytes of the longest key there can be."""
    return keys.LONGEST if table.keys.file is not None else max(table.keys.length, keys.SHORTEST)


def key_type(table: Table) -> str:
    """Return the type of the key column: INT or VARCHAR if the table names none."""
    return table.key_type or ("INT" if table.keys.shape == "int" else f"VARCHAR({key_length(table)})")


def value_type(table: Table) -> str:
    """Return the type of a value column; if the table names none, TEXT for an integer key alone, as in the articles."""
    if table.value_type:
        return table.value_type
    longest = max(ROOM, 2 * table.values.sizes[1])
    if longest > LONGEST_TEXT:
        return "MEDIUMTEXT"
    return "TEXT" if table.keys.shape == "int" and not table.extras else f"VARCHAR({longest})"


def value_columns(table: Table) -> list[str]:
    """Return the names of the value columns."""
    return ["v", *(f"v{number}" for number in range(2, table.values.columns + 1))]


def kind(column_type: str) -> Literal["text", "number", "bytes"]:
    """Return what a column of a type contains."""
    if "CHAR" in column_type or "TEXT" in column_type:
        return "text"
    return "number" if "INT" in column_type else "bytes"


def cells(table: Table, row: tuple[bytes, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield kind and content of each cell of a row, that of the key first."""
    key, value = row
    yield kind(key_type(table)), key
    for each in [value] if table.values.columns == 1 else value.split(values.SEPARATOR.encode()):
        yield kind(value_type(table)), each


class Tables(ABC):
    """A database with the configuration tables and the table of a scenario. All raise BenchError.

    containers_table, options_table: the configuration tables. mark: of a parameter. block: rows in one transaction.
    serial: definition of the primary key of a table whose key is in a secondary index.
    """

    containers_table: ClassVar[str]
    options_table: ClassVar[str]
    mark: ClassVar[str]
    block: ClassVar[int]
    serial: ClassVar[str]

    @abstractmethod
    def name(self, table: Table) -> str:
        """Return the name of a table with its database, as statements have it."""

    @abstractmethod
    def types(self, table: Table) -> tuple[str, str]:
        """Return the types of the key and of a value column, with their collations."""

    @abstractmethod
    def create(self, table: Table) -> None:
        """Create the scenario's table again, empty, with its procedures."""

    @abstractmethod
    def insert(self, table: Table, rows: list[tuple[bytes, bytes]]) -> None:
        """Insert rows, which are in the order of their keys."""

    @abstractmethod
    def query(self, statement: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and give its rows."""

    @abstractmethod
    def ddl(self, table: Table) -> str:
        """Return the statements that would create the table and its procedures."""

    @abstractmethod
    def variables(self) -> dict[str, str]:
        """Return the server's configuration as far as it is not the default."""

    def counters(self) -> dict[str, int]:
        """Return the counters that only grow; a file counts nothing."""
        return {}

    def columns(self, table: Table) -> str:
        """Return the definitions of a table's columns."""
        key, value = self.types(table)
        first, last = ("", " PRIMARY KEY") if table.index == PRIMARY else (f"{self.serial}, ", "")
        named = ", ".join(f"{name} {value}" for name in value_columns(table))
        return f"{first}k {key} NOT NULL{last}, {named}{EXTRAS if table.extras else ''}{table.more}"

    def make(self, table: Table, progress: Progress) -> None:
        """Create a table again, map it, fill it, and run its statements."""
        self.create(table)
        self.map(table)
        self.fill(table, progress)
        named = {"table": self.name(table), "containers": self.containers_table, "options": self.options_table}
        indexed = () if table.index == PRIMARY else (f"CREATE UNIQUE INDEX {table.index} ON {{table}} (k)",)
        for statement in (*indexed, *table.statements):
            self.query(statement.format(**named))

    def fill(self, table: Table, progress: Progress) -> None:
        """Insert the rows that exist when a point begins."""
        left, done, numbers = rows(table), 0, table.keys.shape == "int"
        while block := list(islice(left, self.block)):
            # Neighbours share a page.
            block.sort(key=(lambda row: int(row[0])) if numbers else None)
            self.insert(table, block)
            done += len(block)
            progress.advance(f"rows of {table.name}", done, table.keys.count)

    def map(self, table: Table) -> None:
        """Create the row in `containers`, the only one of the benchmark's database."""
        # Without extra columns it says '0' for each: NULL is refused, or makes the mapping answer nothing (5.6.14,
        # 8.0.33).
        extras = ("flags", "cas", "exp") if table.extras else ("0", "0", "0")
        row = (table.mapping, DATABASE, table.name, "k", "|".join(value_columns(table)), *extras, table.index)
        self.query(
            f"DELETE FROM {self.containers_table} WHERE db_schema = '{DATABASE}' OR name = {self.mark}",
            (table.mapping,),
        )
        self.query(f"INSERT INTO {self.containers_table} VALUES ({', '.join([self.mark] * len(row))})", row)

    def replaced(self, table: Table) -> str | None:
        """Return SCHEMA.TABLE of the mapping to another schema that `map` would replace, or None."""
        found = self.query(
            f"SELECT db_schema, db_table FROM {self.containers_table} WHERE name = {self.mark} AND db_schema <>"
            f" '{DATABASE}'",
            (table.mapping,),
        )
        return f"{found[0][0]}.{found[0][1]}" if found else None

    def delimiter(self) -> str:
        """Return the delimiter between a mapping's name and a key."""
        found = self.query(f"SELECT value FROM {self.options_table} WHERE name = 'table_map_delimiter'")
        return str(found[0][0]) if found else "."

    def containers(self) -> list[dict[str, str]]:
        """Return the mappings of the benchmark's tables."""
        names = (
            "name", "db_schema", "db_table", "key_columns", "value_columns", "flags", "cas_column",
            "expire_time_column", "unique_idx_name_on_key",
        )  # fmt: skip
        found = self.query(f"SELECT {', '.join(names)} FROM {self.containers_table} WHERE db_schema = '{DATABASE}'")
        return [{name: str(cell) for name, cell in zip(names, row, strict=True)} for row in found]
