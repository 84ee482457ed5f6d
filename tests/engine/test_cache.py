"""The memory cache by itself: room, time, flush, and rows that are written and not committed yet."""

from __future__ import annotations

import pytest

from kvref.engine.cache.memory import HEADER, Cache, Entry, Pending

NOW = 1_700_000_000
KEY = ("t", b"k")


def entry(data: bytes = b"x", expiry: int = 0, since: int = NOW) -> Entry:
    return Entry(0, data, 1, expiry, since)


def test_the_item_not_used_for_the_longest_time_goes_first() -> None:
    cache = Cache(limit=3 * (HEADER + 2))
    for name in (b"a", b"b", b"c"):
        assert cache.put(("", name), entry())
    assert cache.find(("", b"a"), NOW)
    assert cache.put(("", b"d"), entry())
    assert [name for name in (b"a", b"b", b"c", b"d") if cache.find(("", name), NOW)] == [b"a", b"c", b"d"]
    assert cache.rows() == {"evictions": "1", "curr_items": "3", "total_items": "4", "bytes": str(3 * (HEADER + 2))}


def test_an_item_larger_than_the_cache_replaces_nothing_but_its_own() -> None:
    cache = Cache(limit=HEADER + 2)
    assert cache.put(("", b"a"), entry())
    assert not cache.put(("", b"b"), entry(b"xy"))
    assert cache.find(("", b"a"), NOW)


def test_an_item_is_over_in_the_second_of_its_time() -> None:
    cache = Cache()
    cache.put(KEY, entry(expiry=NOW + 1))
    assert cache.find(KEY, NOW)
    assert cache.find(KEY, NOW + 1) is None
    assert cache.rows()["bytes"] == "0"


@pytest.mark.parametrize(
    ("exptime", "over"),
    [(0, 0), (1, NOW + 1), (2592000, NOW + 2592000), (2592001, 2592001), (2_000_000_000, 2_000_000_000)],
)
def test_times_are_memcacheds(exptime: int, over: int) -> None:
    assert Cache().expiry_of(exptime, NOW) == over


def test_a_delayed_flush_drops_what_was_there_before_its_end() -> None:
    cache = Cache()
    cache.put(KEY, entry())
    cache.flush(3, NOW)
    assert cache.find(KEY, NOW + 1)
    assert cache.find(KEY, NOW + 2) is None
    cache.put(KEY, entry(since=NOW + 3))
    assert cache.find(KEY, NOW + 3)


def test_a_restart_forgets_a_delayed_flush() -> None:
    cache = Cache()
    cache.flush(3, NOW)
    cache.restart(NOW)
    cache.put(KEY, entry())
    assert cache.find(KEY, NOW + 5)


def test_a_row_enters_with_the_commit() -> None:
    cache = Cache()
    mine = Pending(cache)
    cache.put(KEY, entry(b"old"))
    mine.wrote(KEY, entry(b"new"))
    assert mine.holds(KEY)
    before = cache.find(KEY, NOW)
    assert before
    assert before.data == b"old"
    mine.committed()
    after = cache.find(KEY, NOW)
    assert after
    assert after.data == b"new"
    assert not mine.holds(KEY)


def test_what_a_later_writer_is_about_to_change_does_not_enter() -> None:
    cache = Cache()
    first, second = Pending(cache), Pending(cache)
    cache.put(KEY, entry(b"old"))
    first.wrote(KEY, entry(b"one"))
    second.wrote(KEY, entry(b"two"))
    first.committed()
    assert cache.find(KEY, NOW) is None
    second.discarded()
    assert cache.find(KEY, NOW) is None


def test_what_was_written_before_a_flush_does_not_enter_after_it() -> None:
    cache = Cache()
    mine = Pending(cache)
    mine.wrote(KEY, entry())
    cache.flush(0, NOW)
    mine.committed()
    assert cache.find(KEY, NOW) is None
