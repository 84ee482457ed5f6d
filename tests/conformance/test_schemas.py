"""The model of generated tables: what it makes of keys and values by the facts of a profile, and what is drawn."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvref import profiles
from kvref_conformance.differential.world import Column
from kvref_conformance.stateful.schemas import strategies
from kvref_conformance.stateful.schemas.model import REFUSED, TOO_LARGE, Table

TEXT = Column("k", "VARCHAR", 4, "utf8_general_ci", nullable=False)
VALUES = (Column("v0", "VARCHAR", 3, "utf8mb4_bin"), Column("v1", "TINYINT"), Column("v2", "VARCHAR", 3, "latin1_bin"))


def table(profile: str, key: Column = TEXT, values: tuple[Column, ...] = VALUES) -> Table:
    return Table(profiles.load(profile), key, values)


@pytest.mark.parametrize(
    ("value", "kvref", "plugin"),
    [
        ("a|5|b", ("a", 5, "b"), ("a", 5, "b")),
        ("a", ("a", None, None), ("a", None, None)),
        ("a||b", ("a", None, "b"), ("a", None, None)),
        ("|5|b", ("", 5, "b"), (None, 5, "b")),
        ("a|5|b|c", REFUSED, ("a", 5, "b")),
        ("abcd|5|b", TOO_LARGE, ("abc", 5, "b")),
        ("a|300|b", REFUSED, ("a", 44, "b")),
        ("a|x|b", REFUSED, ("a", None, None)),
        ("\xc3\xa9|5|\xe9", ("é", 5, "é"), ("é", 5, "é")),
    ],
)
def test_a_value_becomes_cells_or_is_refused(value: str, kvref: object, plugin: object) -> None:
    for profile, wanted in (("kvref", kvref), ("mysql-8.0", plugin)):
        model = table(profile)
        answer = model.store("set", "k", 3, value)
        found = [row[1:-1] for row in model.content()]
        assert (found[0] if found else answer) == wanted


def test_equal_keys_are_one_row_and_long_ones_are_cut_or_missing() -> None:
    for profile, long, spelling in (
        ("kvref", "END\r\n", "abe"),
        ("mysql-8.0", "VALUE abeXyz 1 4\r\ny|0|\r\nEND\r\n", "ABE"),
    ):
        model = table(profile)
        assert model.store("set", "abe", 1, "x|1|") == "STORED\r\n"
        assert model.store("add", "AB\xc3\x89", 1, "x|1|") == "NOT_STORED\r\n"
        assert model.store("set", "ABE", 1, "y|0|") == "STORED\r\n"
        assert [row[0] for row in model.content()] == [spelling]
        model.insert("abex", ("y", 0, ""), 1)
        assert model.get(["abeXyz"]) == long


def test_null_is_an_empty_part() -> None:
    model = table("kvref")
    model.insert("a", (None, 7, None), None)
    assert model.get(["A", "b"]) == "VALUE A 0 3\r\n|7|\r\nEND\r\n"
    assert model.delete("a") == "DELETED\r\n"
    assert model.delete("a") == "NOT_FOUND\r\n"


@settings(max_examples=50, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(strategies.tables().flatmap(lambda drawn: st.tuples(st.just(drawn), strategies.commands(drawn))))
def test_what_is_drawn_can_be_sent(example: tuple[strategies.Drawn, list[strategies.Command]]) -> None:
    drawn, commands = example
    assert sorted(drawn.order) == sorted(["k", "f", *(column.name for column in drawn.values)])
    for command in commands:
        words = [word.encode("latin-1") for word in command.words]
        assert all(0 < len(word) <= 250 and not set(word) & set(b" \r\n\0") for word in words)
        assert command.line.endswith("\r\n")


@settings(max_examples=50, database=None, deadline=None)
@given(strategies.container_rows())
def test_a_drawn_row_is_wrong_exactly_when_a_fault_is_in_it(example: tuple[strategies.Cells, bool]) -> None:
    cells, usable = example
    assert usable != any(
        text in strategies.FAULTS.get(name, ()) for name, text in cells.items() if (name, text) not in ODD
    )


ODD = [(name, text) for name, texts in strategies.ODDITIES.items() for text in texts]
