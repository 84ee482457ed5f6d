"""Draw worlds: a few tables, two to eight rows of `containers` over them, right and wrong ones, and the options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.differential.draw import chance, weighted
from kvref_conformance.differential.pools import DELIMITERS, FAULTS, NAMES, SEPARATORS
from kvref_conformance.differential.shapes import Ground, Shape, draw_shape, second_view
from kvref_conformance.differential.world import DEMO, Column, Container, Table, World

if TYPE_CHECKING:
    from random import Random

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


def draw_world(rnd: Random, number: int, ground: Ground) -> World:
    """Draw a world in which at least one mapping works."""
    closed, count = chance(rnd, 0.75), weighted(rnd, {1: 1.0, 2: 3, 3: 3, 4: 1})
    shapes = [draw_shape(rnd, f"t{n}", ground, closed=closed) for n in range(1, count + 1)]
    names = _names(rnd, weighted(rnd, {2: 1.0, 3: 2, 4: 3, 5: 3, 6: 2, 7: 1, 8: 1}))
    containers = [_container(rnd, names.pop(), shape) for shape in shapes if names]
    while names and chance(rnd, 0.85):
        view = rnd.choice(shapes)
        if chance(rnd, 0.35):
            containers.append(_wrong(rnd, names.pop()))
        else:
            containers.append(
                _container(rnd, names.pop(), second_view(rnd, view, ground) if chance(rnd, 0.6) else view)
            )
    if chance(rnd, 0.5):
        containers.append(Container(("aaa", "test", DEMO, "c1", "c2", "c3", "c4", "c5", "PRIMARY"), DEMO_TABLE))
    rnd.shuffle(containers)
    tables = (DEMO_TABLE, *(shape.table for shape in shapes), *_plain_tables(containers))
    return World(number, tables, tuple(containers), _options(rnd), ground.version)


def _options(rnd: Random) -> dict[str, str]:
    options = {"table_map_delimiter": weighted(rnd, DELIMITERS), "separator": weighted(rnd, SEPARATORS)}
    if chance(rnd, 0.03):
        del options[rnd.choice(["table_map_delimiter", "separator"])]
    return options


def _names(rnd: Random, count: int) -> list[str]:
    names: dict[str, str] = {}
    while len(names) < count:
        name = rnd.choice(NAMES)
        names.setdefault(name.lower(), name)
    return list(names.values())


def _container(rnd: Random, name: str, shape: Shape) -> Container:
    separator = rnd.choice([",", ",", ",", ";", "|", " ", ", "])
    cells = (
        name,
        "test",
        shape.table.name,
        shape.key,
        separator.join(shape.values),
        *(word or rnd.choice(OFF) for word in (shape.flags, shape.cas, shape.expiry)),
        rnd.choice(["PRIMARY", "PRIMARY", "primary"]) if shape.index == "PRIMARY" else shape.index,
    )
    return Container(cells, shape.table)


def _wrong(rnd: Random, name: str) -> Container:
    fault, position, cell = rnd.choice(FAULTS)
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
