"""A negative time at the harness: the item is over at once, with and without an expiry column, in the table and the cache."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
POLICY = "UPDATE cache_policies SET get_policy = '{0}', set_policy = '{0}'"
TIMELESS = (
    "CREATE TABLE timeless (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), c BIGINT)",
    "UPDATE containers SET db_table = 'timeless', key_columns = 'k', value_columns = 'v', flags = '0', cas_column = 'c', expire_time_column = '0'",
)
# Each command is sent to an item of the value 5, or to none where it creates one, and leaves none.
ENDS = {
    b"set k 0 -1 1\r\nx\r\n": b"STORED\r\n",
    b"set k 0 4294967295 1\r\nx\r\n": b"STORED\r\n",
    b"set k 0 -1 1 noreply\r\nx\r\n": b"",
    b"replace k 0 -1 1\r\nx\r\n": b"STORED\r\n",
    b"touch k -1\r\n": b"TOUCHED\r\n",
    b"touch k 4294967295 noreply\r\n": b"",
    b"gat -1 k\r\n": b"VALUE k 0 1\r\n5\r\nEND\r\n",
    b"mg k T-1 v t\r\n": b"VA 1 t0\r\n5\r\n",
    b"ms k 1 T-1\r\nx\r\n": b"HD\r\n",
    b"md k I T-1\r\n": b"HD\r\n",
    b"ma k T-1 v t\r\n": b"VA 1 t0\r\n6\r\n",
}
CREATES = {
    b"add n 0 -1 1\r\nx\r\n": b"STORED\r\n",
    b"ms n 1 T-1 ME\r\nx\r\n": b"HD\r\n",
    b"mg n N-1 v t\r\n": b"VA 0 t0 W\r\n\r\n",
    b"ma n N-1 J5 v t\r\n": b"VA 1 t0\r\n5\r\n",
}


@pytest.mark.parametrize("policy", ["innodb_only", "caching", "cache_only"])
@pytest.mark.parametrize("sql", [(), TIMELESS], ids=["column", "no-column"])
def test_an_item_is_over_at_once(harness: Make, sql: tuple[str, ...], policy: str) -> None:
    endpoint = harness("kvref", *sql, POLICY.format(policy))
    for requests, answer in ENDS.items():
        assert endpoint.say(b"set k 0 0 1\r\n5\r\nget k\r\n") == b"STORED\r\nVALUE k 0 1\r\n5\r\nEND\r\n", requests
        assert (requests, endpoint.say(requests)) == (requests, answer)
        assert (requests, endpoint.say(b"get k\r\nmg k v\r\ntouch k 0\r\n")) == (
            requests,
            b"END\r\nEN\r\nNOT_FOUND\r\n",
        )
    for requests, answer in CREATES.items():
        assert (requests, endpoint.say(requests)) == (requests, answer)
        assert (requests, endpoint.say(b"get n\r\nmg n v\r\n")) == (requests, b"END\r\nEN\r\n")


def test_a_batch_takes_it_back_with_the_rest(harness: Make) -> None:
    endpoint = harness("kvref", *TIMELESS, POLICY.format("caching"))
    endpoint.say(b"set k 0 0 1\r\n5\r\n")
    endpoint.batch(3, 9)
    assert endpoint.say(b"touch k -1\r\nget k\r\n") == b"TOUCHED\r\nEND\r\n"
    assert endpoint.rows("SELECT v FROM timeless") == [("5",)]
    assert endpoint.say(b"set j 0 -1 1\r\nx\r\nset i 0 0 1\r\nx\r\n") == b"STORED\r\n" * 2
    assert endpoint.rows("SELECT k FROM timeless") == [("i",)]


def test_a_condition_comes_first(harness: Make) -> None:
    endpoint = harness("kvref", *TIMELESS)
    endpoint.say(b"set k 0 0 1\r\n5\r\n")
    requests = (
        b"add k 0 -1 1\r\nx\r\ncas k 0 -1 1 99999\r\nx\r\nreplace n 0 -1 1\r\nx\r\nms k 9 T-1 C99999\r\n123456789\r\n"
    )
    assert endpoint.say(requests) == b"NOT_STORED\r\nEXISTS\r\nNOT_STORED\r\nEX\r\n"
    assert endpoint.say(b"get k\r\n") == b"VALUE k 0 1\r\n5\r\nEND\r\n"
    assert endpoint.say(b"append k 0 -1 1\r\nx\r\nget k\r\n") == b"STORED\r\nVALUE k 0 2\r\n5x\r\nEND\r\n"
