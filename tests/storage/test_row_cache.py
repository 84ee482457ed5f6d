"""The row cache over SQLite: what it keeps within its limit."""

from __future__ import annotations

import pytest

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.storage.sqlite.row_cache import OVERHEAD, CachedTable, RowCache

KEY = Column("k", Kind.BYTES)
SIZE = len(b"0000") + OVERHEAD + 100  # bytes of each row here


def _cache(rows: int) -> tuple[RowCache, CachedTable]:
    cache = RowCache(rows * SIZE)
    mapping = Mapping("m", "test", "t", "t", KEY, (Column("v", Kind.BYTES),), None, None, None)
    return cache, cache.table(mapping, dirty=False)


def _keep(cache: RowCache, table: CachedTable, number: int) -> None:
    cache.keep(table, b"%04d" % number, (bytes(100), number, None, None, None))


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_the_oldest_rows_make_room(rows: int) -> None:
    cache, table = _cache(rows)
    for number in range(10 * rows):
        _keep(cache, table, number)
        assert cache.size == len(table.items) * SIZE <= cache.limit
    kept = [int(word) for word in table.items]
    assert kept == list(range(10 * rows - len(kept), 10 * rows))
    assert len(kept) >= rows - rows // 16


def test_a_full_cache_looks_for_its_oldest_row_once_for_many_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, table = _cache(1000)
    searches: list[int] = []
    make_room = RowCache._make_room

    def counted(self: RowCache, table: CachedTable, size: int) -> None:
        searches.append(size)
        make_room(self, table, size)

    monkeypatch.setattr(RowCache, "_make_room", counted)
    for number in range(2000):
        _keep(cache, table, number)
    assert len(searches) <= 1000 / (1000 // 16)
