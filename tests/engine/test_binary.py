"""Requests of the binary protocol only, in process: cas numbers of every write, initial numbers, one row of a range."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
NOW = 1_700_000_000
APPEND, DELETE, INCR, GET, GETK = 0x0E, 0x04, 0x05, 0x00, 0x0C
OK, NOT_FOUND, EXISTS = 0, 1, 2
CACHE_ONLY = "UPDATE cache_policies SET get_policy = '{0}', set_policy = '{0}', delete_policy = '{0}'"


def requests(
    endpoint: Harness, opcode: int, key: str, extras: bytes = b"", data: bytes = b"", cas: int = 0
) -> tuple[int, bytes, int]:
    """Return status, body and cas number of the one reply."""
    body = extras + key.encode() + data
    head = struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(body), 9, cas)
    received = endpoint.say(head + body, "binary")
    _, _, _, _, _, status, length, opaque, number = struct.unpack(">BBHBBHIIQ", received[:24])
    assert (len(received), opaque) == (24 + length, 9)
    return status, received[24:], number


def stored(endpoint: Harness, data: str) -> int:
    """Store a value under `k` and return its cas number."""
    status, body, cas = requests(endpoint, 0x01, "k", struct.pack(">II", 5, 0), data.encode())
    assert (status, body) == (OK, b"")
    return cas


def number(initial: int, time: int, delta: int = 1) -> bytes:
    return struct.pack(">QQI", delta, initial, time)


@pytest.mark.parametrize("policy", ["innodb_only", "cache_only"])
@pytest.mark.parametrize(
    ("opcode", "extras", "data", "left"),
    [(APPEND, b"", b"0", b"10"), (INCR, number(0, 0), b"", b"2"), (DELETE, b"", b"", b"")],
)
def test_every_write_checks_its_cas_number(
    harness: Make, policy: str, opcode: int, extras: bytes, data: bytes, left: bytes
) -> None:
    endpoint = harness("kvref", CACHE_ONLY.format(policy))
    cas = stored(endpoint, "1")
    assert requests(endpoint, opcode, "k", extras, data, cas + 1)[0] == EXISTS
    assert requests(endpoint, GET, "k") == (OK, b"\0\0\0\x051", cas)
    assert requests(endpoint, opcode, "k", extras, data, cas)[0] == OK
    status, body, _ = requests(endpoint, GET, "k")
    assert (status, body[4:]) == ((OK, left) if left else (NOT_FOUND, b"found"))


@pytest.mark.parametrize(("profile", "time"), [("kvref", NOW + 60), ("mysql-8.0", 0)])
def test_a_first_number(harness: Make, profile: str, time: int) -> None:
    endpoint = harness(profile)
    assert requests(endpoint, INCR, "n", number(7, 0xFFFFFFFF))[:2] == (NOT_FOUND, b"Not found")
    status, body, cas = requests(endpoint, INCR, "n", number(7, 60))
    assert (status, body) == (OK, struct.pack(">Q", 7))
    assert endpoint.rows("SELECT c2, c3, c4, c5 FROM demo_test WHERE c1 = 'n'") == [("7", 0, cas, time)]
    assert requests(endpoint, INCR, "n", number(9, 60))[1] == struct.pack(">Q", 8)


def test_a_first_number_replaces_a_row_that_is_over(harness: Make) -> None:
    endpoint = harness()
    requests(endpoint, INCR, "n", number(7, 60))
    endpoint.now += 100
    assert requests(endpoint, INCR, "n", number(9, 60))[1] == struct.pack(">Q", 9)


def test_a_first_number_beyond_the_column_is_refused(harness: Make) -> None:
    endpoint = harness("kvref", "CREATE TABLE small (k VARCHAR(9) PRIMARY KEY, v VARCHAR(1))",
                    "INSERT INTO containers VALUES ('s', 'test', 'small', 'k', 'v', '0', '0', '0', 'PRIMARY')")  # fmt: skip
    status, body, _ = requests(endpoint, INCR, "@@s.n", number(10, 0))
    assert (status, body) == (3, b"Too large")
    assert endpoint.rows("SELECT * FROM small") == []


@pytest.mark.parametrize(("profile", "key"), [("kvref", b"Bbbbbb"), ("mysql-8.0", b"Bbb")])
def test_one_row_of_a_range(harness: Make, profile: str, key: bytes) -> None:
    endpoint = harness(profile, "INSERT INTO demo_test VALUES ('Bbbbbb', '1', 0, 0, 0), ('C', '2', 0, 0, 0)")
    assert requests(endpoint, GETK, "@>B") == (OK, b"\0\0\0\0" + key + b"1", 0)
    assert requests(endpoint, GETK, "@>C") == (NOT_FOUND, b"@>C", 0)


def test_a_short_key_of_a_range_is_filled_up(harness: Make) -> None:
    endpoint = harness("mysql-8.0", "INSERT INTO demo_test VALUES ('C', '2', 0, 0, 0)")
    assert requests(endpoint, GETK, "@>B") == (OK, b"\0\0\0\0C\0\x002", 0)


def test_5_6_reports_no_failed_sum_and_gives_numbers_away_where_it_came_to_a_write(harness: Make) -> None:
    endpoint = harness("mysql-5.6")
    assert requests(endpoint, INCR, "missing", number(0, 0xFFFFFFFF)) == (OK, bytes(8), 0)
    assert stored(endpoint, "9" * 20) > 0
    assert requests(endpoint, INCR, "k", number(0, 0)) == (OK, bytes(8), 0)


def test_a_vbucket_number_says_that_more_words_follow(harness: Make) -> None:
    container = "INSERT INTO containers VALUES ('bbb', 'test', 'demo_test', 'c1', 'c3', '0', '0', '0', 'PRIMARY')"
    endpoint = harness("mysql-8.0", container)
    miss = struct.pack(">BBHBBHIIQ", 0x80, GET, 1, 0, 0, 1, 1, 9, 0) + b"z"
    endpoint.say(miss, "binary")
    assert requests(endpoint, GET, "@@bbb.AA")[1] == b"\0\0\0\x08HELLO, HELLO"
    assert requests(endpoint, GET, "@@bbb.AA")[1] == b"\0\0\0\x008"
    assert (
        requests(endpoint, GET, "@@aaa\0AA")[1] == b"\0\0\0\x08HELLO, HELLO"
    )  # NUL ends a name, whatever the delimiter
