"""The model of generated tables: what it makes of keys and values by the facts of a profile, and what is drawn."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from kvref import profiles
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Answer
from kvref_conformance.model.model import Model
from kvref_conformance.model.schema import Schema
from kvref_conformance.model.words import Mappings
from kvref_conformance.sql.columns import Column
from kvref_conformance.stateful.case_names import ANY_TABLE
from kvref_conformance.stateful.schemas import strategies
from kvref_conformance.strategies.palette import MODELLED
from kvref_conformance.strategies.tables import MappedTable

REFUSED, TOO_LARGE = "CLIENT_ERROR <text>\r\n", "SERVER_ERROR object too large for cache<text>\r\n"
TEXT = Column("k", "VARCHAR", 4, "utf8_general_ci", nullable=False)
VALUES = (Column("v0", "VARCHAR", 3, "utf8mb4_bin"), Column("v1", "TINYINT"), Column("v2", "VARCHAR", 3, "latin1_bin"))


class Table:
    """The model of one mapped table."""

    def __init__(self, profile: str) -> None:
        facts = profiles.load(profile)
        self._model = Model(facts, Mappings({"m": "t"}, schemas={"t": Schema(facts, TEXT, VALUES)}))
        self._model.take(s.Open("a", "m"))

    def reply(self, step: s.Step) -> str:
        """Return the only reply that is allowed."""
        (answer,) = self._model.take(step)
        assert isinstance(answer, Answer)
        (text,) = answer.texts
        return text

    def store(self, verb: str, word: str, value: str) -> str:
        """Store with flags 1."""
        return self.reply(s.Store("a", verb, word, value, 1))

    def insert(self, key: str, cells: tuple[str | int | None, ...], flags: int | None) -> bool:
        """Insert a row over SQL."""
        return self._model.insert("t", key, cells, flags)

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows."""
        return self._model.rows_of("t")


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
        table = Table(profile)
        answer = table.store("set", "k", value)
        found = [row[1:-1] for row in table.rows()]
        assert (found[0] if found else answer) == wanted


def test_equal_keys_are_one_row_and_long_ones_are_cut_or_missing() -> None:
    for profile, long, spelling in (
        ("kvref", "END\r\n", "abe"),
        ("mysql-8.0", "VALUE abeXyz 1 4\r\ny|0|\r\nEND\r\n", "ABE"),
    ):
        table = Table(profile)
        assert table.store("set", "abe", "x|1|") == "STORED\r\n"
        assert table.store("add", "AB\xc3\x89", "x|1|") == "NOT_STORED\r\n"
        assert table.store("set", "ABE", "y|0|") == "STORED\r\n"
        assert [row[0] for row in table.rows()] == [spelling]
        assert table.insert("abex", ("y", 0, ""), 1)
        assert not table.insert("ABEX", ("y", 0, ""), 1)
        assert table.reply(s.Get("a", ("abeXyz",))) == long


@settings(max_examples=50, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(strategies.drawn(ANY_TABLE, MODELLED))
def test_what_is_drawn_can_be_sent(example: tuple[MappedTable, list[s.Request]]) -> None:
    drawn, commands = example
    assert sorted(column.name for column in drawn.table.columns) == sorted(["k", "f", *drawn.values])
    for command in commands:
        assert isinstance(command, s.Get | s.Store | s.Delete)
        words = [word.encode("latin-1") for word in (command.words if isinstance(command, s.Get) else [command.word])]
        assert all(0 < len(word) <= 250 and not set(word) & set(b" \r\n\0") for word in words)


@settings(max_examples=200, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(strategies.tables())
def test_a_drawn_table_is_one_that_the_model_knows(drawn: MappedTable) -> None:
    for column in (drawn.key_column, *drawn.value_columns):
        assert column.kind == "integer" or column.type == "VARCHAR"
        assert column.kind == "text" or column.name == "k" or "UNSIGNED" not in column.type
        assert column.kind == "integer" or column.charset("8.0.33") in {"latin1", "utf8", "utf8mb4"}
    texts = "".join(cell for row in drawn.table.rows for cell in row if isinstance(cell, str))
    assert not set(texts) - set("aAbeEéÉ1")
    assert (drawn.table.primary, drawn.table.indexes) == ("k", ())


@settings(max_examples=50, database=None, deadline=None)
@given(strategies.container_rows())
def test_a_drawn_row_is_wrong_exactly_when_a_fault_is_in_it(example: tuple[strategies.Cells, bool]) -> None:
    cells, usable = example
    assert usable != any(
        text in strategies.FAULTS.get(name, ()) for name, text in cells.items() if (name, text) not in ODD
    )


ODD = [(name, text) for name, texts in strategies.ODDITIES.items() for text in texts]
