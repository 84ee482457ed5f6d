"""Cache policies in process: what the suite cannot reach from outside, with the profiles side by side."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
ALL = "UPDATE cache_policies SET get_policy = '{0}', set_policy = '{0}', delete_policy = '{0}', flush_policy = '{0}'"
CACHING, CACHE = ALL.format("caching"), ALL.format("cache_only")
NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"


def item(value: bytes, key: bytes = b"k") -> bytes:
    return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value)


def value_of(endpoint: Harness, connection: str = "a") -> bytes:
    return endpoint.say(b"get k\r\n", connection)


def test_what_is_discarded_never_enters(harness: Make) -> None:
    endpoint = harness("kvref", CACHING)
    endpoint.say(b"set k 0 0 3\r\nold\r\n")
    endpoint.batch(10, 10)
    endpoint.say(b"set k 0 0 3\r\nnew\r\n")
    assert (value_of(endpoint), value_of(endpoint, "b")) == (item(b"new"), item(b"old"))
    endpoint.session("a").batch.reset()  # as where the transaction is lost
    assert endpoint.shared.cache.rows()["curr_items"] == "1"
    assert value_of(endpoint) == item(b"old")


def test_a_batch_enters_with_its_commit(harness: Make) -> None:
    endpoint = harness("kvref", CACHING)
    endpoint.batch(2)
    endpoint.say(b"set k 0 0 1\r\nx\r\n")
    assert endpoint.shared.cache.rows()["curr_items"] == "0"
    endpoint.say(b"delete nokey\r\n")
    endpoint.say(b"set j 0 0 1\r\ny\r\n")
    assert endpoint.shared.cache.rows()["curr_items"] == "2"
    endpoint.sql.execute("UPDATE demo_test SET c2 = 'sql'")
    assert value_of(endpoint) == item(b"x")


def test_the_plugin_keeps_what_was_discarded(harness: Make) -> None:
    for profile in ("mysql-8.0", "mysql-5.6"):
        endpoint = harness(profile, CACHING)
        endpoint.batch(10, 10)
        endpoint.say(b"set k 0 0 1\r\nx\r\n")
        assert endpoint.say(b"delete nokey\r\n") == b"NOT_FOUND\r\n"
        assert value_of(endpoint, "b") == item(b"x")  # [tx:policy-039]
        assert endpoint.rows("SELECT * FROM demo_test WHERE c1 = 'k'") == []


def test_a_large_set_removes_the_row_and_its_item_from_the_cache(harness: Make) -> None:
    endpoint = harness("kvref", CACHING)
    endpoint.say(b"set k 0 0 1\r\nx\r\n")
    endpoint.say(b"set k 0 0 2000000\r\n" + b"v" * 2_000_000 + b"\r\n")
    assert value_of(endpoint, "b") == b"END\r\n"
    assert endpoint.rows("SELECT * FROM demo_test WHERE c1 = 'k'") == []


def test_a_large_set_removes_its_key_from_the_cache(harness: Make) -> None:
    refused = b"SERVER_ERROR object too large for cache\r\n"
    for profile in ("mysql-8.0", "mysql-5.6", "kvref"):
        endpoint = harness(profile, CACHE)
        endpoint.say(b"set k 0 0 1\r\nx\r\n")
        assert endpoint.say(b"set k 0 0 1048577\r\n" + b"y" * 1048577 + b"\r\n") == refused
        assert value_of(endpoint) == b"END\r\n"  # [more:policy-111]


@pytest.mark.parametrize(
    ("value", "answer"),
    [(b" 12 ", b"13\r\n"), (b"12 x", b"13\r\n"), (b"12\0-", b"13\r\n"), (b"9223372036854775809\0-", b"9223372036854775810\r\n"),
     (b"9223372036854775809 -", NUMBER), (b" ", b"1\r\n"), (b"12x", NUMBER), (b"", NUMBER)],
)  # fmt: skip
def test_the_plugin_counts_from_the_number_in_front_of_a_blank_or_nul(
    harness: Make, value: bytes, answer: bytes
) -> None:
    # Seen on both versions; safe_strtoull looks for a minus up to the NUL.
    for profile in ("mysql-8.0", "mysql-5.6"):
        endpoint = harness(profile, CACHE)
        endpoint.say(b"set k 0 0 %d\r\n%s\r\n" % (len(value), value))
        assert endpoint.say(b"incr k 1\r\n") == answer


def test_time_in_the_cache_and_in_the_row(harness: Make) -> None:
    for profile, kept, row in (("mysql-8.0", 0, 102), ("mysql-5.6", 98, 100), ("kvref", 0, 100)):
        endpoint = harness(profile, CACHING)
        endpoint.say(b"set k 0 100 1\r\nx\r\n")
        ((time,),) = endpoint.rows("SELECT c5 FROM demo_test WHERE c1 = 'k'")
        assert time - endpoint.now == row, profile  # [more:policy-160]
        endpoint.sql.execute("DELETE FROM demo_test")
        endpoint.now += 98 - kept
        assert value_of(endpoint) == item(b"x"), profile
        endpoint.now += 2 + kept
        assert value_of(endpoint) == b"END\r\n", profile


def test_the_spelling_of_the_row_counts(harness: Make) -> None:
    endpoint = harness("kvref", CACHING)
    endpoint.say(b"set k 0 0 1\r\nx\r\nset K 0 0 1\r\ny\r\n")
    assert value_of(endpoint) == item(b"y")
    assert endpoint.say(b"get K\r\n") == item(b"y", b"K")
    assert endpoint.say(b"delete K\r\n") == b"DELETED\r\n"
    assert value_of(endpoint) == b"END\r\n"
