"""Draw worlds: a few tables, two to eight rows of `containers` over them, right and wrong ones, and the options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.differential import exclusions
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.sql.columns import Column
from kvref_conformance.strategies.draw import chance, pick, some, weighted
from kvref_conformance.strategies.pools import DELIMITERS, FAULTS, NAMES, SEPARATORS
from kvref_conformance.strategies.tables import MappedTable, draw_shape
from kvref_conformance.strategies.world import DEMO, Container, Table, World

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

# Spellings of "not in use".
OFF: Final = ("0", "0", "0", "", "nope")
DEMO_TABLE: Final = Table(
    DEMO,
    (
        Column("c1", "VARCHAR", 32, nullable=False),
        Column("c2", "VARCHAR", 1024),
        Column("c3", "INT"),
        Column("c4", "BIGINT UNSIGNED"),
        # Nullable in truth; never NULL here, so that the table counts as closed.
        Column("c5", "INT", nullable=False),
    ),
    "c1",
    rows=(("AA", "HELLO, HELLO", 8, 0, 0), ("k1", "5", 1, 0, 0)),
)


def draw_world(draw: DrawFn, number: int, configuration: Configuration) -> World:
    """Draw a world in which at least one mapping works."""
    palette, closed, count = configuration.palette, chance(draw, 0.75), weighted(draw, {1: 1.0, 2: 3, 3: 3, 4: 1})
    shapes = [draw_shape(draw, f"t{n}", palette, closed=closed) for n in range(1, count + 1)]
    names = _names(draw, weighted(draw, {2: 1.0, 3: 2, 4: 3, 5: 3, 6: 2, 7: 1, 8: 1}))
    containers = [_container(draw, names.pop(), shape) for shape in shapes if names]
    while names and chance(draw, 0.85):
        view = pick(draw, shapes)
        if chance(draw, 0.35):
            containers.append(_wrong(draw, names.pop()))
        else:
            containers.append(
                _container(draw, names.pop(), _second_view(draw, view, configuration) if chance(draw, 0.6) else view)
            )
    if chance(draw, 0.5):
        containers.append(Container(("aaa", "test", DEMO, "c1", "c2", "c3", "c4", "c5", "PRIMARY"), DEMO_TABLE))
    containers = draw(st.permutations(containers))
    tables = (DEMO_TABLE, *(shape.table for shape in shapes), *_tables_without_mapping(containers))
    return World(number, tables, tuple(containers), _options(draw), palette)


def _options(draw: DrawFn) -> dict[str, str]:
    options = {"table_map_delimiter": weighted(draw, DELIMITERS), "separator": weighted(draw, SEPARATORS)}
    if chance(draw, 0.03):
        del options[pick(draw, ["table_map_delimiter", "separator"])]
    return options


def _names(draw: DrawFn, count: int) -> list[str]:
    return draw(st.lists(st.sampled_from(NAMES), min_size=count, max_size=count, unique_by=str.lower))


def _container(draw: DrawFn, name: str, shape: MappedTable) -> Container:
    separator = pick(draw, [",", ",", ",", ";", "|", " ", ", "])
    cells = (
        name,
        "test",
        shape.table.name,
        shape.key,
        separator.join(shape.values),
        *(word or pick(draw, OFF) for word in (shape.flags, shape.cas, shape.expiry)),
        pick(draw, ["PRIMARY", "PRIMARY", "primary"]) if shape.index == "PRIMARY" else shape.index,
    )
    return Container(cells, shape.table)


def _wrong(draw: DrawFn, name: str) -> Container:
    fault, position, cell = pick(draw, FAULTS)
    cells = [name, "test", "tp", "k", "v0", "0", "0", "0", "PRIMARY"]
    cells[position] = cell
    return Container(tuple(cells), fault=fault)


def _tables_without_mapping(containers: list[Container]) -> list[Table]:
    """Return the tables that wrong rows name: one without a fault, and one that InnoDB does not know."""
    if not any(each.fault for each in containers):
        return []
    unmapped = Table(
        "tp",
        (
            Column("k", "VARCHAR", 32, nullable=False),
            Column("v0", "VARCHAR", 40),
            Column("xt", "VARCHAR", 10),
            Column("xb", "VARBINARY", 10),
            Column("xl", "TEXT"),
        ),
        "k",
        (("ik", "k"), ("iv", "v0")),
        frozenset({"iv"}),
        rows=(("k1", "one", None, None, None),),
    )
    return [unmapped, replace(unmapped, name="tm", engine="MYISAM", indexes=(), unique=frozenset())]


def _second_view(draw: DrawFn, shape: MappedTable, configuration: Configuration) -> MappedTable:
    """Draw another way to map the same table: other value columns, features off."""
    table = shape.table
    # Cas numbers and times are excluded: as text they look like values that a client wrote.
    out = {
        shape.key,
        shape.cas,
        shape.expiry,
        "id",
        *(["f"] if exclusions.UNSIGNED_VALUES in configuration.rules else []),
    }
    free = [column.name for column in table.columns if column.name not in out]
    values = tuple(some(draw, free, 3))
    if len(values) > 1:
        values = tuple(name for name in values if table.column(name).type != "VARBINARY")
    return MappedTable(
        table,
        shape.key,
        values,
        shape.flags if shape.flags not in values and chance(draw, 0.6) else "",
        shape.cas if chance(draw, 0.6) else "",
        shape.expiry if chance(draw, 0.6) else "",
        shape.index,
    )
