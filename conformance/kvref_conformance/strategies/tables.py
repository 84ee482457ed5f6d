"""Draw tables: columns of every type the plugin maps, in any order, under any collation, with or without others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.sql.columns import Column
from kvref_conformance.strategies.cells import row_pool
from kvref_conformance.strategies.draw import chance, pick, weighted
from kvref_conformance.strategies.world import Table

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from kvref_conformance.strategies.palette import Palette

_BYTES_A_CHARACTER: Final = {"latin1": 1, "ascii": 1, "utf8": 3, "utf8mb4": 4}


@dataclass(frozen=True, slots=True)
class MappedTable:
    """A table and what its columns are meant for; names are '' for what it does not have."""

    table: Table
    key: str
    values: tuple[str, ...]
    flags: str
    cas: str
    expiry: str
    index: str

    @property
    def key_column(self) -> Column:
        """Return the key column."""
        return self.table.column(self.key)

    @property
    def value_columns(self) -> tuple[Column, ...]:
        """Return the value columns, in the order of the list."""
        return tuple(map(self.table.column, self.values))


def draw_shape(draw: DrawFn, name: str, palette: Palette, *, closed: bool) -> MappedTable:
    """Draw a table that a container can map, with rows; `closed`: as `Table.is_closed` has it."""
    key = replace(_key(draw, palette), name="k")
    count = weighted(draw, palette.value_counts)
    values = [
        replace(
            _value(draw, palette, several=count > 1), name=f"v{number}", nullable=not _is_unusual(draw, palette, 0.1)
        )
        for number in range(count)
    ]
    options = {
        word: Column(word, pick(draw, types), nullable=not _is_unusual(draw, palette, 0.08))
        for word, types in palette.options.items()
        if not _is_unusual(draw, palette, 0.2) or (closed and word == "f")
    }
    others = [_unmapped(draw, number) for number in range(weighted(draw, palette.others))]
    columns = [key, *values, *options.values(), *others]
    if chance(draw, 0.4):
        columns = draw(st.permutations(columns))
    if closed:
        last = columns.pop(columns.index(pick(draw, [*options.values()])))
        columns.append(replace(last, type=last.type.replace("TINYINT", "INT"), nullable=False))
    if palette.signed_not_null:
        columns = [column if column is key else _readable(column) for column in columns]
    table = _indexed(draw, Table(name, tuple(columns), primary="k"), palette)
    table = replace(table, rows=row_pool(draw, table, palette))
    index = "PRIMARY" if table.primary == "k" and not (table.unique and chance(draw, 0.5)) else "uk"
    named = {word: word if word in options else "" for word in ("f", "c", "e")}
    return MappedTable(table, "k", tuple(column.name for column in values), named["f"], named["c"], named["e"], index)


def _readable(column: Column) -> Column:
    """Return a column signed where it is unsigned and NOT NULL; see `exclusions.toml`."""
    return column if column.nullable else replace(column, type=column.type.removesuffix(" UNSIGNED"))


def _indexed(draw: DrawFn, table: Table, palette: Palette) -> Table:
    style = weighted(draw, palette.indexes)
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
    deadly = table.column("k").kind == "integer" and not palette.nullable_integer_keys
    nullable = style == "beside" and not deadly
    columns = tuple(replace(c, nullable=nullable) if c.name == "k" else c for c in columns)
    return replace(table, columns=columns, primary="id")


def _collation(draw: DrawFn, palette: Palette) -> str | None:
    charset = weighted(draw, palette.charsets)
    if not charset:
        return None
    newer = charset == "utf8mb4" and "newer" in palette.collations and chance(draw, 0.6)
    return pick(draw, palette.collations["newer" if newer else charset])


def _key(draw: DrawFn, palette: Palette) -> Column:
    if chance(draw, 0.25):
        return Column("", pick(draw, palette.key_integers), nullable=False)
    kind, width = weighted(draw, palette.key_types), weighted(draw, palette.key_widths)
    column = Column("", kind, width, _collation(draw, palette.of_keys), nullable=False)
    if palette.max_index_bytes is None:
        return column
    return replace(
        column, width=min(width, palette.max_index_bytes // _BYTES_A_CHARACTER[column.charset(palette.version)])
    )


def _value(draw: DrawFn, palette: Palette, *, several: bool) -> Column:
    kind = weighted(draw, palette.value_types)
    if kind == "VARBINARY" and several:
        kind = "BLOB"  # a list of columns may hold none: the row would be refused
    if kind == "integer":
        return Column("", pick(draw, palette.value_integers))
    collation = None if kind in {"VARBINARY", "BLOB", "LONGBLOB"} else _collation(draw, palette)
    width = weighted(draw, palette.value_widths) if kind in {"VARCHAR", "CHAR", "VARBINARY"} else None
    if kind == "CHAR":
        width = min(width or 1, 200)
    return Column("", kind, width, collation)


def _is_unusual(draw: DrawFn, palette: Palette, probability: float) -> bool:
    return palette.any_nullability and chance(draw, probability)


def _unmapped(draw: DrawFn, number: int) -> Column:
    name = f"x{number}"
    kind = pick(draw, ["INT", "VARCHAR"])
    default = pick(draw, [None, None, "5" if kind == "INT" else "'five'"])
    return Column(name, kind, 10 if kind == "VARCHAR" else None, nullable=not chance(draw, 0.12), default=default)
