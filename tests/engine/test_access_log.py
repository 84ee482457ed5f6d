"""The flags h and l of `mg`, and `me`: which command accesses an item (memcached 1.6.18, items.c and its answers)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

from kvref.collations.charsets import UTF8MB4
from kvref.engine.access_log import LOGGED, Change, identity_of
from kvref.engine.mapping import Column, Kind

Make = Callable[..., Harness]
NOW = 1_700_000_000
POLICY = "UPDATE cache_policies SET get_policy = '{0}', set_policy = '{0}', delete_policy = '{0}'"
SEEN = "mg k u l h"  # which is not an access
# What is sent two seconds after the item was set: what SEEN shows then, without and with a get before it.
ACCESSES = {
    "get k": ("l2 h1", "l0 h1"),
    "gets k": ("l2 h1", "l0 h1"),
    "get x k": ("l2 h1", "l0 h1"),
    "get @>=k": ("l2 h1", "l0 h1"),
    "gat 100 k": ("l2 h1", "l0 h1"),
    "touch k 100": ("l2 h1", "l0 h1"),
    "mg k": ("l2 h1", "l0 h1"),
    "mg k v q": ("l2 h1", "l0 h1"),
    "mg k T100 t": ("l2 h1", "l0 h1"),
    "mg k N30 R200": ("l2 h1", "l0 h1"),
    "mg k u T100": ("l2 h0", "l2 h1"),
    "me k": ("l2 h0", "l2 h1"),
    "md k I": ("l2 h0", "l2 h1"),
    "md k I T30": ("l2 h0", "l2 h1"),
    "incr k 1": ("l0 h0", "l0 h1"),
    "decr k 9": ("l0 h0", "l0 h1"),
    "ma k T30 t": ("l0 h0", "l0 h1"),
    "incr k 90": ("l0 h0", "l0 h0"),
    "add k 0 0 1\ny": ("l0 h0", "l0 h1"),
    "ms k 1 ME\ny": ("l0 h0", "l0 h1"),
    "set k 0 0 1\ny": ("l0 h0", "l0 h0"),
    "replace k 0 0 1\ny": ("l0 h0", "l0 h0"),
    "append k 0 0 1\ny": ("l0 h0", "l0 h0"),
    "ms k 1 C1 I\ny": ("l0 h0", "l0 h0"),
    "cas k 0 0 1 1\ny": ("l2 h0", "l2 h1"),
    "incr k x": ("l2 h0", "l2 h1"),
    "get other": ("l2 h0", "l2 h1"),
}


def says(endpoint: Harness, text: str) -> str:
    return endpoint.say(text.replace("\n", "\r\n").encode() + b"\r\n").decode().replace("\r\n", " ").strip()


@pytest.mark.parametrize("policy", ["innodb_only", "cache_only", "caching"])
def test_which_commands_access_an_item(harness: Make, policy: str) -> None:
    endpoint = harness("kvref", POLICY.format(policy))
    tried = {each: after for each, after in ACCESSES.items() if "@" not in each or policy == "innodb_only"}
    seen = {command: (_after(endpoint, command), _after(endpoint, command, "get k")) for command in tried}
    assert seen == tried


def _after(endpoint: Harness, command: str, *before: str) -> str:
    for each in ("set k 0 0 2\n10", *before):
        says(endpoint, each)
    endpoint.now += 2
    says(endpoint, command)
    return says(endpoint, SEEN).removeprefix("HD ").split(" X")[0]


def test_an_item_of_which_no_access_is_known_was_not_accessed_since_the_start(harness: Make) -> None:
    endpoint = harness()
    endpoint.now += 7
    assert says(endpoint, "me AA").startswith("ME AA exp=-1 la=7 cas=0 fetch=no")
    assert says(endpoint, "mg AA h l\nmg AA h l\nmg AA h l") == "HD h0 l7 HD h1 l7 HD h1 l0"


def test_sql_that_writes_the_row_ends_the_hit(harness: Make) -> None:
    endpoint = harness()
    assert says(endpoint, "get AA\nmg AA h").endswith("HD h1")
    endpoint.sql.execute("UPDATE demo_test SET c2 = 'other' WHERE c1 = 'AA'")
    assert says(endpoint, "mg AA h\nmg AA h") == "HD h0 HD h1"


def test_a_row_has_one_state_under_every_spelling_of_its_key(harness: Make) -> None:
    endpoint = harness()  # whose key compares without case
    endpoint.now += 5
    assert says(endpoint, "set aa 0 0 1\nx\nget Aa\nmg AA l h") == "STORED VALUE Aa 0 1 x END HD l0 h1"
    number, no_case = Column("k", Kind.INTEGER), Column("k", Kind.TEXT, collation="nocase")
    near = Column("k", Kind.TEXT, charset=UTF8MB4, collation="utf8mb4_uca1400_ai_ci")
    exact = Column("k", Kind.BYTES)
    same = [(number, b"07", b"7"), (no_case, b"Aa", b"aA"), (near, "\u00c4".encode(), b"a")]
    assert all(identity_of(column)(one) == identity_of(column)(other) for column, one, other in same)
    assert identity_of(exact)(b"Aa") != identity_of(exact)(b"aA")
    assert identity_of(near)(b"\xff") == b"\xff"


def test_accesses_are_bounded_until_a_client_asks_and_kept_from_then_on(harness: Make) -> None:
    endpoint = harness()
    mapping = endpoint.shared.directory.default
    marks = endpoint.shared.marks
    says(endpoint, "set k 0 0 1\nx\nget k")
    for number in range(LOGGED):
        marks.fetched(mapping, b"%d" % number, NOW)
    assert says(endpoint, SEEN) == "HD l0 h0"  # forgotten, so that it counts from the start
    says(endpoint, "get k")
    for number in range(LOGGED):
        marks.changed(mapping, b"%d" % number, NOW, Change.TOUCHED)
    assert says(endpoint, SEEN) == "HD l0 h1"
