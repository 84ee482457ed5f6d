"""What a run exercised: shapes of keys and states of connections."""

from __future__ import annotations

from typing import Any

import pytest

from kvref import profiles
from kvref.protocol.command_table import TEXT, TEXT_BEYOND_PLUGIN
from kvref_conformance.coverage import Exercised
from kvref_conformance.wire.verbs import BINARY, OTHER, VERBS

W, R = "daemon_memcached_w_batch_size", "daemon_memcached_r_batch_size"
NAMES = {"m1": "one", "m2": "two", "t1": "table"}
LONG = "k" * 251


def collector(profile: str = "kvref", **begin: Any) -> Exercised:
    exercised = Exercised(profiles.load(profile))
    exercised.begin(NAMES, **begin)
    return exercised


def test_the_verbs_of_the_server_are_those_of_the_coverage() -> None:
    server = {verb.decode() for verb in (*TEXT, *TEXT_BEYOND_PLUGIN)}
    administration = {"cache_memlimit", "lru_crawler", "refresh_certs", "shutdown"}
    assert server - VERBS.keys() == administration, "only these count as `other`"
    assert {name for name in VERBS if not name.startswith(BINARY)} - server == {OTHER}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("get a", "key"),
        ("get @@one", "@@name"),
        ("get @@one.a", "@@name.key"),
        ("get @@one.", "@@name."),
        ("get @@three.a", "@@unknown"),
        ("get @@one.a b", "@@name.key, key, several"),
        ("get @>=a@<b", "range"),
        ("get @@one.@<b", "@@name.key, range"),
        ("get", "empty"),
        (f"delete {LONG}", "over 250"),
        (f"get @@one.{LONG}", "@@name.key, over 250"),
        ("get \x01\xff", "control, non-ASCII"),
        ("mg Zm9v b v", "base64"),
        ("mg b", "key"),
        ("ms Zm9v 1 b\r\nx", "base64"),
        ("bind two", "@@name"),
        ("bind three", "@@unknown"),
        (f"bind {LONG}", "over 250"),
        ("stats items", "no key"),
    ],
)
def test_a_request_has_shapes(line: str, wanted: str) -> None:
    exercised = collector()
    exercised.record("a", f"{line}\r\n".encode("latin-1"))
    assert {shape for _, shape in exercised.cells} == set(wanted.split(", "))


def states(exercised: Exercised, verb: str) -> list[tuple[str, str]]:
    return [(mapping, batch) for (name, mapping, batch) in exercised.states if name == verb]


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ([], ("default", "no batch")),
        ([("bind one", "SUCCEED")], ("bound", "no batch")),
        ([("bind three", "NOT_FOUND")], ("after failed bind", "no batch")),
        ([("bind three", "NOT_FOUND"), ("get @@two.a", "END")], ("switched", "read batch")),
        ([("get @@three.a", "END")], ("default", "read batch")),
        ([("get @@three", "VALUE @@three 0 1\r\nx\r\nEND"), ("bind three", "SUCCEED")], ("bound", "no batch")),
        ([("bind one", "NOT_FOUND")], ("after failed bind", "no batch")),
        ([("set a 0 0 1\r\nx", "STORED")], ("default", "write batch")),
        ([("set a 0 0 1\r\nx", "NOT_STORED")], ("default", "no batch")),
        ([("get a", "END"), ("delete a", "DELETED")], ("default", "both")),
        ([("get @@one", "VALUE @@one 0 1\r\nx\r\nEND")], ("switched", "no batch")),
        ([("set a 0 0 1\r\nx", "STORED"), ("bind two", "SUCCEED")], ("bound", "no batch")),
        ([("set @@one.a 0 0 1\r\nx", "STORED"), ("set @@one.b 0 0 1\r\nx", "STORED")], ("switched", "write batch")),
        ([("set a 0 0 1\r\nx", "STORED")] * 3, ("default", "no batch")),
        ([("get a", "END")] * 2, ("default", "no batch")),
        ([("get a", "END"), ("flush_all", "OK")], ("default", "no batch")),
    ],
)
def test_the_state_follows_from_what_was_sent(before: list[tuple[str, str]], wanted: tuple[str, str]) -> None:
    exercised = collector(settings={W: 3, R: 2})
    for line, got in before:
        exercised.record("a", f"{line}\r\n".encode(), f"{got}\r\n")
    exercised.record("a", b"incr a 1\r\n")
    assert states(exercised, "incr") == [wanted]
