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


def test_items_are_not_shown_if_the_store_does_not_answer(harness: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = harness("kvref")

    def fails(_self: object, _mapping: object) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("kvref.storage.sqlite.store.estimate", fails)
    assert (shown(endpoint, "curr_items"), shown(endpoint, "total_items")) == ("not there", "0")
