"""Meta commands in process: marks outside the tables, batches, cache policies, and state without a column."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

from kvref.engine.cache.memory import Entry
from kvref.engine.shared_state import Mark, Marks

Make = Callable[..., Harness]
NOW = 1_700_000_000
POLICY = "UPDATE cache_policies SET get_policy = '{0}', set_policy = '{0}', delete_policy = '{0}'"
PLAIN = (
    "CREATE TABLE plain (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))",
    "INSERT INTO containers VALUES ('bbb', 'test', 'plain', 'k', 'v', '0', '0', '0', 'PRIMARY')",
)


def says(endpoint: Harness, text: str, connection: str = "a") -> str:
    return endpoint.say(text.replace("\n", "\r\n").encode() + b"\r\n", connection).decode().replace("\r\n", " ").strip()


@pytest.mark.parametrize("write", ["set k 0 0 1\ny", "append k 0 0 1\ny", "ms k 1\nx", "ma k N0", "SQL"])
def test_any_write_ends_a_mark(harness: Make, write: str) -> None:
    endpoint = harness()
    says(endpoint, "set k 0 0 1\n5")
    assert says(endpoint, "md k I\nmg k\nmg k") == "HD HD X W HD Z X"
    if write == "SQL":
        endpoint.sql.execute("UPDATE demo_test SET c2 = '6' WHERE c1 = 'k'")
    else:
        says(endpoint, write)
    assert says(endpoint, "mg k") == "HD"


def test_a_row_without_a_cas_number_is_not_marked_as_stale(harness: Make) -> None:
    endpoint = harness("kvref", *PLAIN)
    assert says(endpoint, "ms @@bbb.k 1 c\nx") == "HD c0"
    refused = "CLIENT_ERROR mapping bbb has no cas column: its rows cannot be marked as stale"
    assert says(endpoint, "md k I\nmg k v c") == f"{refused} VA 1 c0 x"
    assert says(endpoint, "mg new N0\nmg new\nms new 1\nx\nmg new\nmd k C0\nmg k") == "HD W HD Z HD HD HD EN"


def test_a_time_that_the_mapping_cannot_keep_is_refused_before_anything_is_written(harness: Make) -> None:
    endpoint = harness("kvref", *PLAIN)
    refused = "CLIENT_ERROR mapping bbb has no expiry column: the only time that it keeps is 0"
    assert (
        says(endpoint, "set @@bbb.k 0 0 1\n5\nma k T9\nma new N0 J1 T9\nmg new N0 T9")
        == f"STORED {refused} {refused} {refused}"
    )
    assert says(endpoint, "mg k v\nmg new") == "VA 1 5 EN"


def test_a_row_without_a_cas_number_is_reported_by_its_time(harness: Make) -> None:
    endpoint = harness("kvref", f"INSERT INTO demo_test (c1, c2, c5) VALUES ('k', 'x', {NOW + 9})")
    assert says(endpoint, "mg k R30\nmg k R30") == "HD W HD Z"
    endpoint.sql.execute("UPDATE demo_test SET c5 = c5 + 1")
    assert says(endpoint, "mg k R30") == "HD W"


def test_marks_are_bounded(harness: Make) -> None:
    marks, mapping = Marks(limit=2), harness().shared.directory.default
    entry = Entry(0, b"x", 1, 0, NOW)
    assert not marks.any
    keys = [b"a", b"b", b"c"]
    for key in keys:
        marks.mark(mapping, key, entry, Mark(stale=True))
    assert [marks.of(mapping, key, entry).stale for key in keys] == [False, True, True]
    assert marks.of(mapping, b"B", entry).stale  # the spelling of a key does not matter
    assert not marks.of(mapping, b"b", Entry(0, b"y", 1, 0, NOW)).stale
    restore = marks.saved(mapping, b"b")
    marks.take(mapping, b"b", entry)
    assert marks.of(mapping, b"b", entry) == Mark(stale=True, taken=True)
    restore()
    assert marks.of(mapping, b"b", entry) == Mark(stale=True)


def test_what_a_meta_command_writes_counts_in_the_batch(harness: Make) -> None:
    endpoint = harness()
    says(endpoint, "set k 0 0 1\n1")
    endpoint.batch(4, 10)
    assert says(endpoint, "mg k T9\nma k T9 v\nmd nokey\nmg k v\nms j 1 k\nx") == "HD VA 1 2 NF VA 1 2 HD kj"
    assert endpoint.rows("SELECT c2, c5 FROM demo_test WHERE c1 = 'k'") == [("1", 0)]
    assert says(endpoint, "md j I") == "HD"
    assert endpoint.rows("SELECT c2, c5 FROM demo_test WHERE c1 = 'k'") == [("2", NOW + 9)]
    assert says(endpoint, "mg j v", "b") == "VA 1 X W x"


@pytest.mark.parametrize("policy", ["cache_only", "caching"])
def test_the_memory_cache_has_them_too(harness: Make, policy: str) -> None:
    endpoint = harness("kvref", POLICY.format(policy))
    assert says(endpoint, "ms k 1 F5 T100 q\nx\nmg k f t v\nmg k T200 t") == "VA 1 f5 t100 x HD t200"
    assert says(endpoint, "md k I\nmg k v\nmg k") == "HD VA 1 X W x HD Z X"
    assert says(endpoint, "mg n N50 t v\nms n 1 T9\n5\nma n v t\nma m N0 J7 v") == "VA 0 t50 W  HD VA 1 t9 6 VA 1 7"
    assert says(endpoint, "md n C1\nms n 1 C1 MA\nx\nma n C1\nms n 1 I C1\n7\nmg n v t") == "EX EX EX HD VA 1 t9 X W 7"
    assert says(endpoint, "me n\nmd n\nmg n\nmd n").split()[-3:] == ["HD", "EN", "NF"]
    assert endpoint.rows("SELECT c1 FROM demo_test WHERE c1 = 'm'") == ([("m",)] if policy == "caching" else [])


def test_what_is_switched_off_is_answered_as_if_done(harness: Make) -> None:
    endpoint = harness("kvref", POLICY.format("disabled"))
    assert (
        says(endpoint, "mg AA\nms k 1 c\nx\nmd AA\nmd AA I\nma AA v\nmg k N1\nme AA") == "EN HD c0 HD HD VA 1 0 EN EN"
    )


def test_a_refusal_of_the_table_is_reported(harness: Make) -> None:
    trigger = "CREATE TRIGGER no BEFORE UPDATE ON demo_test BEGIN SELECT RAISE(ABORT, 'not this one'); END"
    endpoint = harness("kvref", trigger)
    assert says(endpoint, "mg AA T9\nmd AA I\nma AA\nmg AA v").count("SERVER_ERROR not this one") == 2
