"""Requests of the binary protocol only, in process: numbers that do not fit, and what 5.6 does with them."""

from __future__ import annotations

import struct
from collections.abc import Callable

from helpers.harness import Harness

Make = Callable[..., Harness]
APPEND, DELETE, INCR, GET, GETK = 0x0E, 0x04, 0x05, 0x00, 0x0C
OK, NOT_FOUND, EXISTS = 0, 1, 2


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


def test_a_first_number_beyond_the_column_is_refused(harness: Make) -> None:
    endpoint = harness("kvref", "CREATE TABLE small (k VARCHAR(9) PRIMARY KEY, v VARCHAR(1))",
                    "INSERT INTO containers VALUES ('s', 'test', 'small', 'k', 'v', '0', '0', '0', 'PRIMARY')")  # fmt: skip
    status, body, _ = requests(endpoint, INCR, "@@s.n", number(10, 0))
    assert (status, body) == (3, b"Too large")
    assert endpoint.rows("SELECT * FROM small") == []


def test_5_6_reports_no_failed_sum_and_gives_numbers_away_where_it_came_to_a_write(harness: Make) -> None:
    endpoint = harness("mysql-5.6")
    assert requests(endpoint, INCR, "missing", number(0, 0xFFFFFFFF)) == (OK, bytes(8), 0)
    assert stored(endpoint, "9" * 20) > 0
    assert requests(endpoint, INCR, "k", number(0, 0)) == (OK, bytes(8), 0)
