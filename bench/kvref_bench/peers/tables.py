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
        """Create the scenario's table again, empty, with its procedures. Raises BenchError."""

    def fill(self, table: Table, progress: Progress) -> None:
        """Insert the rows that exist when a point begins. Raises BenchError."""

    def map(self, table: Table) -> None:
        """Create the row in `containers`, the only one of the benchmark's database. Raises BenchError."""

    def replaced(self, table: Table) -> str | None:
        """Return SCHEMA.TABLE of the mapping to another schema that `map` would replace, or None. Raises BenchError."""

    def delimiter(self) -> str:
        """Return the delimiter between a mapping's name and a key."""

    def containers(self) -> list[dict[str, str]]:
        """Return the mappings of the benchmark's tables."""

    def ddl(self, table: Table) -> str:
        """Return the statements that would create the table and its procedures."""

    def variables(self) -> dict[str, str]:
        """Return the server's configuration as far as it is not the default."""

    def counters(self) -> dict[str, int]:
        """Return the counters that only grow."""


def containers_row(table: Table) -> tuple[str, ...]:
    """Return the row of `containers`.

    Without extra columns it says '0' for each: NULL is refused, or makes the mapping answer nothing (5.6.14, 8.0.33).
    """
    extras = ("flags", "cas", "exp") if table.extras else ("0", "0", "0")
    return (table.mapping, DATABASE, table.name, "k", "v", *extras, "PRIMARY")
