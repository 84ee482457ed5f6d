"""The embedded store: durability, and the behavior with another writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvref import collations, profiles
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Clear, Insert, LoadMapping, Lookup, Remove, Row, Update
from kvref.errors import ConfigError, StoreError
from kvref.storage.sqlite.errors import BusyError
from kvref.storage.sqlite.file import CAS_BLOCK, ReservedNumbers, path_of
from kvref.storage.sqlite.rows import IGNORED
from kvref.storage.sqlite.store import SQLiteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    opened = SQLiteStore(tmp_path / "s.sqlite", profiles.load("kvref"))
    opened.initialise()
    yield opened
    opened.close()


def outside(store: SQLiteStore, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(store.path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def a_row(key: str = "k") -> Row:
    return Row(key, ("v",), 1, 2, 0)


def test_others_see_only_what_is_committed(store: SQLiteStore) -> None:
    mapping = store.read_directory().default
    assert store.execute(Insert(mapping, a_row(), clear_unmapped=False)) is None
    assert store.dirty
    assert outside(store, "SELECT c1 FROM demo_test WHERE c1 = 'k'") == []
    store.commit()
    assert not store.dirty
    assert outside(store, "SELECT * FROM demo_test WHERE c1 = 'k'") == [("k", "v", 1, 2, 0)]


def test_a_refused_row_leaves_the_others(store: SQLiteStore) -> None:
    mapping = store.read_directory().default
    assert store.execute(Insert(mapping, a_row("one"), clear_unmapped=False)) is None
    assert "UNIQUE constraint failed" in store.execute(Insert(mapping, a_row("one"), clear_unmapped=False))
    assert store.execute(Insert(mapping, a_row("two"), clear_unmapped=False)) is None
    store.commit()
    assert outside(store, "SELECT count(*) FROM demo_test") == [(3,)]


def test_another_writer_makes_writes_busy_and_reads_go_on(store: SQLiteStore) -> None:
    mapping = store.read_directory().default
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE demo_test SET c2 = 'theirs'")
    with pytest.raises(BusyError):
        store.execute(Lookup(mapping, "AA", for_update=True))
    row = store.execute(Lookup(mapping, "AA"))
    assert row.values == ("HELLO, HELLO",)
    other.execute("COMMIT")
    other.close()
    assert store.execute(Lookup(mapping, "aa", for_update=True)).values == ("theirs",)


def test_a_dropped_table_is_a_store_error(store: SQLiteStore) -> None:
    mapping = store.read_directory().default
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("DROP TABLE demo_test")
    other.close()
    with pytest.raises(StoreError, match="no such table: demo_test"):
        store.execute(Lookup(mapping, "AA"))


def test_a_full_disk_loses_the_tick_and_says_so(store: SQLiteStore) -> None:
    mapping = store.read_directory().default
    store.run("PRAGMA max_page_count = 12", [])
    row = Row("AA", ("v" * 400_000,), 0, 0, 0)
    with pytest.raises(StoreError, match="full"):
        for _ in range(3):
            store.execute(Update(mapping, "AA", row, clear_unmapped=False))
    with pytest.raises(StoreError, match="full"):
        store.execute(Insert(mapping, a_row(), clear_unmapped=False))
    with pytest.raises(StoreError, match="full"):
        store.commit()
    store.run("PRAGMA max_page_count = 1000", [])
    assert store.execute(Insert(mapping, a_row(), clear_unmapped=False)) is None
    store.commit()
    assert outside(store, "SELECT c1 FROM demo_test ORDER BY c1") == [("AA",), ("k",)]


def test_numbers_beyond_sqlite_are_an_error(store: SQLiteStore) -> None:
    mapping = store.read_directory().default
    with pytest.raises(StoreError, match="SQLite cannot hold this number"):
        store.execute(Insert(mapping, Row("k", ("v",), 2**63, 0, 0), clear_unmapped=False))


def test_a_key_that_is_no_text_is_an_error_where_a_collation_must_read_it(store: SQLiteStore) -> None:
    with sqlite3.connect(store.path) as other:
        collations.register(other)
        other.execute("CREATE TABLE u (k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, v TEXT)")
        other.execute("INSERT INTO u VALUES (CAST(x'ff' AS TEXT), 'x')")
        other.execute("INSERT INTO containers VALUES ('default', 't', 'u', 'k', 'v', '0', '0', '0', 'PRIMARY')")
    other.close()
    mapping = store.read_directory().default
    with pytest.raises(StoreError, match="text that is not UTF-8"):
        store.execute(Lookup(mapping, "a"))


def test_initialise_keeps_what_is_there(store: SQLiteStore) -> None:
    assert store.initialise() is False
    assert outside(store, "SELECT name, db_schema, db_table FROM containers") == [("aaa", "test", "demo_test")]


@pytest.mark.parametrize(
    "dsn", ["", "sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://root@localhost/", "/tmp/x"]
)
def test_dsn_refused(dsn: str) -> None:
    with pytest.raises(ConfigError, match="write sqlite:///PATH"):
        path_of(dsn)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text, no database, and long enough for a header of one hundred bytes" * 3)
    with pytest.raises(StoreError, match="file is not a database"):
        SQLiteStore(tmp_path / "x", profiles.load("kvref"))


def test_a_renamed_column_is_an_error_and_no_string(store: SQLiteStore) -> None:
    # SQLite takes a bare "c1" that no column has for the text 'c1': a delete would empty the table.
    mapping = store.read_directory().default
    with sqlite3.connect(store.path) as other:
        other.execute("ALTER TABLE demo_test RENAME COLUMN c1 TO key")
    other.close()
    with pytest.raises(StoreError, match="no such column"):
        store.execute(Lookup(mapping, "AA", for_update=True))
    with pytest.raises(StoreError, match="no such column"):
        store.execute(Remove(mapping, "c1"))
    store.commit()
    assert outside(store, "SELECT count(*) FROM demo_test") == [(1,)]


def test_a_configuration_without_a_column(store: SQLiteStore) -> None:
    with sqlite3.connect(store.path) as other:
        other.execute("ALTER TABLE containers DROP COLUMN expire_time_column")
    other.close()
    with pytest.raises(ConfigError, match=r"no such column: containers\.expire_time_column"):
        store.read_directory()


def test_a_write_the_table_ignores_is_no_success(store: SQLiteStore) -> None:
    mapping = store.read_directory().default
    with sqlite3.connect(store.path) as other:
        for event in ("INSERT", "UPDATE", "DELETE"):
            other.execute(f"CREATE TRIGGER no_{event} BEFORE {event} ON demo_test BEGIN SELECT RAISE(IGNORE); END")
    other.close()
    for operation in (
        Insert(mapping, a_row(), clear_unmapped=False), Update(mapping, "AA", a_row(), clear_unmapped=False),
        Remove(mapping, "AA"), Clear(mapping, "error"),
    ):  # fmt: skip
        assert store.execute(operation) == IGNORED


def mapped_with_rollback(store: SQLiteStore) -> Mapping:
    """Map a table with a row, whose constraint rolls the transaction back."""
    with sqlite3.connect(store.path) as other:
        other.execute("CREATE TABLE r (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9) UNIQUE ON CONFLICT ROLLBACK)")
        other.execute("INSERT INTO r VALUES ('a', 'same')")
        other.execute("INSERT INTO containers VALUES ('default', 't', 'r', 'k', 'v', '0', '0', '0', 'PRIMARY')")
    other.close()
    return store.read_directory().default


def test_a_constraint_that_rolls_back_takes_the_tick_and_says_so(store: SQLiteStore) -> None:
    mapping = mapped_with_rollback(store)
    assert store.execute(Insert(mapping, Row("neighbour", ("v",), None, None, None), clear_unmapped=False)) is None
    with pytest.raises(StoreError, match="UNIQUE"):
        store.execute(Insert(mapping, Row("b", ("same",), None, None, None), clear_unmapped=False))
    with pytest.raises(StoreError, match="UNIQUE"):
        store.execute(Insert(mapping, Row("later", ("w",), None, None, None), clear_unmapped=False))
    with pytest.raises(StoreError, match="UNIQUE"):
        store.commit()
    assert outside(store, "SELECT k FROM r") == [("a",)]


def test_a_constraint_that_rolls_back_a_transaction_of_its_own_is_a_refusal(store: SQLiteStore) -> None:
    mapping = mapped_with_rollback(store)
    assert store.can_roll_back(mapping)
    refused = store.execute(Insert(mapping, Row("b", ("same",), None, None, None), clear_unmapped=False))
    assert refused is not None
    assert "UNIQUE" in refused
    assert store.execute(Insert(mapping, Row("later", ("w",), None, None, None), clear_unmapped=False)) is None
    store.commit()
    assert outside(store, "SELECT k FROM r ORDER BY k") == [("a",), ("later",)]


def test_initialise_adds_only_what_is_missing(store: SQLiteStore) -> None:
    with sqlite3.connect(store.path) as other:
        other.execute("DROP TABLE config_options")
        other.execute("DELETE FROM demo_test")
        other.execute("ALTER TABLE containers RENAME TO moved")
        other.execute("ALTER TABLE moved RENAME TO Containers")
    other.close()
    assert store.initialise() is False
    assert outside(store, "SELECT count(*) FROM config_options") == [(2,)]
    assert outside(store, "SELECT count(*) FROM demo_test") == [(0,)]


def test_cas_numbers_go_on_behind_a_block(store: SQLiteStore) -> None:
    first = store.cas_numbers()
    second = store.cas_numbers()
    taken = [next(first), next(first), next(second), next(first)]
    assert taken == [1, 2, 1 + CAS_BLOCK, 3]


def test_cas_numbers_of_a_lost_tick_are_reserved_again(store: SQLiteStore) -> None:
    mapping = store.read_directory().default
    numbers = store.cas_numbers()
    store.execute(Lookup(mapping, "AA", for_update=True))
    next(numbers)
    store.run("ROLLBACK", [])  # as an error of the file does, and with it the reservation
    with pytest.raises(StoreError):
        store.commit()
    # Another server on the file is given the block; this one must not go on in it.
    elsewhere = next(store.cas_numbers())
    assert next(numbers) == elsewhere + CAS_BLOCK


def test_cas_numbers_go_on_where_a_block_could_not_be_reserved(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "file", isolation_level=None)
    numbers = ReservedNumbers(connection, SimpleNamespace(failures=0))
    connection.execute("PRAGMA query_only = ON")
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot reserve cas numbers"):
            next(numbers)
    connection.execute("PRAGMA query_only = OFF")
    assert [next(numbers), next(numbers)] == [1, 2]
    connection.close()


@pytest.mark.parametrize(
    ("columns", "kept", "cleared"),
    [
        ("v BLOB NOT NULL, f INT NOT NULL", False, False),
        ("v BLOB, f INT, other INT", False, False),
        ("v BLOB, f INT, other INT NOT NULL", True, True),
        ("v BLOB, f INT, other INT NOT NULL DEFAULT -1", False, True),
        ("v BLOB, f INT, other TEXT NOT NULL DEFAULT 'it''s'", False, True),
        ("v BLOB, f INT, other TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP", False, True),
        ("v BLOB, f INT, other INT NOT NULL DEFAULT NULL", True, True),
        ("v BLOB, f INT, other INT NOT NULL DEFAULT (nullif(1, 1))", True, True),
        ("v BLOB NOT NULL CHECK (v <> 'x'), f INT", True, True),
        ("v BLOB, f INT, id INTEGER PRIMARY KEY", False, True),
    ],
)
def test_a_column_that_may_not_be_null_matters_where_a_set_could_leave_it_null(
    store: SQLiteStore, columns: str, kept: bool, cleared: bool
) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(f"CREATE TABLE t (k VARBINARY(20) NOT NULL, {columns})")
        connection.execute("CREATE UNIQUE INDEX by_key ON t (k)")
        connection.execute("DELETE FROM containers")
        connection.execute("INSERT INTO containers VALUES ('m', 'test', 't', 'k', 'v', 'f', '0', '0', 'by_key')")
    mapping = store.read_directory().default
    filled = {column.name for column in (mapping.key, *mapping.values, mapping.flags) if column is not None}
    assert store.catalog.has_rules_for_sets(mapping.source, filled, clear_unmapped=False) == kept
    assert store.catalog.has_rules_for_sets(mapping.source, filled, clear_unmapped=True) == cleared


def test_a_row_of_the_configuration_makes_one_mapping_until_it_or_a_table_changes(store: SQLiteStore) -> None:
    def load() -> list[Mapping]:
        directory = store.read_directory()
        loaded = store.execute(LoadMapping(directory.default.name))
        assert isinstance(loaded, Mapping)
        assert directory.usable[0] is directory.default is loaded
        return [directory.default, *directory.known.values()]

    store.refresh()
    first = load()
    store.refresh()
    assert load() == first == [first[0], first[0]]
    outside_now(store, "UPDATE containers SET flags = '0' WHERE name = 'aaa'")
    store.refresh()
    other = load()
    assert other[0] is not first[0]
    assert other[0].flags is None
    assert first[0].flags is not None
    outside_now(store, "ALTER TABLE demo_test ADD COLUMN more INT")  # not noticed yet
    new = store.read_directory().default
    assert new is not other[0]
    assert "more" in new.unmapped
    store.refresh()
    assert load()[0] in {new, other[0]}
    assert "more" in other[0].unmapped


def test_a_mapping_that_lost_its_column_is_another_one_when_it_is_read_again(store: SQLiteStore) -> None:
    store.refresh()
    before = store.read_directory().default
    outside_now(store, "ALTER TABLE demo_test RENAME COLUMN c4 TO was_c4")
    store.refresh()
    assert before.fault
    after = store.read_directory().default
    assert after is not before
    assert not after.fault


def outside_now(store: SQLiteStore, statement: str) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("columns", "refuses"),
    [
        ("a INT UNIQUE", False),
        ("a INT, b INT, UNIQUE (a, b)", False),
        ("a INT UNIQUE DEFAULT 1", True),
        ("a INT, UNIQUE (a, v)", True),
        ("a INT UNIQUE AS (length(v)) STORED", True),
        ("a INT UNIQUE NOT NULL", True),
    ],
)
def test_a_further_unique_index_refuses_a_row_unless_it_has_null_of_new_ones(
    store: SQLiteStore, columns: str, refuses: bool
) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute(f"CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), {columns})")
        other.execute("INSERT INTO containers VALUES ('t', 'test', 't', 'k', 'v', '0', '0', '0', 'PRIMARY')")
    store.refresh()
    mapping = store.execute(LoadMapping("t"))
    assert mapping is not None
    assert store.has_rules(mapping) is refuses


@pytest.mark.parametrize(
    ("columns", "cas", "index", "refuses"),
    [
        ("k INTEGER PRIMARY KEY, v VARCHAR(9)", "0", "PRIMARY", False),
        ("k INTEGER PRIMARY KEY, v VARCHAR(9) UNIQUE", "0", "PRIMARY", True),
        ("k INTEGER PRIMARY KEY, v VARCHAR(9), a INT UNIQUE", "0", "PRIMARY", False),
        ("a INTEGER PRIMARY KEY, k VARCHAR(9) UNIQUE, v VARCHAR(9)", "0", "sqlite_autoindex_t_1", False),
        ("a INTEGER PRIMARY KEY, k VARCHAR(9) UNIQUE, v VARCHAR(9)", "a", "sqlite_autoindex_t_1", True),
    ],
)
def test_an_integer_primary_key_counts_as_a_unique_index_if_commands_write_it(
    store: SQLiteStore, columns: str, cas: str, index: str, refuses: bool
) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute(f"CREATE TABLE t ({columns})")
        other.execute(f"INSERT INTO containers VALUES ('t', 'test', 't', 'k', 'v', '0', '{cas}', '0', '{index}')")
    store.refresh()
    mapping = store.execute(LoadMapping("t"))
    assert mapping is not None
    assert store.has_rules(mapping) is refuses
