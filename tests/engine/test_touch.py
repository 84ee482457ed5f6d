"""touch, gat and gats at the harness: times, `@@`, columns that are not there, batches and cache policies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
NOW = 1_700_000_000
POLICY = "UPDATE cache_policies SET get_policy = '{0}', set_policy = '{1}'"
TIMELESS = (
    "CREATE TABLE timeless (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))",
    "INSERT INTO timeless VALUES ('k', 'v')",
    "INSERT INTO containers VALUES ('bbb', 'test', 'timeless', 'k', 'v', '0', '0', '0', 'PRIMARY')",
)
NO_COLUMN = b"CLIENT_ERROR mapping bbb has no expiry column: the only time that it keeps is 0\r\n"


def kept(endpoint: Harness, key: str = "k") -> tuple[object, ...]:
    """Return flags, cas number and time of a row as SQL sees them."""
    (row,) = endpoint.rows(f"SELECT c3, c4, c5 FROM demo_test WHERE c1 = '{key}'")
    return row


def test_columns_that_no_mapping_names_and_a_null_stay_as_they_are(harness: Make) -> None:
    endpoint = harness("kvref", "INSERT INTO demo_test (c1, c2, c5) VALUES ('k', 'x', 0)")
    assert endpoint.say(b"gat 100 k\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"
    assert kept(endpoint) == (None, None, NOW + 100)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("touch k", "ERROR"),
        ("touch k 0 0 0", "ERROR"),
        ("touch k x", "CLIENT_ERROR invalid exptime argument"),
        ("touch k 0 other", "TOUCHED"),
        (f"touch {'k' * 251} 0", "CLIENT_ERROR bad command line format"),
        ("touch @@nope.k 0", "NOT_FOUND"),
        ("touch @@aaa. 0", "CLIENT_ERROR no key behind the delimiter in @@aaa."),
        ("touch @@aaa 0", "NOT_FOUND"),
        ("gat 0", "END"),
        ("gat", "ERROR"),
        ("gat x k", "CLIENT_ERROR invalid exptime argument"),
        (f"gat 0 k {'k' * 251}", "CLIENT_ERROR bad command line format"),
        ("gat 0 @>a", "CLIENT_ERROR gat does not support ranges; use get, then touch each key"),
        ("gat 0 @@nope.k", "END"),
    ],
)
def test_what_is_refused_changes_nothing(harness: Make, line: str, answer: str) -> None:
    endpoint = harness()
    endpoint.say(b"set k 0 10 1\r\nx\r\n")
    assert endpoint.say(line.encode() + b"\r\n") == answer.encode() + b"\r\n"
    assert kept(endpoint)[2] == (0 if answer == "TOUCHED" else NOW + 10)


def test_words_switch_and_a_mapping_without_time_can_only_be_touched_with_0(harness: Make) -> None:
    endpoint = harness("kvref", *TIMELESS)
    endpoint.say(b"set k 0 10 1\r\nx\r\n")
    assert endpoint.say(b"gat 100 k @@bbb.k\r\n") == NO_COLUMN
    assert kept(endpoint)[2] == NOW + 100
    assert endpoint.say(b"touch k 1\r\n") == NO_COLUMN  # it is still bound
    assert endpoint.say(b"touch k 0\r\n") == b"TOUCHED\r\n"
    assert endpoint.say(b"gat 0 @@bbb k @@aaa.k\r\n") == (
        b"VALUE @@bbb 0 13\r\ntest/timeless\r\nVALUE k 0 1\r\nv\r\nVALUE @@aaa.k 0 1\r\nx\r\nEND\r\n"
    )


def test_each_key_of_a_gat_is_a_write_of_the_batch(harness: Make) -> None:
    endpoint = harness()
    endpoint.say(b"set k 0 0 1\r\nx\r\nset j 0 0 1\r\nx\r\n")
    endpoint.batch(3)
    assert endpoint.say(b"touch k 10\r\ntouch nokey 10\r\n") == b"TOUCHED\r\nNOT_FOUND\r\n"
    assert kept(endpoint)[2] == 0
    assert endpoint.say(b"gat 20 j nokey k\r\n").count(b"VALUE") == 2
    assert (kept(endpoint)[2], kept(endpoint, "j")[2]) == (NOW + 20, NOW + 20)


def test_they_are_counted(harness: Make) -> None:
    endpoint = harness()
    endpoint.say(
        b"set k 0 0 1\r\nx\r\nstats reset\r\ntouch k 0\r\ntouch nokey 0\r\ntouch k x\r\ngat 0 k nokey @@aaa\r\n"
    )
    rows = endpoint.say(b"stats\r\n").decode().split("\r\n")
    assert [row for row in rows if "touch" in row] == ["STAT cmd_touch 4", "STAT touch_hits 2", "STAT touch_misses 2"]
    assert {"STAT cmd_get 0", "STAT get_hits 0"} <= set(rows)
    assert b"touch" not in harness("mysql-8.0").say(b"stats\r\n")


@pytest.mark.parametrize("policy", ["cache_only", "caching"])
def test_what_is_in_the_cache_is_touched(harness: Make, policy: str) -> None:
    endpoint = harness("kvref", POLICY.format(policy, policy))
    endpoint.say(b"set k 5 0 1\r\nx\r\n")
    answer = endpoint.say(b"gets k\r\n")
    assert endpoint.say(b"gats 10 k nokey\r\n") == answer
    assert endpoint.say(b"touch nokey 20\r\ntouch k 20\r\n") == b"NOT_FOUND\r\nTOUCHED\r\n"
    assert endpoint.say(b"gets k\r\n") == answer
    endpoint.now += 15
    assert endpoint.say(b"gets k\r\n") == answer
    endpoint.now += 6
    assert endpoint.say(b"gets k\r\n") == b"END\r\n"
    assert endpoint.rows("SELECT c5 FROM demo_test WHERE c1 = 'k'") == ([(NOW + 20,)] if policy == "caching" else [])
