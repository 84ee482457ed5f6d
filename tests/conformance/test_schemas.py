"""What is drawn of generated tables: each example can be sent, and is wrong only where a fault is in it."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from kvref_conformance.model import steps as s
from kvref_conformance.stateful.case_names import ANY_TABLE
from kvref_conformance.stateful.schemas import strategies
from kvref_conformance.strategies.palette import MODELLED
from kvref_conformance.strategies.tables import MappedTable


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
