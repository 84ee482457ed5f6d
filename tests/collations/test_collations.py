"""MySQL's collations in SQLite: which texts are equal, which comes first, and what a connection sees of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache, cmp_to_key
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvref import collations
from kvref.collations import COLLATIONS, charset_of, order, weights

EQUAL = [
    ("utf8mb4_0900_ai_ci", "e", "É"), ("utf8mb4_0900_ai_ci", "ss", "ß"), ("utf8mb4_0900_ai_ci", "가", "가"),
    ("utf8mb4_0900_as_ci", "é", "É"), ("utf8mb4_unicode_ci", "ss", "ß"), ("utf8mb4_unicode_ci", "a ", "a"),
    ("utf8mb4_unicode_520_ci", "Ł", "l"), ("utf8mb4_unicode_ci", "😀", "🎉"), ("utf8mb4_general_ci", "😀", "🎉"),
    ("utf8mb4_general_ci", "s", "ß"), ("utf8mb4_bin", "a", "a  "), ("utf8_general_ci", "É", "e"),
    ("utf8mb3_unicode_ci", "É", "e"), ("ucs2_general_ci", "É", "e"), ("latin1_swedish_ci", "É", "e"),
    ("latin1_swedish_ci", "ü", "Y"), ("latin1_german1_ci", "ä", "A"), ("latin1_german2_ci", "ä", "AE"),
    ("latin1_bin", "a", "a "), ("ascii_general_ci", "a", "A "), ("utf8mb4_da_0900_ai_ci", "aa", "å"),
    ("utf8mb4_danish_ci", "Aa", "å"), ("utf8mb4_german2_ci", "ä", "ae"), ("utf8mb4_es_0900_ai_ci", "o", "Ó"),
    ("utf8mb4_turkish_ci", "I", "\u0131"),
]  # fmt: skip
DIFFERENT = [
    ("utf8mb4_0900_ai_ci", "a", "a "), ("utf8mb4_0900_ai_ci", "😀", "🎉"), ("utf8mb4_0900_as_ci", "e", "é"),
    ("utf8mb4_0900_as_cs", "a", "A"), ("utf8mb4_0900_bin", "a", "a "), ("utf8mb4_unicode_ci", "Ł", "l"),
    ("utf8mb4_general_ci", "ss", "ß"), ("utf8mb4_bin", "a", "A"), ("utf8mb4_sv_0900_ai_ci", "a", "å"),
    ("utf8mb4_swedish_ci", "o", "ö"), ("latin1_swedish_ci", "o", "ö"), ("latin1_general_cs", "a", "A"),
    ("utf8_general_mysql500_ci", "s", "ß"), ("utf8mb4_turkish_ci", "I", "i"), ("utf8_tolower_ci", "e", "é"),
]  # fmt: skip
ASCENDING = [
    ("utf8mb4_0900_ai_ci", ["_", "-", "1", "Á", "b", "z", "ж", "日"]),
    ("utf8mb4_0900_as_cs", ["a", "A", "á", "Á", "b"]),
    ("utf8mb4_general_ci", ["a\t", "a", "b", "[", "_", "~"]),
    ("utf8mb4_bin", ["A", "a\t", "a", "a!", "é", "😀"]),
    ("latin1_bin", ["a", "€", "é"]),  # by byte: the euro sign is 0x80
    ("latin1_swedish_ci", ["a", "b", "z", "å", "ä", "ö"]),
    ("utf8mb4_swedish_ci", ["a", "z", "å", "ä", "ö"]),
    ("utf8mb4_cs_0900_ai_ci", ["c", "h", "ch", "i"]),
    ("utf8mb4_spanish2_ci", ["cz", "ch", "d", "lz", "ll", "m"]),
    ("ucs2_bin", ["a", "é", "日"]),
]


@pytest.mark.parametrize(("collation", "one", "other"), EQUAL)
def test_equal(collation: str, one: str, other: str) -> None:
    found = order(COLLATIONS[collation])
    assert found.compare(one, other) == 0 == found.compare(other, one)
    assert found.folded(one) == found.folded(other)


@pytest.mark.parametrize(("collation", "one", "other"), DIFFERENT)
def test_different(collation: str, one: str, other: str) -> None:
    found = order(COLLATIONS[collation])
    assert found.compare(one, other) == -found.compare(other, one) != 0
    assert found.folded(one) != found.folded(other)


@pytest.mark.parametrize(("collation", "ascending"), ASCENDING)
def test_order(collation: str, ascending: list[str]) -> None:
    texts = ascending[::-1]
    texts.sort(key=cmp_to_key(order(COLLATIONS[collation]).compare))
    assert texts == ascending


@pytest.mark.parametrize("name", sorted(COLLATIONS))
def test_every_name_orders(name: str) -> None:
    collation = COLLATIONS[name]
    texts = ["", " ", "a", "A", "á", "b", "B ", "ž", "日", "ch", "가"]
    compare = order(collation).compare
    once = sorted(texts, key=cmp_to_key(compare))
    again = once[::-1]
    again.sort(key=cmp_to_key(compare))
    assert [compare(a, b) for a, b in zip(once, again, strict=True)] == [0] * len(texts)
    assert compare("a", "b") == -1
    assert (compare("a", "a ") == 0) is collation.pads
    assert charset_of(name.upper()) == collation.charset == name.partition("_")[0]


@cache
def compared_and_weighed(name: str) -> tuple[Callable[[str, str], int], Callable[[str], Any]]:
    collation = COLLATIONS[name]
    compare = order(collation).compare
    compare("a", "bb")  # the table is read by now
    return compare, str if collation.family == "code-point" else weights.table_of(collation).key


@pytest.mark.parametrize("name", sorted(COLLATIONS))
@settings(max_examples=settings().max_examples // 6)
@given(
    pair=st.lists(
        st.text(st.sampled_from("abCDé ßÆ\x01\x7f\x85\xad\u02dcž\u0131日"), min_size=3, max_size=3),
        min_size=2,
        max_size=2,
    )
)
def test_texts_of_one_length_compare_by_their_weights(name: str, pair: list[str]) -> None:
    collation = COLLATIONS[name]
    compare, weigh = compared_and_weighed(name)
    one, other = map(weigh, pair)
    width, space = max(len(one), len(other)), weigh(" ")
    if collation.pads and one != other:
        one, other = one.ljust(width, space), other.ljust(width, space)
    assert compare(*pair) == (one > other) - (one < other)


def test_a_long_text_compares_without_being_kept() -> None:
    found = order(COLLATIONS["utf8mb4_0900_ai_ci"])
    assert found.compare("É" * 10_000, "e" * 10_000) == 0
    assert found.compare("É" * 10_000, "e" * 9_999) == 1


def test_a_connection_uses_them_in_keys_indexes_and_order_by() -> None:
    connection = sqlite3.connect(":memory:")
    collations.register(connection)
    connection.execute(
        "CREATE TABLE t (k VARCHAR(9) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, v TEXT COLLATE latin1_bin)"
    )
    connection.execute("INSERT INTO t VALUES ('résumé', 'a'), ('zoo', 'a ')")
    assert connection.execute("SELECT k FROM t WHERE k = 'RESUME'").fetchall() == [("résumé",)]
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute("INSERT INTO t VALUES ('Resume', '')")
    assert connection.execute("SELECT count(*) FROM t WHERE v = 'a'").fetchone() == (2,)
    assert connection.execute("SELECT k FROM t ORDER BY k COLLATE UTF8MB4_SWEDISH_CI DESC").fetchall() == [
        ("zoo",), ("résumé",)
    ]  # fmt: skip
    connection.close()


def test_without_registering_a_connection_says_so(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as maker:
        collations.register(maker)
        maker.execute("CREATE TABLE t (k TEXT COLLATE utf8mb4_0900_ai_ci)")
    connection = sqlite3.connect(tmp_path / "x.sqlite")
    with pytest.raises(sqlite3.OperationalError, match="no such collation sequence: utf8mb4_0900_ai_ci"):
        connection.execute("SELECT * FROM t ORDER BY k")
    connection.close()


def test_registering_reads_no_table() -> None:
    weights._family.cache_clear()
    connection = sqlite3.connect(":memory:")
    collations.register(connection)
    assert connection.execute("SELECT 'a' = 'A ' COLLATE utf8mb4_bin").fetchone() == (0,)
    assert weights._family.cache_info().currsize == 0
    connection.close()


@pytest.mark.parametrize("name", ["NOCASE", "binary", "utf16_general_ci", "utf8mb4", ""])
def test_other_names_have_no_character_set(name: str) -> None:
    assert charset_of(name) is None
