"""`lru_crawler metadump`: which keys are listed, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from helpers.harness import Harness

from kvref.engine.dispatch import execute
from kvref.engine.session import Session
from kvref.engine.steps import crawler
from kvref.protocol import commands as c
from kvref.protocol.replies import Keys

Make = Callable[..., Harness]
DUMP = c.KeyDump(c.Crawled.ALL)
ROWS = ("DELETE FROM demo_test", "INSERT INTO demo_test VALUES ('a', '12345', 0, 7, 0), ('over', 'x', 0, 0, 1)")


def pages(harness: Harness, command: c.KeyDump = DUMP) -> list[list[bytes]]:
    """Return the keys of each part of a listing, through one connection."""
    session, found = Session(harness.shared), []
    rest: c.KeyDump | None = command
    while rest is not None:
        reply = run(harness, session, rest)
        assert isinstance(reply, Keys)
        found.append([key.key for key in reply.keys])
        rest = reply.more
    return found


def run(harness: Harness, session: Session, command: c.Command) -> object:
    steps = execute(session, command, harness.now)
    try:
        operation = next(steps)
        while True:
            operation = steps.send(harness.store.execute(operation))
    except StopIteration as stop:
        return stop.value


def test_a_row_is_listed_with_what_its_table_has(harness: Make) -> None:
    endpoint = harness("kvref", *ROWS, "INSERT INTO demo_test VALUES ('b', NULL, 0, NULL, 2000000000)")
    session = Session(endpoint.shared)
    reply = run(endpoint, session, DUMP)
    assert isinstance(reply, Keys)
    assert [(key.key, key.expiry, key.cas, key.size, key.accessed) for key in reply.keys] == [
        (b"a", 0, 7, 6, endpoint.now),
        (b"b", 2000000000, 0, 1, endpoint.now),
    ]


def test_pages_follow_each_other_by_key(harness: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawler, "PAGE", 3)
    rows = ", ".join(f"('k{number}', 'v', 0, 0, 0)" for number in range(7))
    endpoint = harness("kvref", "DELETE FROM demo_test", f"INSERT INTO demo_test VALUES {rows}")
    assert pages(endpoint) == [[b"k0", b"k1", b"k2"], [b"k3", b"k4", b"k5"], [b"k6"], []]


def test_a_page_of_large_values_is_shorter(harness: Make) -> None:
    rows = ", ".join(f"('k{number}', zeroblob(400000), 0, 0, 0)" for number in range(5))
    endpoint = harness("kvref", "DELETE FROM demo_test", f"INSERT INTO demo_test VALUES {rows}")
    assert pages(endpoint) == [[b"k0", b"k1", b"k2"], [b"k3", b"k4"], []]


def test_keys_that_no_client_can_send_are_left_out_and_end_nothing(
    harness: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawler, "PAGE", 1)
    rows = "('', 'v', 0, 0, 0), ('a b', 'v', 0, 0, 0), ('c', 'v', 0, 0, 0)"
    endpoint = harness("kvref", "DELETE FROM demo_test", f"INSERT INTO demo_test VALUES {rows}")
    assert pages(endpoint) == [[], [], [b"c"], []]


def test_rows_without_a_key_are_left_out(harness: Make) -> None:
    columns = "c1 VARCHAR(32), c2 TEXT, c3 INT, c4 BIGINT, c5 INT"
    table = ("DROP TABLE demo_test", f"CREATE TABLE demo_test ({columns})")
    rows = "INSERT INTO demo_test VALUES (NULL, 'v', 0, 0, 0), ('a', 'v', 0, 0, 0), (NULL, 'v', 0, 0, 0)"
    index = ("CREATE UNIQUE INDEX c1 ON demo_test (c1)", "UPDATE containers SET unique_idx_name_on_key = 'c1'")
    assert pages(harness("kvref", *table, rows, *index)) == [[b"a"], []]


def test_integer_keys(harness: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawler, "PAGE", 2)
    table = (
        "DROP TABLE demo_test",
        "CREATE TABLE demo_test (c1 INTEGER PRIMARY KEY, c2 TEXT, c3 INT, c4 BIGINT, c5 INT)",
    )
    rows = "INSERT INTO demo_test VALUES (-3, 'v', 0, 0, 0), (10, 'v', 0, 0, 0), (9, 'v', 0, 0, 0)"
    assert pages(harness("kvref", *table, rows)) == [[b"-3", b"9"], [b"10"], []]


def test_the_mapping_in_force_is_listed(harness: Make) -> None:
    other = "CREATE TABLE others (k VARCHAR(32) PRIMARY KEY, v VARCHAR(100), f INT, c BIGINT, e INT)"
    row = "INSERT INTO containers VALUES ('other', 'test', 'others', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')"
    endpoint = harness("kvref", *ROWS, other, row, "INSERT INTO others VALUES ('x', 'y', 0, 0, 0)")
    dumped = endpoint.say(b"bind other\r\nlru_crawler metadump all\r\n")
    assert re.findall(rb"key=(\S+)", dumped) == [b"x"]


def test_the_switch_is_for_all_connections(harness: Make) -> None:
    endpoint = harness("kvref", *ROWS)  # [crawler-003]
    runs, disabled = b"ERROR failed to start lru crawler thread\r\n", b"CLIENT_ERROR lru crawler disabled\r\n"
    assert endpoint.say(b"lru_crawler enable\r\nlru_crawler disable\r\nlru_crawler disable\r\n") == runs + b"OK\r\n" * 2
    requests = b"lru_crawler metadump all\r\nlru_crawler metadump x\r\nlru_crawler crawl x\r\nlru_crawler sleep 0\r\n"
    assert endpoint.say(requests, "b") == disabled * 3 + b"OK\r\n"
    assert endpoint.say(b"lru_crawler enable\r\nlru_crawler metadump 1\r\nlru_crawler metadump ,\r\n", "b") == (
        b"OK\r\nEND\r\nNOTSTARTED no items to crawl\r\n"
    )


@pytest.mark.parametrize(("policy", "keys"), [("cache_only", [b"a", b"b"]), ("caching", [b"sql"]), ("disabled", [])])
def test_the_policy_of_get_decides_where_keys_are(
    harness: Make, monkeypatch: pytest.MonkeyPatch, policy: str, keys: list[bytes]
) -> None:
    monkeypatch.setattr(crawler, "PAGE", 1)
    policies = f"UPDATE cache_policies SET get_policy = '{policy}', set_policy = 'cache_only'"
    rows = ("DELETE FROM demo_test", "INSERT INTO demo_test VALUES ('sql', 'x', 0, 0, 0)")
    endpoint = harness("kvref", *rows, policies)
    endpoint.say(b"set a 0 0 1\r\nx\r\nset b 0 100 1\r\nx\r\nset c 0 -1 1\r\nx\r\n")
    assert [key for page in pages(endpoint) for key in page] == keys
