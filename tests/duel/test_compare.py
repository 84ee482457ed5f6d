"""Two answers are the same up to cas numbers, and up to what a row of known_differences.toml explains."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kvref.errors import SuiteError
from kvref_conformance.differential import compare, known_differences
from kvref_conformance.differential.compare import Counted, differing_rows, lines
from kvref_conformance.differential.known_differences import Known
from kvref_conformance.sql.columns import Column
from kvref_conformance.strategies.world import Container, Table, World

TABLE = Table("t", (Column("k", "VARCHAR", 8), Column("v", "INT"), Column("c", "BIGINT"), Column("e", "INT")), "k")
WORLD = World(0, (TABLE,), (Container(("m", "test", "t", "k", "v", "0", "c", "e", "PRIMARY"), TABLE),))


def same(left: bytes, right: bytes, counted: Counted) -> bool:
    return compare.same(lines(left), lines(right), counted)


def explained(sent: bytes, left: bytes, right: bytes, rows: Sequence[Known]) -> list[str] | None:
    return compare.explained(sent.decode(), lines(left), lines(right), rows, Counted())


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


@pytest.mark.parametrize("pair", [(0, 5), (5, 0), (1_000_000_001, 7), (7, 1_000_000_001), (1 << 63, (1 << 63) + 1)])
def test_numbers_that_no_counter_gave_are_compared_as_they_are(pair: tuple[int, int]) -> None:
    assert not same(value_of(pair[0]), value_of(pair[1]), Counted())


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


def test_a_row_explains_the_lines_it_fits_and_no_other() -> None:
    rows = known_differences.load(["mysql-5.6"])
    garbage = b"STORED\r\n140546769192919\r\n"
    assert explained(b"set k 0 0 1\r\nx\r\nincr zz 1\r\n", garbage, b"STORED\r\nNOT_FOUND\r\n", rows) == [
        "uninitialised-number"
    ]
    assert explained(b"incr zz 1\r\n", b"NOT_FOUND\r\n", b"7\r\n", rows) == ["uninitialised-number"]
    assert explained(b"get zz\r\n", b"7\r\n", b"NOT_FOUND\r\n", rows) is None
    assert explained(b"incr zz 1\r\n", garbage, b"NOT_STORED\r\nNOT_FOUND\r\n", rows) is None
    assert explained(b"incr zz 1\r\n", garbage, b"NOT_FOUND\r\n", rows) is None
    assert "uninitialised-number" not in {row.id for row in known_differences.load(["mysql-8.0"])}


def test_a_malformed_row_is_refused() -> None:
    row = '[[known]]\nid = "x"\nprofiles = ["kvref"]\nsent = "a"\none = "b"\nother = "c"\nreason = "r"\n'
    with pytest.raises(SuiteError, match="known 1: no evidence"):
        known_differences.parse(row, ["kvref"])
    assert known_differences.parse(row + 'evidence = ["e"]\n', ["kvref"])[0].id == "x"


def test_rows_are_the_same_up_to_cas_numbers_seconds_and_order() -> None:
    left = [["a", 1, 5, 1000], ["b", 2, 6, None]]
    right = [["b", 2, 10, None], ["a", 1, 9, 1001]]
    assert differing_rows(WORLD, TABLE, left, right, Counted()) is None
    counted = Counted()
    assert same(value_of(5), value_of(10), counted)
    right[0][2] = 11
    assert differing_rows(WORLD, TABLE, left, right, counted) == ([["a", 1, 5, 1000]], [["a", 1, 9, 1001]])


@pytest.mark.parametrize(
    "cell", [["a", 1, 9, 1010], ["a", 1, None, 1000], ["a", "1", 9, 1000], ["A", 1, 9, 1000], ["a", 1, 0, 1000]]
)
def test_other_cells_are_a_difference(cell: list[object]) -> None:
    assert differing_rows(WORLD, TABLE, [["a", 1, 5, 1000]], [cell], Counted()) == ([["a", 1, 5, 1000]], [cell])


def test_a_missing_row_is_reported_alone() -> None:
    left = [["a", 1, 5, 0], ["b", 1, 6, 0]]
    assert differing_rows(WORLD, TABLE, left, left[:1], Counted()) == ([["b", 1, 6, 0]], [])
