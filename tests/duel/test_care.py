"""Every rule of care has a name in the code, evidence, and keeps out what it says."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from kvref_conformance.corpus.templates import request
from kvref_conformance.differential import exclusions

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
