"""Keys that are not in the file yet compare as SQLite compares them."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref import collations
from kvref.storage.key_order import KeyOrder

COLLATIONS = ["BINARY", "NOCASE", "RTRIM", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci", "latin1_swedish_ci"]
TEXTS = st.text(st.sampled_from("abAB zZéÉß[_^`\U0001f600"), max_size=4)


@pytest.fixture(scope="module")
def sqlite() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    collations.register(connection)
    return connection


@pytest.mark.parametrize("collation", COLLATIONS)
def test_texts(collation: str, sqlite: sqlite3.Connection) -> None:
    order = KeyOrder(collation)

    @given(TEXTS, TEXTS)
    def compare(one: str, other: str) -> None:
        requests = f"SELECT ? = ? COLLATE {collation}, ? < ? COLLATE {collation}"
        equal, less = sqlite.execute(requests, (one, other, one, other)).fetchone()
        assert (order.identity(one) == order.identity(other)) == bool(equal)
        assert order.compare(one, other) == (0 if equal else -1 if less else 1)

    compare()


@given(st.lists(st.none() | st.integers(-3, 3) | st.binary(max_size=2) | TEXTS, min_size=2, max_size=2))
def test_classes_of_storage(pair: list[int | str | bytes | None]) -> None:
    order = KeyOrder("BINARY")
    with sqlite3.connect(":memory:") as connection:
        rows = connection.execute("SELECT column1 FROM (VALUES (?), (?)) ORDER BY column1", pair).fetchall()
    assert order.compare(rows[0][0], rows[1][0]) <= 0
    assert order.compare(rows[1][0], rows[0][0]) >= 0


def test_bounds() -> None:
    order = KeyOrder("NOCASE")
    assert order.within("B", [(">", "a"), ("<=", "b")])
    assert not order.within("A", [(">", "a")])
    assert order.within("anything", [])
