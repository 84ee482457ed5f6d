"""incr and decr beyond one plain number; ids in brackets name recordings of the plugin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
PLUGINS = ("mysql-8.0", "mysql-5.6")


def table(columns: str, row: str, values: str = "v", key: str = "k", index: str = "PRIMARY") -> tuple[str, ...]:
    return (
        "DELETE FROM containers",
        f"CREATE TABLE t ({columns})",
        f"INSERT INTO t VALUES ({row})",
        f"INSERT INTO containers VALUES ('t', 'test', 't', '{key}', '{values}', '0', '0', '0', '{index}')",
    )


@pytest.mark.parametrize(
    ("columns", "row", "number"),
    [
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), w VARCHAR(9)", "'a', '1', '2'", 12),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), w VARCHAR(9)", "'a', '1 ', '2'", 1),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), w VARCHAR(9)", "'a', '', '2x'", 2),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), w VARCHAR(9)", "'a', NULL, '2'", 0),
        ("k VARCHAR(9) PRIMARY KEY, v CHAR(3), w VARCHAR(9)", "'a', '1', '2'", 1),
        ("k VARCHAR(9) PRIMARY KEY, v CHAR(3), w VARCHAR(9)", "'a', '123', '2'", 1232),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), n INT, w VARCHAR(9)", "'a', '1', NULL, '7'", 17),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), n INT, w VARCHAR(9)", "'a', '1', 5, '7'", 1),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), n BIGINT UNSIGNED, w VARCHAR(9)", "'a', '1', 3544952156018063160, '7'", 1123456787),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), n TINYINT UNSIGNED, w VARCHAR(9)", "'a', '1', 53, '7'", 157),
        ("v VARCHAR(9), k VARCHAR(9) PRIMARY KEY, w VARCHAR(9)", "'1', 'a', '7'", 17),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), w VARBINARY(9), x BLOB, y TEXT", "'a', '1', x'32', x'33', '4'", 1234),
        ("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), d REAL_NO_SUCH_TYPE, w VARCHAR(9)", "'a', '1', 5, '9'", 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("profile", PLUGINS)
def test_a_text_is_read_on_into_what_follows_it_in_the_record(
    harness: Make, profile: str, columns: str, row: str, number: int
) -> None:
    endpoint = harness(profile, *table(columns, row))  # [run-on-001, several-019, several-020]
    assert endpoint.say(b"incr a 0\r\n") == b"%d\r\n" % number


def test_several_integer_columns(harness: Make) -> None:
    sql = table("k VARCHAR(9) PRIMARY KEY, v INT, w INT", "'a', 1, 2", values="v,w")
    endpoint = harness("mysql-8.0", *sql)
    assert endpoint.say(b"incr a 1\r\n") == b"2\r\n"  # [col-050]
    assert endpoint.rows("SELECT v, w FROM t") == [(2, None)]
    endpoint = harness("mysql-5.6", *sql)
    # 5.6.14 answers a number from uninitialised memory and stores nothing.
    assert endpoint.say(b"incr a 1\r\n") == b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
    assert endpoint.rows("SELECT v, w FROM t") == [(1, 2)]


@pytest.mark.parametrize(
    ("profile", "answer"),
    [("mysql-8.0", "SERVER_ERROR failed to store item"), ("mysql-5.6", "6"), ("kvref", "SERVER_ERROR UNIQUE constraint failed: t.v")],
)  # fmt: skip
def test_a_sum_that_the_table_refuses(harness: Make, profile: str, answer: str) -> None:
    endpoint = harness(
        profile, *table("k VARCHAR(9) PRIMARY KEY, v VARCHAR(9) UNIQUE", "'a', '5'"), "INSERT INTO t VALUES ('b', '6')"
    )
    assert endpoint.say(b"incr a 1\r\n") == answer.encode() + b"\r\n"  # [idx-001, index-003]
    assert endpoint.rows("SELECT v FROM t WHERE k = 'a'") == [("5",)]
