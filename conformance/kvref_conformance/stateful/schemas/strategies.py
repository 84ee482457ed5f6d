"""Strategies of hypothesis: tables that the model knows, commands on them, rows of `containers`, options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from kvref_conformance.model import steps as s
from kvref_conformance.stateful.case_names import ANY_ROW, ANY_TABLE
from kvref_conformance.strategies.commands import Arguments, draw_command
from kvref_conformance.strategies.draw import chance, pick
from kvref_conformance.strategies.palette import MODELLED
from kvref_conformance.strategies.tables import draw_shape
from kvref_conformance.strategies.words import draw_key, draw_value, encoded, sendable

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from kvref_conformance.strategies.palette import Palette
    from kvref_conformance.strategies.tables import MappedTable


# The connection of the commands of each protocol.
CONNECTIONS: Final = {s.TEXT: "a", s.META: "a", s.BINARY: "b"}


@st.composite
def tables(draw: st.DrawFn, palette: Palette = MODELLED) -> MappedTable:
    """Draw a table with rows."""
    return draw_shape(draw, "t", palette, closed=False)


@st.composite
def commands(draw: st.DrawFn, mapped: MappedTable, separator: str = "|") -> list[s.Request]:
    """Draw up to ten commands on a few keys of a table, so that they meet."""
    table, key = mapped.table, mapped.key_column
    pool = [draw_key(draw, table, key, MODELLED) for _ in range(draw(st.integers(1, 3)))]
    pool += [sendable(encoded(row[table.columns.index(key)], key, MODELLED.version)) for row in table.rows]
    arguments = Arguments(
        lambda _: pick(draw, pool).decode("latin-1"),
        lambda: draw_value(draw, mapped.value_columns, separator.encode(), MODELLED).decode("latin-1"),
        {"store": 3.0, "get": 2, "delete": 1},
        {"set": 3.0, "add": 1, "replace": 1},
        words={1: 1.0, 2: 1, 3: 1},
        flags=range(10),
    )

    def command() -> s.Request:
        protocol = pick(draw, (s.TEXT, s.TEXT, s.BINARY, s.META))
        return draw_command(draw, CONNECTIONS[protocol], protocol, arguments)

    return [command() for _ in range(10) if chance(draw, 0.6)]


# Cells of a row of `containers` that are wrong, each alone; the table has the columns k, v0, w and f.
FAULTS: Final[dict[str, tuple[str | None, ...]]] = {
    "schema": ("kvc_nowhere",),
    "table": ("kvc_missing", ""),
    "key": ("nothing", "", " k", "K", "k,v0", "`k`"),
    "values": ("nothing", "", None, "V0", "v0,", "v0,nothing", "v0:w"),
    "flags": ("w",),
    "cas": ("w",),
    "expiry": ("w",),
    "index": ("", "nothing", "PRIMARY "),
}
# Cells that are odd and right.
ODDITIES: Final[dict[str, tuple[str | None, ...]]] = {
    "flags": ("0", "", "nothing", "F"),
    "cas": ("", "nothing"),
    "expiry": ("nothing",),
    "index": ("primary",),
}
Cells = dict[str, str | None]


def container_rows() -> SearchStrategy[tuple[Cells, bool]]:
    """Draw the cells of a row that are not as usual, and whether the row can be used."""
    odd, faults = _cells_of(ODDITIES, 3), _cells_of(FAULTS, 2)
    return st.tuples(odd, faults).map(lambda drawn: ({**drawn[0], **drawn[1]}, not drawn[1]))


def _cells_of(choices: dict[str, tuple[str | None, ...]], most: int) -> SearchStrategy[Cells]:
    each = st.sampled_from([(name, text) for name, texts in choices.items() for text in texts])
    return st.lists(each, max_size=most).map(dict)


DELIMITERS: Final = st.text(".:-_/|>", min_size=1, max_size=3)
SEPARATORS: Final = st.text(",;|/ #", min_size=1, max_size=3)


@st.composite
def configurations(draw: st.DrawFn, palette: Palette) -> tuple[MappedTable, list[s.Request], str, str]:
    """Draw a table, commands, and the delimiter and the separator, by which their values are joined."""
    separator = draw(SEPARATORS)
    table = draw(tables(palette).filter(lambda mapped: len(mapped.values) > 1))
    delimiter = draw(DELIMITERS)
    return table, draw(commands(table, separator)), delimiter, separator


def drawn(case: str, palette: Palette) -> SearchStrategy[tuple[Any, ...]]:
    """Return what is drawn in a case, with tables of a palette."""
    if case == ANY_TABLE:
        return tables(palette).flatmap(lambda table: st.tuples(st.just(table), commands(table)))
    return container_rows() if case == ANY_ROW else configurations(palette)
