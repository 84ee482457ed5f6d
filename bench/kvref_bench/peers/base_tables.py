"""The tables behind an endpoint and their rows, in MySQL (`mysql_tables.py`) as in SQLite (`sqlite_tables.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kvref_bench.workload import keys, values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.scenario.records import Table
    from kvref_testbed.targets.progress import Progress

DATABASE: Final = "kvref_bench"
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


def value_type(table: Table) -> str:
    """Return the type of the value column: TEXT where a whole number is the key of nothing else, as in the articles."""
    longest = max(ROOM, 2 * table.values.sizes[1])
    if longest > LONGEST_TEXT:
        return "MEDIUMTEXT"
    return "TEXT" if table.keys.shape == "int" and not table.extras else f"VARCHAR({longest})"


class Tables(ABC):
    """A database with the configuration tables and the table of a scenario. All raise BenchError.

    containers_table, options_table: the configuration tables. mark: of a parameter. block: rows in one transaction.
    """

    containers_table: ClassVar[str]
    options_table: ClassVar[str]
    mark: ClassVar[str]
    block: ClassVar[int]

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

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Return the counters that only grow."""

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
        row = (table.mapping, DATABASE, table.name, "k", "v", *extras, "PRIMARY")
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
