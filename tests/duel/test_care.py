"""Every rule of care has a name in the code, evidence, and keeps out what it says."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

import pytest

from kvref_conformance.corpus.templates import bytes_of, request
from kvref_conformance.differential import exclusions
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.differential.generate import script_of, world_of
from kvref_conformance.steps import Disconnect, Send

ROWS = tomllib.loads(files("kvref_conformance.differential").joinpath("exclusions.toml").read_text())["rules"]


def test_rules_and_names_are_the_same() -> None:
    names = {value for name, value in vars(exclusions).items() if name.isupper() and isinstance(value, str)} - {
        exclusions.INNODB,
        exclusions.VITESS,
    }
    assert {row["name"] for row in ROWS} == names
    for row in ROWS:
        assert row.keys() == {"name", "profiles", "rule", "reason", "evidence"}
        assert all(row.values())


def test_rules_are_in_force_where_their_endpoint_takes_part() -> None:
    assert exclusions.LONG_SWITCH_WORD in exclusions.rules_for(["mysql-5.6"])
    assert exclusions.LONG_SWITCH_WORD not in exclusions.rules_for(["mysql-8.0"])
    assert exclusions.rules_for(["kvref"]) == {exclusions.COUNTERS}
    assert exclusions.rules_for(["mysql-8.0", "mysql-5.6"]) == exclusions.rules_for(
        ["mysql-8.0"]
    ) | exclusions.rules_for(["mysql-5.6"])


@pytest.mark.parametrize(
    ("rule", "data", "safe"),
    [
        (exclusions.LONG_SWITCH_WORD, b"get @@" + b"x" * 248 + b"\r\n", False),
        (exclusions.LONG_SWITCH_WORD, b"get @@" + b"x" * 247 + b"\r\n", True),
        (exclusions.LONG_SWITCH_WORD, b"get " + b"x" * 250 + b"\r\n", True),
        (exclusions.WORDS_AFTER_RANGE, b"get @>z a\r\n", False),
        (exclusions.WORDS_AFTER_RANGE, b"get a @>z\r\n", True),
        (exclusions.WORDS_AFTER_RANGE, b"set k 0 0 12\r\nget @>z a\r\nx\r\n", False),
        (exclusions.WORDS_AFTER_RANGE, b"get @>z\0 a\r\n", True),
        (exclusions.LONG_WORD_AFTER, b"get a " + b"x" * 251 + b"\r\n", False),
        (exclusions.LONG_WORD_AFTER, b"get " + b"x" * 251 + b" a\r\n", True),
        (exclusions.DELIMITERS_AFTER, b"get a @@..\r\n", False),
        (exclusions.DELIMITERS_AFTER, b"get a b @@...\r\n", False),
        (exclusions.DELIMITERS_AFTER, b"get a @@.\r\n", True),
        (exclusions.DELIMITERS_AFTER, b"get a @@..k\r\n", True),
        (exclusions.DELIMITERS_AFTER, b"get @@..\r\n", True),
        (exclusions.FLUSH_NUMBER, b"flush_all 0\r\n", False),
        (exclusions.FLUSH_NUMBER, b"get a\r\nflush_all 0\r\n", False),
        (exclusions.FLUSH_NUMBER, b"verbosity 1\r\nflush_all 0\r\n", True),
        (exclusions.FLUSH_NUMBER, b"flush_all\r\n", True),
        (exclusions.ADDRESS_OF_NEXT_WORD, b"get a6789012345 @@m.k\r\n", False),
        (exclusions.ADDRESS_OF_NEXT_WORD, b"get a678901234 @@m.k\r\n", True),
        (exclusions.ADDRESS_OF_NEXT_WORD, b"get a6789012345 other\r\n", True),
        (exclusions.ADDRESS_OF_NEXT_WORD, b"get a6789012345 other @@m.k\r\n", False),
        (exclusions.ADDRESS_OF_NEXT_WORD, b"foo\r\nget a67890 @@m.k\r\n", False),
        (exclusions.ADDRESS_OF_NEXT_WORD, b"get @@m.8901234 k\r\n", True),
        (exclusions.WELL_FORMED, b"set k\xff 0 0 1\r\nv\r\n", False),
        (exclusions.WELL_FORMED, b"set k 0 0 4\r\n\xf0\x9f\x98\x80\r\n", False),
        (exclusions.WELL_FORMED, b"set k\xc3\xa9 0 0 3\r\n\xe6\xbc\xa2\r\n", True),
        (exclusions.WELL_FORMED, b"get k\xff\r\n", True),
    ],
)
def test_a_rule_keeps_out_what_it_says(rule: str, data: bytes, safe: bool) -> None:
    step = request("a", data.decode("latin-1"))
    assert exclusions.are_safe([step], frozenset({rule})) is safe
    assert exclusions.are_safe([step], frozenset())


def test_flush_all_waits_for_the_other_connections() -> None:
    rule = frozenset({exclusions.FLUSH_DURING_READS})
    read, flush, close = (
        request("b", "get a\r\n"),
        request("a", "flush_all\r\n"),
        Disconnect("b", "close"),
    )
    assert not exclusions.are_safe([read, flush], rule)
    assert exclusions.are_safe([read, close, flush], rule)


@pytest.mark.long
def test_nothing_is_counted_where_a_table_is_open_ended() -> None:
    configuration = Configuration("8.0.33", frozenset({exclusions.OPEN_END}))
    counted = {True: 0, False: 0}
    for number in range(0, 1600, 100):
        world = world_of(1, number, configuration)
        closed = all(each.table.is_closed for each in world.usable if each.table)
        for place in range(number, number + 8):
            reply = [
                bytes_of(step) for step in script_of(1, place, 30, configuration, world).steps if isinstance(step, Send)
            ]
            counted[closed] += sum(len(re.findall(r"(?:incr|decr) \S+ \S", str(text))) for text in reply)
    assert counted[True] > 20
    assert counted[False] == 0
