"""What `stats` counts; seen on both versions with one command at a time, ids in brackets name recordings."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
ALL = ("kvref", "mysql-8.0", "mysql-5.6")
ROWS = (
    "DELETE FROM demo_test",
    "INSERT INTO demo_test VALUES ('a', '5', 0, 7, 0), ('b', '5', 0, 7, 0), ('over', 'x', 0, 0, 1)",
)
GET = (("cmd_get", 1), ("get_hits", 1))
MISS = (("cmd_get", 1), ("get_misses", 1))
COUNTED = [
    ("get a", GET), ("get zz", MISS), ("get over", MISS), ("get a zz over", (("cmd_get", 3), ("get_hits", 1), ("get_misses", 2))),
    ("get @@aaa", GET), ("get @@nope.a", MISS), ("set n 0 0 1\r\n1", (("cmd_set", 1),)), ("add a 0 0 1\r\n1", (("cmd_set", 1),)),
    ("replace zz 0 0 1\r\n1", (("cmd_set", 1),)), ("append zz 0 0 1\r\n1", (("cmd_set", 1),)), ("set @@nope.k 0 0 1\r\n1", (("cmd_set", 1),)),
    ("set n 0 0 1 noreply\r\n1", (("cmd_set", 1),)), ("set n 0 0 x", ()), ("cas a 0 0 1 7\r\n1", (("cas_hits", 1),)),
    ("cas a 0 0 1 8\r\n1", (("cas_badval", 1),)), ("cas zz 0 0 1 7\r\n1", (("cas_misses", 1),)),
    ("incr a 1", (("incr_hits", 1),)), ("decr a 1", (("decr_hits", 1),)), ("incr a x", ()), ("delete a", (("delete_hits", 1),)),
    ("delete zz", (("delete_misses", 1),)), ("delete a 5", ()), ("flush_all", (("cmd_flush", 1),)), ("bind aaa", ()), ("foo", ()),
]  # fmt: skip


def counters(harness: Harness) -> dict[str, int]:
    rows = re.findall(
        r"STAT (cmd_\w+|\w+_hits|\w+_misses|cas_badval) (\d+)\r\n", harness.say(b"stats\r\n", "z").decode()
    )
    return {name: int(number) for name, number in rows}


@pytest.mark.parametrize(("command", "counted"), COUNTED)
@pytest.mark.parametrize("profile", ALL)
def test_each_command_counts_once(
    harness: Make, profile: str, command: str, counted: tuple[tuple[str, int], ...]
) -> None:
    endpoint = harness(profile, *ROWS)
    before = counters(endpoint)
    endpoint.say(command.encode() + b"\r\n")
    after = counters(endpoint)
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == dict(counted)


def test_the_rows_of_a_range_count_one_by_one_and_its_end_as_a_miss(harness: Make) -> None:
    endpoint = harness("mysql-8.0", *ROWS)
    endpoint.say(b"get @<c\r\n")
    assert {name: counters(endpoint)[name] for name in ("cmd_get", "get_hits", "get_misses")} == {
        "cmd_get": 3, "get_hits": 2, "get_misses": 1,
    }  # fmt: skip


@pytest.mark.parametrize("profile", ALL)
def test_detail_counts_by_prefix(harness: Make, profile: str) -> None:
    endpoint = harness(profile)
    endpoint.say(b"get p:before\r\nstats detail on\r\nget p:a p:b q\r\nset p:a 0 0 1\r\n1\r\nadd p:a 0 0 1\r\n1\r\n")
    endpoint.say(b"get p:a\r\ndelete p:a\r\ndelete p:a 5\r\nincr p:a 1\r\nset q 0 0 1\r\n1\r\n")
    counted = b"PREFIX p get 3 hit 1 set 2 del 1\r\nEND\r\n"
    assert endpoint.say(b"stats detail dump\r\n") == counted  # [count-009, detail-001]
    assert endpoint.say(b"stats detail off\r\nget p:a\r\nstats detail dump x\r\n") == b"OK\r\nEND\r\n" + counted
    assert endpoint.say(b"stats reset\r\nstats detail dump\r\n") == b"RESET\r\nEND\r\n"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"stats reset x", b"RESET"),
        (b"stats items x", b"END"),
        (b"stats itemsx", b"END"),
        (b"stats item", b"ERROR"),
        (b"stats resetx", b"ERROR"),
        (b"stats cachedump 1", b"CLIENT_ERROR bad command line"),
        (b"stats cachedump 1 x", b"CLIENT_ERROR bad command line format"),
        (b"stats cachedump 200 1", b"CLIENT_ERROR Illegal slab id"),
    ],
)
@pytest.mark.parametrize("profile", ALL)
def test_what_stands_behind_a_sub_command(harness: Make, profile: str, line: bytes, answer: bytes) -> None:
    assert harness(profile).say(line + b"\r\n") == answer + b"\r\n"  # [count-011, count-012]


def test_cachedump_by_profile(harness: Make) -> None:
    full, illegal = b"SERVER_ERROR out of memory writing stats\r\n", b"CLIENT_ERROR Illegal slab id\r\n"
    ask = b"stats cachedump 4294967296 1\r\nstats cachedump 63 0\r\nstats cachedump 64 0\r\n"  # [cachedump-001]
    assert harness("kvref").say(ask) == b"END\r\n" * 2 + illegal
    assert harness("mysql-8.0").say(ask) == harness("mysql-5.6").say(ask) == full * 3


def shown(harness: Harness, name: str) -> str:
    found = re.search(rf"STAT {name} (\S+)\r\n", harness.say(b"stats\r\n", "z").decode())
    return "not there" if found is None else found[1]


@pytest.mark.parametrize(
    ("line", "answer", "count"),
    [
        (b"get over\r\n", b"END\r\n", 1),
        (b"get over over a\r\n", b"VALUE a 0 1\r\n5\r\nEND\r\n", 2),
        (b"touch over 0\r\n", b"NOT_FOUND\r\n", 1),
        (b"gat 0 over\r\n", b"END\r\n", 1),
        (b"incr over 1\r\n", b"NOT_FOUND\r\n", 1),
        (b"delete over\r\n", b"NOT_FOUND\r\n", 1),
        (b"add over 0 0 1\r\n1\r\n", b"STORED\r\n", 1),
        (b"replace over 0 0 1\r\n1\r\n", b"NOT_STORED\r\n", 1),
        (b"set over 0 0 1\r\n1\r\n", b"STORED\r\n", 0),
        (b"mg over v\r\n", b"EN\r\n", 1),
        (b"md over\r\n", b"NF\r\n", 1),
        (b"get a zz\r\n", b"VALUE a 0 1\r\n5\r\nEND\r\n", 0),
    ],
)
def test_look_ups_of_expired_rows_are_counted(harness: Make, line: bytes, answer: bytes, count: int) -> None:
    endpoint = harness("kvref", *ROWS)  # [kinds-002]
    assert endpoint.say(line) == answer
    assert shown(endpoint, "get_expired") == str(count)


def test_too_large_items_of_the_text_protocol_are_counted(harness: Make) -> None:
    endpoint = harness("kvref")  # [kinds-001]; the value column has 1024 bytes
    too_large = b"SERVER_ERROR object too large for cache\r\n"
    too_wide = b"SERVER_ERROR object too large for cache: column c2 takes 1024 characters\r\n"
    assert endpoint.say(b"set a 0 0 2000000\r\n" + b"x" * 2_000_000 + b"\r\n") == too_large
    assert endpoint.say(b"set a 0 0 1025\r\n" + b"x" * 1025 + b"\r\n") == too_wide
    assert endpoint.say(b"ms a 2000000\r\n" + b"x" * 2_000_000 + b"\r\n") == too_large
    assert endpoint.say(b"set a 0 0 1000\r\n" + b"x" * 1000 + b"\r\n") == b"STORED\r\n"
    assert endpoint.say(b"append a 0 0 100\r\n" + b"x" * 100 + b"\r\n") == too_wide
    assert shown(endpoint, "store_too_large") == "3"
    binary = bytes.fromhex("8001000108000000001e848900000000") + bytes(16) + b"a" + b"x" * 2_000_000
    assert endpoint.say(binary, "binary")[6:8] == b"\x00\x03"
    assert shown(endpoint, "store_too_large") == "3"


def test_stored_items_are_counted(harness: Make) -> None:
    endpoint = harness("kvref", *ROWS)  # [kinds-004]
    for line in (
        b"set n 0 0 1\r\n1\r\n",
        b"set n 0 0 1\r\n2\r\n",
        b"append n 0 0 1\r\n3\r\n",
        b"ms n 1\r\n1\r\n",
        b"ma v N0\r\n",
    ):
        endpoint.say(line)
    for line in (b"add n 0 0 1\r\n1\r\n", b"incr n 1\r\n", b"replace zz 0 0 1\r\n1\r\n", b"delete n\r\n"):
        endpoint.say(line)
    assert shown(endpoint, "total_items") == "5"
    assert endpoint.say(b"stats reset\r\n") == b"RESET\r\n"
    assert shown(endpoint, "total_items") == "0"


def test_items_are_the_rows_of_the_mapping_in_force(harness: Make) -> None:
    other = "INSERT INTO containers VALUES ('other', 'test', 'others', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')"
    endpoint = harness(
        "kvref",
        *ROWS,
        "CREATE TABLE others AS SELECT * FROM demo_test WHERE 0",
        'CREATE UNIQUE INDEX "others.PRIMARY" ON others (c1)',
        other,
    )
    assert shown(endpoint, "curr_items") == "3"
    assert b"STAT curr_items 3\r\n" in endpoint.say(b"stats\r\n", "b")
    endpoint.say(b"delete a\r\n")
    assert shown(endpoint, "curr_items") == "2"


def test_items_are_not_shown_if_the_store_does_not_answer(harness: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = harness("kvref")

    def fails(_self: object, _mapping: object) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("kvref.storage.sqlite.store.estimate", fails)
    assert (shown(endpoint, "curr_items"), shown(endpoint, "total_items")) == ("not there", "0")


def test_the_plugin_counts_no_items(harness: Make) -> None:
    for profile in ("mysql-8.0", "mysql-5.6"):
        endpoint = harness(profile, *ROWS)
        endpoint.say(b"set n 0 0 1\r\n1\r\n")
        names = re.findall(r"STAT (\S+) ", endpoint.say(b"stats\r\n").decode())
        assert shown(endpoint, "curr_items") == "0", profile
        assert not {"get_expired", "get_flushed", "store_too_large"} & set(names), profile
