"""The number of rows of a table: exact if they are few, an estimate otherwise."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvref import profiles
from kvref.engine.operations import CountRows
from kvref.storage.rows import EXACT
from kvref.storage.sqlite.store import SQLiteStore

FILL = (
    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {})"
    " INSERT INTO demo_test SELECT 'k' || i, 'v', 0, 0, 0 FROM n"
)


class Table:
    """The demo table of a store, without rows."""

    def __init__(self, path: Path) -> None:
        self._store = SQLiteStore(path, profiles.load("kvref"))
        self._store.initialise()
        self._sql = sqlite3.connect(path, isolation_level=None)
        self.run("DELETE FROM demo_test")
        self._mapping = self._store.read_directory().default

    def run(self, *statements: str) -> None:
        """Run statements outside."""
        for statement in statements:
            self._sql.execute(statement)

    def estimate(self) -> int:
        """Return what the store says."""
        self._store.refresh()
        number: int = self._store.execute(CountRows(self._mapping))
        return number

    def close(self) -> None:
        """Close both connections."""
        self._store.close()
        self._sql.close()


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    made = Table(tmp_path / "s.sqlite")
    yield made
    made.close()


@pytest.mark.parametrize("rows", [0, 1, 17, EXACT])
def test_few_rows_are_counted(table: Table, rows: int) -> None:
    if rows:
        table.run(FILL.format(rows))
    assert table.estimate() == rows


@pytest.mark.parametrize(
    ("deleted", "left"),
    [
        ("0", 20_000),
        ("rowid % 2", 10_000),
        ("rowid > 5000", 5_000),
        ("rowid < 15001", 5_000),
        ("rowid BETWEEN 1000 AND 11000", 9_999),
    ],
)
def test_many_rows_are_estimated_from_the_numbers_in_use(table: Table, deleted: str, left: int) -> None:
    table.run(FILL.format(20_000), f"DELETE FROM demo_test WHERE {deleted}")
    assert left * 0.9 <= table.estimate() <= left * 1.1


def test_an_estimate_is_no_less_than_the_rows_that_were_seen(table: Table) -> None:
    table.run(FILL.format(1500), "UPDATE demo_test SET rowid = 1000000000 WHERE rowid = 1500")
    assert table.estimate() == EXACT + 1


def test_a_table_without_rowid_is_counted(table: Table) -> None:
    columns = "c1 TEXT NOT NULL, c2 TEXT, c3 INT, c4 BIGINT, c5 INT"
    table.run(
        "DROP TABLE demo_test", f"CREATE TABLE demo_test ({columns}, PRIMARY KEY (c1)) WITHOUT ROWID", FILL.format(1500)
    )
    assert table.estimate() == 1500


def test_a_column_with_the_name_of_the_numbers_is_none_of_them(table: Table) -> None:
    table.run(
        "ALTER TABLE demo_test ADD COLUMN _rowid_ TEXT", FILL.replace("'v', 0, 0, 0", "'v', 0, 0, 0, 'x'").format(1500)
    )
    assert table.estimate() == 1500
