"""Draw worlds: a few tables, two to eight rows of `containers` over them, right and wrong ones, and the options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.differential.draw import chance, pick, weighted
from kvref_conformance.differential.pools import DELIMITERS, FAULTS, NAMES, SEPARATORS
from kvref_conformance.differential.shapes import Ground, Shape, draw_shape, second_view
from kvref_conformance.differential.world import DEMO, Container, Table, World
from kvref_conformance.sql.columns import Column

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


def draw_world(draw: DrawFn, number: int, ground: Ground) -> World:
    """Draw a world in which at least one mapping works."""
    closed, count = chance(draw, 0.75), weighted(draw, {1: 1.0, 2: 3, 3: 3, 4: 1})
    shapes = [draw_shape(draw, f"t{n}", ground, closed=closed) for n in range(1, count + 1)]
    names = _names(draw, weighted(draw, {2: 1.0, 3: 2, 4: 3, 5: 3, 6: 2, 7: 1, 8: 1}))
    containers = [_container(draw, names.pop(), shape) for shape in shapes if names]
    while names and chance(draw, 0.85):
        view = pick(draw, shapes)
        if chance(draw, 0.35):
            containers.append(_wrong(draw, names.pop()))
        else:
            containers.append(
                _container(draw, names.pop(), second_view(draw, view, ground) if chance(draw, 0.6) else view)
            )
    if chance(draw, 0.5):
        containers.append(Container(("aaa", "test", DEMO, "c1", "c2", "c3", "c4", "c5", "PRIMARY"), DEMO_TABLE))
    containers = draw(st.permutations(containers))
    tables = (DEMO_TABLE, *(shape.table for shape in shapes), *_plain_tables(containers))
    return World(number, tables, tuple(containers), _options(draw), ground.version)


def _options(draw: DrawFn) -> dict[str, str]:
    options = {"table_map_delimiter": weighted(draw, DELIMITERS), "separator": weighted(draw, SEPARATORS)}
    if chance(draw, 0.03):
        del options[pick(draw, ["table_map_delimiter", "separator"])]
    return options


def _names(draw: DrawFn, count: int) -> list[str]:
    return draw(st.lists(st.sampled_from(NAMES), min_size=count, max_size=count, unique_by=str.lower))


def _container(draw: DrawFn, name: str, shape: Shape) -> Container:
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


def _plain_tables(containers: list[Container]) -> list[Table]:
    """Return the tables that wrong rows name: a plain one, and one that InnoDB does not know."""
    if not any(each.fault for each in containers):
        return []
    plain = Table(
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
    return [plain, replace(plain, name="tm", engine="MYISAM", indexes=(), unique=frozenset())]
