"""The row cache over a database server by itself: what is kept, what changes drop, and how large it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref.engine.plans.plan import CachedRow
from kvref.storage.mysql.binlog.eligibility import OPTIONS_TABLE, Terms, refusal
from kvref.storage.mysql.binlog.events import Change, KeyTypes
from kvref.storage.mysql.binlog.positions import SETTLING, FilePoint, FilePosition, GtidSet
from kvref.storage.mysql.binlog.row_cache import CachedTable, RowCache

TABLE = ("test", "t")


def at(offset: int) -> FilePosition:
    return FilePosition(FilePoint(1, offset), 1)


def change(offset: int, *keys: bytes | int, table: tuple[str, str] = TABLE) -> Change:
    return Change({table: set(keys)}, everything=False, point=FilePoint(1, offset))


def row(hit: bytes) -> CachedRow:
    return hit, 0, None, None, None, None


def started(limit: int = 1 << 20) -> tuple[RowCache, CachedTable]:
    """Return a cache that has followed a log up to 100, and a table of it that may be cached."""
    cache = RowCache(limit)
    table = cache.table("form", TABLE, KeyTypes.INTEGER)
    cache.begin(at(100))
    cache.examined(table, Terms(""), at(100))
    return cache, table


@pytest.mark.parametrize("key", [b"k", 7, -7])
def test_a_change_drops_the_row_of_its_key_in_all_forms(key: bytes | int) -> None:
    cache, table = started()
    other = cache.table("other form", TABLE)
    cache.examined(other, Terms(""), at(100))
    for each in (table, other):
        cache.put(each, {key: row(b"reply"), b"stays": row(b"reply")}, at(100))
    cache.take(change(110, key), cache.version)
    assert [[*each.rows] for each in (table, other)] == [[b"stays"], [b"stays"]]


def test_a_row_that_was_read_before_a_change_of_it_is_not_kept() -> None:
    cache, table = started()
    cache.take(change(110, b"k"), cache.version)
    cache.put(table, {b"k": row(b"old"), b"other": row(b"same")}, at(105))
    assert [*table.rows] == [b"other"]
    cache.put(table, {b"k": row(b"new")}, at(110))
    assert table.rows[b"k"] == row(b"new")


def test_positions_of_two_servers_are_not_compared() -> None:
    cache, table = started()
    other = FilePosition(FilePoint(1, 90), 2)
    assert cache.covers(at(90))
    assert not cache.covers(other)
    cache.put(table, {b"k": row(b"of the other")}, other)
    assert table.rows == {}


def test_a_change_of_options_lets_every_table_be_examined_again() -> None:
    cache, table = started()
    cache.put(table, {b"k": row(b"reply")}, at(100))
    cache.take(change(110, b"row_cache", table=OPTIONS_TABLE), cache.version)
    assert (table.refusal, table.rows, cache.size) == (None, {}, 0)
    cache.examined(table, Terms("option row_cache is off", chosen=True), at(105))  # before that change
    assert table.refusal is None
    cache.examined(table, Terms("", staleness=0.5), at(110))
    assert (table.refusal, table.staleness) == ("", 0.5)


def test_tables_name_the_types_of_their_keys_to_the_follower() -> None:
    cache, _ = started()
    cache.table("char", TABLE, KeyTypes.CHAR)
    cache.table("elsewhere", ("Test", "U"), KeyTypes.CHAR)
    assert cache.wanted == {
        OPTIONS_TABLE: KeyTypes.NONE,
        TABLE: KeyTypes.CHAR | KeyTypes.INTEGER,
        ("test", "u"): KeyTypes.CHAR,
    }


NUMBERS = st.none() | st.integers(0, 9)
CELLS = st.none() | st.text(max_size=9) | st.binary(max_size=20) | st.integers()
ROWS: st.SearchStrategy[CachedRow] = st.tuples(
    st.binary(max_size=40), st.just(0), NUMBERS, NUMBERS, NUMBERS, st.none() | st.lists(CELLS, max_size=4).map(tuple)
)


@given(
    st.lists(st.tuples(st.one_of(st.integers(0, 5), st.binary(max_size=2)), ROWS), max_size=30), st.integers(300, 2000)
)
def test_the_size_is_that_of_the_rows_and_within_the_limit(
    steps: list[tuple[bytes | int, CachedRow]], limit: int
) -> None:
    cache, table = started(limit)
    for offset, (key, kept) in enumerate(steps, 101):
        if offset % 4 == 0:
            cache.take(change(offset, key), cache.version)
            assert key not in table.rows
        cache.put(table, {key: kept}, at(offset))
        assert cache.size <= limit
    for key in [*table.rows]:
        cache.take(change(1000, key), cache.version)
    assert (cache.size, table.rows) == (0, {})


CREATED = "CREATE TABLE `t` (\n  `k` {},\n  `v` text\n{}) ENGINE=InnoDB"


@pytest.mark.parametrize(
    ("declared", "more", "received"),
    [
        ("varchar(9) NOT NULL", "", ""),
        ("char(9) NOT NULL", "", ""),
        ("varbinary(9) NOT NULL", "", ""),
        ("bigint(20) unsigned NOT NULL", "", ""),
        ("tinyint NOT NULL", "", ""),
        ("binary(9) NOT NULL", "", "its key column k is of a type"),
        ("decimal(5,0) NOT NULL", "", "its key column k is of a type"),
        ("point NOT NULL", "", "its key column k is of a type"),
        ("varchar(9) GENERATED ALWAYS AS (upper(`v`)) STORED", "", "its key column k is generated"),
        (
            "int NOT NULL",
            "  FOREIGN KEY (`k`) REFERENCES `p` (`k`) ON DELETE SET NULL\n",
            "a foreign key changes its rows",
        ),
        ("int NOT NULL", "  FOREIGN KEY (`k`) REFERENCES `p` (`k`)\n", ""),
    ],
)
def test_a_table_is_cached_by_the_type_of_its_key_and_its_foreign_keys(declared: str, more: str, received: str) -> None:
    found = refusal(CREATED.format(declared, more), "k")
    assert found.startswith(received)
    assert bool(found) == bool(received)


def place(file: int, offset: int) -> FilePosition:
    return FilePosition(FilePoint(file, offset), 1)


def test_a_position_in_front_of_the_first_transaction_of_a_file_proves_nothing() -> None:
    cache = RowCache(1000)
    cache.begin(place(1, 300))
    assert cache.settled(place(1, 500), 10.0) is None
    cache.take(Change({}, everything=False, point=FilePoint(1, 400)), cache.version)
    known = place(1, 500)
    assert cache.settled(known, 10.1) is known
    assert cache.settled(place(2, 300), 10.2) is known
    cache.take(Change({}, everything=False, point=FilePoint(2, 300), transaction=False), cache.version)
    assert cache.settled(place(2, 300), 10.3) is known
    cache.take(Change({}, everything=False, point=FilePoint(2, 350)), cache.version)
    assert cache.settled(place(2, 300), 10.4) is known
    newer = place(2, 350)
    assert cache.settled(newer, 10.5) is newer


def test_a_position_that_stays_is_settled() -> None:
    cache = RowCache(1000)
    cache.begin(place(1, 300))
    assert cache.settled(place(1, 300), 10.0) is None
    assert cache.settled(place(1, 340), 10.9) is None
    assert cache.settled(place(1, 340), 10.9 + SETTLING - 0.1) is None
    same = place(1, 340)
    assert cache.settled(same, 10.9 + SETTLING + 0.1) is same
    cache.begin(place(1, 340))
    assert cache.settled(same, 20.0) is None


def test_a_gtid_set_is_settled() -> None:
    cache = RowCache(1000)
    executed = GtidSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5")
    cache.begin(executed.copy())
    assert cache.settled(executed, 0.0) is executed
