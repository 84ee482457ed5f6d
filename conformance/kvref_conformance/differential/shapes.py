"""Draw tables: columns of every type the plugin maps, in any order, under any collation, with or without neighbours.

Excluded, because a server ends or shows uninitialised memory (columns page, sections 7, 10 and 16):
MEDIUMINT, DATE, TINYTEXT, TINYBLOB, BINARY, DECIMAL, FLOAT, times, BIT, JSON, ENUM, SET, YEAR; cas and expiry columns
too narrow for a counter or a time, whose contents depend on the time of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.differential import exclusions
from kvref_conformance.differential.cells import row_pool
from kvref_conformance.differential.draw import chance, pick, some, weighted
from kvref_conformance.differential.pools import COLLATIONS
from kvref_conformance.differential.world import Table
from kvref_conformance.sql.columns import Column

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

INTEGERS: Final = (
    "TINYINT", "TINYINT UNSIGNED", "SMALLINT", "SMALLINT UNSIGNED", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED",
)  # fmt: skip
WIDE_INTEGERS: Final = ("INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED")
_BYTES_A_CHARACTER: Final = {"latin1": 1, "ascii": 1, "utf8": 3, "utf8mb4": 4}
_SHORT_INDEX: Final = 767
_KEY_WIDTHS: Final = {32: 6.0, 1: 0.5, 2: 1, 3: 1, 4: 1, 5: 1, 8: 2, 16: 2, 64: 1, 100: 1, 191: 0.5, 250: 1}
_VALUE_WIDTHS: Final = {40: 4.0, 1: 0.5, 2: 1, 3: 1, 5: 1, 6: 2, 10: 2, 20: 2, 126: 1, 200: 2, 1024: 1}


# Protocols of the connections of a conversation.
TEXT: Final = "text"
BINARY: Final = "binary"
MIXED: Final = "mixed"
PROTOCOLS: Final = (TEXT, BINARY, MIXED)
# Options of servers on which several writes and reads make a transaction; no background commit ends it.
BATCHES: Final = (
    "--daemon_memcached_w_batch_size=4",
    "--daemon_memcached_r_batch_size=7",
    "--innodb_api_bk_commit_interval=100000",
)


@dataclass(frozen=True, slots=True)
class Ground:
    """The configuration of a run.

    Args:
        version: version of the MySQL server whose defaults the tables use.
        care: names of the active rules of `exclusions.toml`.
        protocol: one of PROTOCOLS; mixed: each connection uses one or the other.
        batches: the servers run with `BATCHES`.
    """

    version: str
    care: frozenset[str]
    protocol: str = TEXT
    batches: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """A table and what its columns are meant for; names are '' for what it does not have."""

    table: Table
    key: str
    values: tuple[str, ...]
    flags: str
    cas: str
    expiry: str
    index: str


def draw_shape(draw: DrawFn, name: str, ground: Ground, *, closed: bool) -> Shape:
    """Draw a table that a container can map, with rows; `closed`: as `Table.is_closed` has it."""
    key = replace(_key(draw, ground), name="k")
    count = weighted(draw, {1: 5.0, 2: 3, 3: 2, 4: 1, 5: 0.5, 6: 0.5})
    values = [
        replace(_value(draw, ground, several=count > 1), name=f"v{number}", nullable=not chance(draw, 0.1))
        for number in range(count)
    ]
    options = {
        word: Column(word, pick(draw, types), nullable=not chance(draw, 0.08))
        for word, types in (("f", INTEGERS), ("c", (*WIDE_INTEGERS, "BIGINT UNSIGNED")), ("e", WIDE_INTEGERS))
        if chance(draw, 0.8) or (closed and word == "f")
    }
    others = [_unmapped(draw, number) for number in range(weighted(draw, {0: 6.0, 1: 2, 2: 1, 3: 0.5}))]
    columns = [key, *values, *options.values(), *others]
    if chance(draw, 0.4):
        columns = draw(st.permutations(columns))
    if closed:
        last = columns.pop(columns.index(pick(draw, [*options.values()])))
        columns.append(replace(last, type=last.type.replace("TINYINT", "INT"), nullable=False))
    if exclusions.UNSIGNED_NOT_NULL in ground.care:
        columns = [column if column is key else _readable(column) for column in columns]
    table = _indexed(draw, Table(name, tuple(columns), primary="k"), ground)
    table = replace(table, rows=row_pool(draw, table, ground.version))
    index = "PRIMARY" if table.primary == "k" and not (table.unique and chance(draw, 0.5)) else "uk"
    named = {word: word if word in options else "" for word in ("f", "c", "e")}
    return Shape(table, "k", tuple(column.name for column in values), named["f"], named["c"], named["e"], index)


def _readable(column: Column) -> Column:
    """Return a column signed where it is unsigned and NOT NULL; see `exclusions.toml`."""
    return column if column.nullable else replace(column, type=column.type.removesuffix(" UNSIGNED"))


def _indexed(draw: DrawFn, table: Table, ground: Ground) -> Table:
    style = weighted(draw, {"primary": 8.0, "both": 0.7, "unique": 0.9, "beside": 0.6, "beside, not null": 0.3})
    if style == "primary":
        return table
    table = replace(table, indexes=(("uk", "k"),), unique=frozenset({"uk"}))
    if style == "both":
        return table
    if style == "unique":
        return replace(table, primary=None)
    # With a primary key of their own: the plugin writes NULL into it, so only reads, deletes and errors are left.
    identity = Column("id", "INT", nullable=False)
    columns = (identity, *table.columns) if chance(draw, 0.5) else (*table.columns, identity)
    deadly = exclusions.INTEGER_KEY_NULL in ground.care and table.column("k").kind == "integer"
    nullable = style == "beside" and not deadly
    columns = tuple(replace(c, nullable=nullable) if c.name == "k" else c for c in columns)
    return replace(table, columns=columns, primary="id")


def _collation(draw: DrawFn, ground: Ground) -> str | None:
    if chance(draw, 0.35):
        return None
    charset = weighted(draw, {"utf8mb4": 4.0, "utf8": 2, "latin1": 2, "ascii": 0.5})
    if charset == "ascii" and exclusions.WELL_FORMED in ground.care:
        charset = "latin1"
    newer = charset == "utf8mb4" and not ground.version.startswith("5.") and chance(draw, 0.6)
    return pick(draw, COLLATIONS["newer" if newer else charset])


def _key(draw: DrawFn, ground: Ground) -> Column:
    if chance(draw, 0.25):
        return Column("", pick(draw, INTEGERS), nullable=False)
    column = Column(
        "",
        weighted(draw, {"VARCHAR": 5.0, "CHAR": 1}),
        weighted(draw, _KEY_WIDTHS),
        _collation(draw, ground),
        nullable=False,
    )
    if exclusions.SHORT_INDEX in ground.care:
        most = _SHORT_INDEX // _BYTES_A_CHARACTER[column.charset(ground.version)]
        column = replace(column, width=min(column.width or 1, most))
    return column


def _value(draw: DrawFn, ground: Ground, *, several: bool) -> Column:
    kind = weighted(
        draw,
        {
            "VARCHAR": 7.0,
            "CHAR": 1,
            "TEXT": 1.5,
            "LONGTEXT": 0.3,
            "VARBINARY": 1,
            "BLOB": 1,
            "LONGBLOB": 0.3,
            "integer": 2.5,
        },
    )
    if kind == "VARBINARY" and several:
        kind = "BLOB"  # a list of columns may hold none: the row would be refused
    if kind == "integer":
        narrow = exclusions.UNSIGNED_VALUES in ground.care
        return Column(
            "", pick(draw, [each for each in INTEGERS if not (narrow and "UNSIGNED" in each and "BIG" not in each)])
        )
    collation = None if kind in {"VARBINARY", "BLOB", "LONGBLOB"} else _collation(draw, ground)
    width = weighted(draw, _VALUE_WIDTHS) if kind in {"VARCHAR", "CHAR", "VARBINARY"} else None
    if kind == "CHAR":
        width = min(width or 1, 200)
    return Column("", kind, width, collation)


def _unmapped(draw: DrawFn, number: int) -> Column:
    name = f"x{number}"
    kind = pick(draw, ["INT", "VARCHAR"])
    default = pick(draw, [None, None, "5" if kind == "INT" else "'five'"])
    return Column(name, kind, 10 if kind == "VARCHAR" else None, nullable=not chance(draw, 0.12), default=default)


def second_view(draw: DrawFn, shape: Shape, ground: Ground) -> Shape:
    """Draw another way to map the same table: other value columns, features off."""
    table = shape.table
    # Cas numbers and times are excluded: as text they look like values that a client wrote.
    out = {shape.key, shape.cas, shape.expiry, "id", *(["f"] if exclusions.UNSIGNED_VALUES in ground.care else [])}
    free = [column.name for column in table.columns if column.name not in out]
    values = tuple(some(draw, free, 3))
    if len(values) > 1:
        values = tuple(name for name in values if table.column(name).type != "VARBINARY")
    return Shape(
        table,
        shape.key,
        values,
        shape.flags if shape.flags not in values and chance(draw, 0.6) else "",
        shape.cas if chance(draw, 0.6) else "",
        shape.expiry if chance(draw, 0.6) else "",
        shape.index,
    )
