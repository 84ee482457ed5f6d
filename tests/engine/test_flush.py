"""flush_all and delete with foreign keys; IDs in brackets name recordings of the plugin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
PARENT = (
    "CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))",
    "INSERT INTO t VALUES ('a', '1'), ('b', '5'), ('c', '7')",
    "CREATE TABLE child (id INT PRIMARY KEY, p VARCHAR(9) REFERENCES t (k))",
    "INSERT INTO child VALUES (1, 'b')",
    "INSERT INTO containers VALUES ('default', 'test', 't', 'k', 'v', '0', '0', '0', 'PRIMARY')",
)


@pytest.mark.parametrize(
    ("profile", "answer", "kept", "without_child"),
    [
        ("mysql-8.0", b"OK\r\n", "b", b"OK\r\n"),
        ("mysql-5.6", b"SERVER_ERROR failed to flush cache\r\n", "abc", b"SERVER_ERROR failed to flush cache\r\n"),
        ("kvref", b"SERVER_ERROR FOREIGN KEY constraint failed\r\n", "abc", b"OK\r\n"),
    ],
)
def test_flush_all_of_a_parent(harness: Make, profile: str, answer: bytes, kept: str, without_child: bytes) -> None:
    endpoint = harness(profile, *PARENT)
    assert endpoint.say(b"flush_all\r\n") == answer  # [parent-001]
    assert "".join(str(key) for (key,) in endpoint.rows("SELECT k FROM t ORDER BY k")) == kept
    endpoint.sql.execute("DELETE FROM child")
    assert endpoint.say(b"flush_all\r\n") == without_child
    assert bool(endpoint.rows("SELECT k FROM t")) is (without_child != b"OK\r\n")


def test_delete_of_a_parent_row(harness: Make) -> None:
    endpoint = harness("kvref", *PARENT)
    refused = b"SERVER_ERROR FOREIGN KEY constraint failed\r\n"
    assert endpoint.say(b"delete b\r\ndelete a\r\n") == refused + b"DELETED\r\n"
    assert endpoint.say(b"set b 0 0 1\r\n9\r\nincr b 1\r\n") == b"STORED\r\n10\r\n"


def test_checks_act_in_the_default_profile(harness: Make) -> None:
    sql = (
        "CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9) CHECK (v <> 'bad'))",
        "INSERT INTO containers VALUES ('default', 'test', 't', 'k', 'v', '0', '0', '0', 'PRIMARY')",
    )
    assert harness("kvref", *sql).say(b"set k 0 0 3\r\nbad\r\n").startswith(b"SERVER_ERROR CHECK constraint failed")
