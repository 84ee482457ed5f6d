"""Keys that a program has written as BLOB into a text column, which no text equals: what a get finds, every verb does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

from kvref.engine.operations import ListedRow, ListRows, Row, Scan
from kvref.engine.values import to_bytes

Make = Callable[..., Harness]
COLUMNS = (
    "VARCHAR(9) PRIMARY KEY",
    "CHAR(9) PRIMARY KEY",
    "VARCHAR(9) COLLATE latin1_swedish_ci PRIMARY KEY",
    "CHAR(9) COLLATE latin1_bin PRIMARY KEY",
    "VARCHAR(9) COLLATE ucs2_bin PRIMARY KEY",
)
ROW = "INSERT OR REPLACE INTO odd VALUES (x'6363', '19', 0, 7, 0)"  # of the key cc, which is one letter of ucs2
BATCH = 9  # reads or writes


def odd(harness: Make, profile: str, column: str, *sql: str) -> Harness:
    """Return an endpoint with such a table, on which the connection is bound to it."""
    endpoint = harness(
        profile,
        f"CREATE TABLE odd (k {column}, v VARCHAR(9), f INT, c BIGINT UNSIGNED, e INT)",
        "INSERT INTO containers VALUES ('odd', 'test', 'odd', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')",
        *sql,
    )
    assert endpoint.say(b"bind odd\r\n") == b"SUCCEED\r\n"
    return endpoint


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_every_verb_writes_the_row_that_a_get_finds(harness: Make, profile: str, column: str) -> None:
    endpoint = odd(harness, profile, column)
    for request, reply, value in (
        (b"set cc 0 0 1\r\nx\r\n", b"STORED", "x"),
        (b"replace cc 0 0 1\r\nx\r\n", b"STORED", "x"),
        (b"add cc 0 0 1\r\nx\r\n", b"NOT_STORED", "19"),
        (b"append cc 0 0 1\r\nx\r\n", b"STORED", "19x"),
        (b"prepend cc 0 0 1\r\nx\r\n", b"STORED", "x19"),
        (b"cas cc 0 0 1 7\r\nx\r\n", b"STORED", "x"),
        (b"incr cc 5\r\n", b"24", "24"),
        (b"decr cc 5\r\n", b"14", "14"),
        (b"delete cc\r\n", b"DELETED", None),
        *(
            ((b"touch cc 100\r\n", b"TOUCHED", "19"), (b"ms cc 1\r\nx\r\n", b"HD", "x"), (b"md cc\r\n", b"HD", None))
            if profile == "kvref"
            else ()
        ),
    ):
        endpoint.sql.execute("DELETE FROM odd")
        endpoint.sql.execute(ROW)
        assert endpoint.say(b"get cc\r\n") == b"VALUE cc 0 2\r\n19\r\nEND\r\n"
        assert endpoint.say(request) == reply + b"\r\n", request
        assert endpoint.rows("SELECT v FROM odd") == ([] if value is None else [(value,)]), request


@pytest.mark.parametrize("column", COLUMNS)
def test_its_key_stays_as_it_is_where_no_set_rewrites_keys(harness: Make, column: str) -> None:
    endpoint = odd(harness, "kvref", column, ROW)
    endpoint.say(b"set cc 0 0 1\r\nx\r\nincr cc 1\r\nappend cc 0 0 1\r\ny\r\n")
    assert endpoint.rows("SELECT k, v FROM odd") == [(b"cc", "xy")]


@pytest.mark.parametrize("column", [COLUMNS[0], *COLUMNS[2:4]])
@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0"])
@pytest.mark.parametrize("level", [0, 2])
def test_a_batch_sees_its_own_writes_of_the_row_and_commits_them(
    harness: Make, profile: str, column: str, level: int
) -> None:
    endpoint = odd(harness, profile, column, ROW)
    endpoint.batch(BATCH, BATCH, level)
    received = endpoint.say(b"set cc 0 0 1\r\n3\r\nget cc\r\nincr cc 1\r\n")
    assert received == b"STORED\r\nVALUE cc 0 1\r\n3\r\nEND\r\n4\r\n"
    assert endpoint.say(b"get @@odd.cc\r\n", "b") == (
        b"VALUE @@odd.cc 0 1\r\n4\r\nEND\r\n" if level == 0 else b"VALUE @@odd.cc 0 2\r\n19\r\nEND\r\n"
    )
    assert endpoint.say(b"bind aaa\r\n") == b"SUCCEED\r\n"  # which commits
    assert endpoint.rows("SELECT CAST(v AS TEXT) FROM odd") == [("4",)]
    assert (
        endpoint.say(b"bind odd\r\ndelete cc\r\nget cc\r\nbind aaa\r\n") == b"SUCCEED\r\nDELETED\r\nEND\r\nSUCCEED\r\n"
    )
    assert endpoint.rows("SELECT * FROM odd") == []


@pytest.mark.parametrize("column", COLUMNS)
def test_pages_of_such_keys_follow_each_other(harness: Make, column: str) -> None:
    keys = [b"a%d " % number for number in range(10, 15)]
    rows = ", ".join(f"(x'{key.hex()}', 'v', 0, 0, 0)" for key in keys)
    endpoint = odd(harness, "kvref", column, f"INSERT INTO odd VALUES {rows}")
    mapping = endpoint.shared.directory.known["odd"]
    assert mapping is not None
    for page in (
        lambda after: ListRows(mapping, after, 2),
        lambda after: Scan(mapping, after, low_inclusive=False, high=None, high_inclusive=False, limit=2),
    ):
        found: list[Row | ListedRow] = []
        while rows := endpoint.store.execute(page(found[-1].key if found else None)):
            found += rows
            assert len(found) <= len(keys)
        assert [to_bytes(row.key)[: len(keys[0])] for row in found] == keys
