"""What is done with the tables behind an endpoint, in MySQL (`mysql_tables.py`) as in SQLite (`sqlite_tables.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kvref_bench.peers.rows import DATABASE

if TYPE_CHECKING:
    from kvref_bench.scenario.records import Table
    from kvref_testbed.targets.progress import Progress


class Tables(Protocol):
    """A database with the configuration tables and the table of a scenario."""

    def create(self, table: Table) -> None:
        """Make the scenario's table anew, empty, with its procedures. Raises BenchError."""

    def fill(self, table: Table, progress: Progress) -> None:
        """Insert the rows that are there when a point begins. Raises BenchError."""

    def map(self, table: Table) -> None:
        """Make the row in `containers`, the only one of the benchmark's database. Raises BenchError."""

    def replaced(self, table: Table) -> str | None:
        """Return SCHEMA.TABLE of the mapping to another schema that `map` would replace, or None. Raises BenchError."""

    def delimiter(self) -> str:
        """Give what stands between a mapping's name and a key."""

    def containers(self) -> list[dict[str, str]]:
        """Give the mappings of the benchmark's tables."""

    def ddl(self, table: Table) -> str:
        """Give the statements that would make the table and its procedures as they are."""

    def variables(self) -> dict[str, str]:
        """Give the server's configuration as far as it is not the default."""

    def counters(self) -> dict[str, int]:
        """Give the counters that only grow."""


def containers_row(table: Table) -> tuple[str, ...]:
    """Give the row of `containers`.

    Without extra columns it says '0' for each: NULL is refused, or makes the mapping answer nothing (5.6.14, 8.0.33).
    """
    extras = ("flags", "cas", "exp") if table.extras else ("0", "0", "0")
    return (table.mapping, DATABASE, table.name, "k", "v", *extras, "PRIMARY")
