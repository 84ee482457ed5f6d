"""Two answers are the same up to cas numbers, and anything else is a difference."""

from __future__ import annotations

import pytest

from kvref_conformance.differential import compare
from kvref_conformance.differential.compare import Counted, differing_rows, lines
from kvref_conformance.sql.columns import Column
from kvref_conformance.strategies.world import Container, Table, World

TABLE = Table("t", (Column("k", "VARCHAR", 8), Column("v", "INT"), Column("c", "BIGINT"), Column("e", "INT")), "k")
WORLD = World(0, (TABLE,), (Container(("m", "test", "t", "k", "v", "0", "c", "e", "PRIMARY"), TABLE),))


def same(left: bytes, right: bytes, counted: Counted) -> bool:
    return compare.same(lines(left), lines(right), counted)


def value_of(cas: int, data: bytes = b"x") -> bytes:
    return b"VALUE k 0 %d %d\r\n%b\r\nEND\r\n" % (len(data), cas, data)


@pytest.mark.parametrize("first", [0, 1_795_975_962_120_122])
def test_cas_numbers_are_the_same_up_to_renaming(first: int) -> None:
    counted = Counted()

    def value(cas: int) -> bytes:
        return value_of(first + cas)

    assert same(value(5), value(9), counted)
    assert same(value(5), value(9), counted)
    assert same(value(6), value(10), counted)
    assert not same(value(5), value(10), counted)
    assert not same(value(7), value(9), counted)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (b"END\r\n", b"ERROR\r\n"),
        (value_of(5), value_of(5, b"y")),
        (value_of(5), b"VALUE k 0 1\r\nx\r\nEND\r\n"),
        (value_of(5), value_of(5) + b"<EOF>"),
        (b"VALUE k 1 1\r\nx\r\nEND\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n"),
    ],
)
def test_anything_else_is_a_difference(left: bytes, right: bytes) -> None:
    assert same(left, left, Counted())
    assert not same(left, right, Counted())


@pytest.mark.parametrize(
    "cell", [["a", 1, 9, 1010], ["a", 1, None, 1000], ["a", "1", 9, 1000], ["A", 1, 9, 1000], ["a", 1, 0, 1000]]
)
def test_other_cells_are_a_difference(cell: list[object]) -> None:
    assert differing_rows(WORLD, TABLE, [["a", 1, 5, 1000]], [cell], Counted()) == ([["a", 1, 5, 1000]], [cell])
