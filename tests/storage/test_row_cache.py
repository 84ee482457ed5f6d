"""The row cache over SQLite: what it keeps within its limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Clear
from kvref.storage.sqlite.row_cache import MISSING_OVERHEAD, OVERHEAD, CachedTable, RowCache

KEY = Column("k", Kind.BYTES)
SIZE = len(b"0000") + OVERHEAD + 100  # bytes of each row here


def _cache(rows: int) -> tuple[RowCache, CachedTable]:
    cache = RowCache(rows * SIZE)
    mapping = Mapping("m", "test", "t", "t", KEY, (Column("v", Kind.BYTES),), None, None, None)
    return cache, cache.table(mapping, dirty=False)


def _keep(cache: RowCache, table: CachedTable, number: int) -> None:
    cache.put(table, b"%04d" % number, (bytes(100), number, None, None, None))


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_the_oldest_rows_make_room(rows: int) -> None:
    cache, table = _cache(rows)
    for number in range(10 * rows):
        _keep(cache, table, number)
        assert cache.size == len(table.items) * SIZE <= cache.limit
    kept = [int(word) for word in table.items]
    assert kept == list(range(10 * rows - len(kept), 10 * rows))
    assert len(kept) >= rows - rows // 16


def test_a_full_cache_makes_room_for_many_new_rows_at_once() -> None:
    cache, table = _cache(1000)
    fewer = 0  # times that it had fewer rows than before
    for number in range(2000):
        before = len(table.items)
        _keep(cache, table, number)
        fewer += len(table.items) < before
    assert 0 < fewer <= 1000 / (1000 // 16)


def test_missing_keys_take_no_room_of_rows() -> None:
    cache, table = _cache(4)
    cache.put_missing(table, b"none")
    assert (table.missing, cache.size) == ({b"none"}, 4 + MISSING_OVERHEAD)
    for number in range(4):
        _keep(cache, table, number)
    assert (len(table.items), table.missing, cache.size) == (4, set(), 4 * SIZE)
    cache.put_missing(table, b"none")
    assert (len(table.items), table.missing, cache.size) == (4, set(), 4 * SIZE)


def test_missing_keys_of_another_table_take_no_room_of_rows() -> None:
    cache, table = _cache(4)
    mapping = Mapping("other", "test", "other", "other", KEY, (Column("v", Kind.BYTES),), None, None, None)
    other = cache.table(mapping, dirty=False)
    for number in range(3):
        _keep(cache, table, number)
    while not other.missing or cache.size + MISSING_OVERHEAD + 4 <= cache.limit:
        cache.put_missing(other, b"%04d" % len(other.missing))
    _keep(cache, table, 3)
    assert (len(table.items), other.missing, cache.size) == (4, set(), 4 * SIZE)


def test_missing_keys_are_forgotten_within_the_limit() -> None:
    cache, table = _cache(40)
    for number in range(1000):
        cache.put_missing(table, b"%04d" % number)
        assert cache.size == len(table.missing) * (4 + MISSING_OVERHEAD) <= cache.limit
    assert b"0999" in table.missing


@pytest.mark.parametrize(("collation", "kept"), [("BINARY", {b"other"}), ("NOCASE", set())])
def test_a_written_key_is_missing_no_more_and_neither_are_those_equal_to_it(collation: str, kept: set[bytes]) -> None:
    cache = RowCache(1 << 20)
    key = Column("k", Kind.TEXT, 32, cuts=True, collation=collation)
    mapping = Mapping("m", "test", "t", "t", key, (Column("v", Kind.BYTES),), None, None, None)
    table = cache.table(mapping, dirty=False)
    for word in (b"a", b"other"):
        cache.put_missing(table, word)
    cache.change(mapping, b"a", None)
    assert table.missing == kept
    assert cache.size == sum(len(word) + MISSING_OVERHEAD for word in kept)
    cache.put_missing(table, b"a")
    cache.put_missing(table, b"third")
    assert table.missing == (kept | {b"third"} if kept else set())  # `a` waits for its commit
    cache.clear()
    assert (table.missing, cache.size) == (set(), 0)


def test_a_renewed_cache_has_its_rows_in_other_tables() -> None:
    cache, table = _cache(8)
    empty = cache.table(replace(table.mapping, name="empty", source="other"), dirty=False)
    _keep(cache, table, 1)
    cache.put_missing(table, b"none")
    cache.change(table.mapping, b"written", (b"w", 2, None, None, None))
    size = cache.size
    cache.renew()
    renewed = cache.table(table.mapping, dirty=True)
    assert not table.live
    assert not empty.live
    assert renewed.live
    assert (set(renewed.items), renewed.missing, cache.size) == ({b"0001"}, {b"none"}, size)
    assert not renewed.dirty  # it was not made just now
    cache.put(table, b"late", (b"l", 3, None, None, None))  # what a read of before the change comes with
    cache.committed(lost=False)
    cache.synced(lost=False)
    assert set(renewed.items) == {b"0001", b"written"}
    cache.change(table.mapping, b"0001", None)
    assert set(renewed.items) == {b"written"}
    assert cache.table(empty.mapping, dirty=False) is not empty


@pytest.mark.parametrize("doubts", ["sql", "trigger"])
def test_a_renewed_cache_knows_what_is_not_committed(doubts: str) -> None:
    cache, table = _cache(8)
    _keep(cache, table, 1)
    cache.change(table.mapping, b"0001", None)
    if doubts == "sql":
        cache.wrote_any("t")
    else:
        cache.wrote(Clear(table.mapping, ""), elsewhere=True)
    cache.renew()
    renewed = cache.table(table.mapping, dirty=True)
    assert renewed.dirty
    assert renewed.changed == {b"0001": None}
    cache.committed(lost=False)
    cache.renew()
    renewed = cache.table(table.mapping, dirty=False)
    assert renewed.dirty_syncing
    assert renewed.syncing == {b"0001": None}
    cache.synced(lost=False)
    _keep(cache, renewed, 1)
    cache.renew()
    cache.wrote_any("t")  # finds the table that is in use now
    assert not cache.table(table.mapping, dirty=True).items
