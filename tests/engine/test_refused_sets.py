"""A set whose value is refused removes the old item, at the harness: in a batch, in the cache, and not where it is set off."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
POLICY = "UPDATE cache_policies SET get_policy = '{0}', set_policy = '{0}', delete_policy = '{0}'"
OLD = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
LARGE = b"set AA 0 0 %d\r\n%b\r\n"
TOO_LARGE = b"SERVER_ERROR object too large for cache\r\n"
TOO_WIDE = b"SERVER_ERROR object too large for cache: column c2 takes 1024 characters\r\n"
WIDE, WIDER = LARGE % (1025, b"v" * 1025), LARGE % ((1 << 20) + 1, b"v" * ((1 << 20) + 1))


@pytest.mark.parametrize("requests", [WIDE, WIDER, LARGE % (2, b"\xff\xfe")], ids=["column", "limit", "charset"])
@pytest.mark.parametrize("policy", ["innodb_only", "caching"])
def test_the_old_item_is_gone(harness: Make, policy: str, requests: bytes) -> None:
    endpoint = harness("kvref", POLICY.format(policy))
    endpoint.say(b"set AA 8 0 12\r\nHELLO, HELLO\r\n")
    assert endpoint.say(b"get AA\r\n") == OLD
    assert endpoint.say(requests).startswith(b"SERVER_ERROR")
    assert endpoint.say(b"get AA\r\n") == b"END\r\n"
    assert endpoint.rows("SELECT c1 FROM demo_test WHERE c1 = 'AA'") == []
    assert endpoint.say(requests.replace(b"set AA", b"set @@aaa.new")).startswith(b"SERVER_ERROR")


def test_other_verbs_leave_it(harness: Make) -> None:
    endpoint = harness()
    for verb in (b"add", b"replace", b"append", b"prepend"):
        assert endpoint.say(WIDER.replace(b"set", verb)) == TOO_LARGE
        assert endpoint.say(WIDE.replace(b"set", verb)) == (b"NOT_STORED\r\n" if verb == b"add" else TOO_WIDE)
    assert endpoint.say(b"get AA\r\n") == OLD


def test_it_is_a_write_of_its_batch(harness: Make) -> None:
    endpoint = harness()
    endpoint.batch(3, 9)
    assert endpoint.say(b"set k 0 0 1\r\nx\r\n" + WIDE) == b"STORED\r\n" + TOO_WIDE
    assert endpoint.rows("SELECT c1 FROM demo_test WHERE c1 = 'AA'") == [("AA",)]
    assert endpoint.say(b"get AA\r\nset j 0 0 1\r\nx\r\n") == b"END\r\nSTORED\r\n"
    assert endpoint.rows("SELECT c1 FROM demo_test WHERE c1 IN ('AA', 'k', 'j') ORDER BY c1") == [("j",), ("k",)]


def test_a_value_that_does_not_fit_leaves_the_row_where_that_is_set(harness: Make) -> None:
    endpoint = harness()
    endpoint.shared.oversized_set_removes = False
    assert endpoint.say(WIDE + b"get AA\r\n") == TOO_WIDE + OLD


@pytest.mark.parametrize(
    ("declared", "takes"),
    [
        ("VARCHAR(4) COLLATE utf8mb4_general_ci", "4 characters"),
        ("VARCHAR(5) COLLATE latin1_swedish_ci", "5 characters"),
        ("VARCHAR(6) COLLATE ucs2_general_ci", "6 characters"),
        ("TINYTEXT", "255 bytes"),
        ("VARBINARY(8)", "8 bytes"),
    ],
)
def test_the_reply_names_column_and_width(harness: Make, declared: str, takes: str) -> None:
    endpoint = harness(
        "kvref",
        f"CREATE TABLE t (k VARCHAR(32) PRIMARY KEY, n INT, v {declared}, f INT, c BIGINT UNSIGNED, e INT)",
        "INSERT INTO containers VALUES ('t', 'test', 't', 'k', 'n|v', 'f', 'c', 'e', 'PRIMARY')",
    )
    assert endpoint.say(b"set @@t.k 0 0 302\r\n1|" + b"w" * 300 + b"\r\n") == (
        f"SERVER_ERROR object too large for cache: column v takes {takes}\r\n".encode()
    )
