"""Which keys identify one row in MySQL and MariaDB, decided locally."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvref.collations.charsets import CHARSETS, OTHER_CHARSETS
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Row
from kvref.storage.config.containers import Container
from kvref.storage.mysql.mapped_table import MappedTable, RowIdentities, StoredKey, Version
from kvref.storage.mysql.statements import Statements


def mapping(collation: str, charset: str = "utf8mb4") -> Mapping:
    known = CHARSETS.get(charset) or OTHER_CHARSETS[charset]
    key = Column("k", Kind.TEXT, 30, charset=known, collation=collation)
    value = Column("v", Kind.TEXT, 100)
    return Mapping("m", "test", "t", "`test`.`t`", key, (value,), None, None, None)


def rows(*keys: bytes | int) -> list[tuple[StoredKey | None, Row]]:
    return [(key, Row(key, (b"",), None, None, None)) for key in keys]


@pytest.mark.parametrize("collation", ["utf8mb4_0900_ai_ci", "utf8mb4_general_ci", "utf8mb4_uca1400_ai_ci"])
def test_spellings_of_one_row(collation: str) -> None:
    identities = RowIdentities(mapping(collation))
    assert identities.known
    found, complete = identities.match([b"A", b"a", b"b", b"c"], rows(b"a", b"B"))
    assert complete
    assert {spelling: each.key for spelling, each in found.items()} == {b"A": b"a", b"a": b"a", b"b": b"B"}


def test_bytes_count_in_a_binary_collation() -> None:
    found, complete = RowIdentities(mapping("utf8mb4_0900_bin")).match([b"A", b"a"], rows(b"a"))
    assert (list(found), complete) == ([b"a"], True)


def test_blanks_behind_count_as_the_collation_says() -> None:
    pads, no_pad = RowIdentities(mapping("utf8mb4_general_ci")), RowIdentities(mapping("utf8mb4_0900_ai_ci"))
    assert pads.identity(b"a ") == pads.identity(b"A")
    assert no_pad.identity(b"a ") != no_pad.identity(b"A")


def test_a_row_that_was_not_expected_makes_misses_uncertain() -> None:
    """The server takes a row for one of the keys, kvref for none: who is meant is not known."""
    found, complete = RowIdentities(mapping("utf8mb4_0900_bin")).match([b"x", b"y"], rows(b"x", b"Y"))
    assert (list(found), complete) == ([b"x"], False)
    found, complete = RowIdentities(mapping("utf8mb4_0900_ai_ci")).match([b"x", b"y"], rows(b"x", b"\xff"))
    assert (list(found), complete) == ([b"x"], False)


@pytest.mark.parametrize(
    ("collation", "charset"),
    [("utf8mb4_ja_0900_as_cs", "utf8mb4"), ("utf8mb4_zh_0900_as_cs", "utf8mb4"), ("cp1250_general_ci", "cp1250")],
)
def test_collations_that_only_the_server_knows(collation: str, charset: str) -> None:
    assert not RowIdentities(mapping(collation, charset)).known


def test_keys_that_only_the_server_can_compare() -> None:
    identities = RowIdentities(mapping("utf8mb4_uca1400_ai_ci"))
    assert identities.stored_key("é") is None
    assert identities.stored_key("e") == b"e"
    with pytest.raises(UnicodeDecodeError):
        RowIdentities(mapping("utf8mb4_general_ci")).identity(b"\xff")


def test_keys_of_which_not_all_is_indexed() -> None:
    for odd in ({"beginning": 3}, {"unsearchable": True}):
        assert not RowIdentities(replace(mapping("utf8mb4_bin"), **odd)).known  # type: ignore[arg-type]


def test_numbers() -> None:
    numbers = mapping("")
    numbers.key = Column("k", Kind.INTEGER, low=0, high=255)
    identities = RowIdentities(numbers)
    assert identities.known
    assert (identities.stored_key(7), identities.identity(7)) == (7, 7)
    found, complete = identities.match([7, 8], rows(7))
    assert (list(found), complete) == ([7], True)


def test_keys_of_bytes_are_compared_without_the_server() -> None:
    key = Column("k", Kind.BYTES, 250, counts_bytes=True, cuts=True, indexable=True)
    value = Column("v", Kind.BYTES, 100)
    identities = RowIdentities(Mapping("m", "test", "t", "`test`.`t`", key, (value,), None, None, None))
    assert identities.known
    found, complete = identities.match([b"A", b"a", b"\xff"], rows(b"a", b"\xff"))
    assert (set(found), complete) == ({b"a", b"\xff"}, True)
    assert identities.stored_key(5) is None


@pytest.mark.parametrize(
    ("low", "high", "keys", "others"),
    [
        (-128, 127, [b"1", b"99"], [b"0", b"01", b"-1", b"100", b"127", b"1 ", b"1.5", b"x", b"\xb2"]),
        (0, (1 << 64) - 1, [b"9" * 19], [b"9" * 20]),
        (1901, 2155, [], [b"70", b"1970"]),  # a YEAR takes 70 for 1970
    ],
)
def test_a_word_is_an_integer_key_if_sql_shows_the_same_digits(
    low: int, high: int, keys: list[bytes], others: list[bytes]
) -> None:
    table = mapping("utf8mb4_bin")
    container = Container("m", "test", "t", "k", "v", "0", "0", "0", "PRIMARY")
    table = replace(table, key=Column("k", Kind.INTEGER, low=low, high=high), row=container)
    found = MappedTable(table, Statements(table), Version())
    assert [found.key_of(word) for word in keys] == [*map(int, keys)]
    assert not keys or found.takes_words(keys)
    for word in others:
        assert found.key_of(word) is None
        assert not found.takes_words([*keys, word])
