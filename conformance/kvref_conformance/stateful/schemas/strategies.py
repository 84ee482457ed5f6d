"""Strategies of hypothesis: tables, rows, commands with keys around every limit, rows of `containers`, options.

Excluded is what ends a plugin server or returns uninitialized memory (`deviations/defects.toml`): unsigned and unusual
integer columns as values, `append` and `incr`, NUL bytes, ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from kvref_conformance.case import Shape
from kvref_conformance.model import steps as s
from kvref_conformance.sql.columns import Column

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from kvref_conformance.sql.columns import Cell

# Collations of key columns that 5.6 and 8.0 both have; "e", "é" and "É" are one letter to those that end in _ci.
COLLATIONS: Final = (
    "utf8mb4_general_ci",
    "utf8mb4_bin",
    "utf8_general_ci",
    "utf8_unicode_ci",
    "utf8_bin",
    "latin1_swedish_ci",
    "latin1_bin",
)
LETTERS: Final = "aAbeEéÉ1 "
KEY_INTEGERS: Final = ("TINYINT", "TINYINT UNSIGNED", "SMALLINT", "INT", "INT UNSIGNED", "BIGINT")
VALUE_INTEGERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
FLAGS: Final = Column("f", "INT")
# These bytes, which are not UTF-8, represent a key or value that the table cannot show.
BROKEN: Final = ("\xff", "a\xff", "\xc3", "b\xe9a")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A table with its rows.

    Args:
        key: key column.
        values: value columns, in the order of the list.
        order: names of all columns in the order of the table.
        rows: key, value cells and flags, as SQL inserts them.
    """

    key: Column
    values: tuple[Column, ...]
    order: tuple[str, ...]
    rows: tuple[tuple[Cell, tuple[Cell, ...], int | None], ...]

    @property
    def shape(self) -> Shape:
        """Return the table as a case would write it."""
        columns = {column.name: column.sql() for column in (self.key, *self.values, FLAGS)}
        listed = ", ".join(columns[name] for name in self.order)
        names = ",".join(column.name for column in self.values)
        return Shape(f"{listed}, PRIMARY KEY (k)", names, cas="0", expiry="0")


def _text_columns(name: str, widths: tuple[int, ...], *, nullable: bool) -> SearchStrategy[Column]:
    return st.builds(
        Column,
        st.just(name),
        st.just("VARCHAR"),
        st.sampled_from(widths),
        st.sampled_from(COLLATIONS),
        nullable=st.just(nullable),
    )


KEY_COLUMNS: Final = st.one_of(
    _text_columns("k", (1, 2, 5, 32, 60), nullable=False),
    st.sampled_from(KEY_INTEGERS).map(lambda kind: Column("k", kind, nullable=False)),
)


def _value_columns(count: int) -> SearchStrategy[tuple[Column, ...]]:
    def column(name: str) -> SearchStrategy[Column]:
        return st.one_of(
            _text_columns(name, (1, 3, 8, 40), nullable=True),
            st.builds(Column, st.just(name), st.sampled_from(VALUE_INTEGERS)),
        )

    return st.tuples(*(column(f"v{number}") for number in range(count)))


@st.composite
def tables(draw: st.DrawFn) -> Drawn:
    """Draw a table: key column, one to four value columns in any order, up to three rows with NULL among them."""
    key = draw(KEY_COLUMNS)
    values = draw(st.sampled_from((1, 4, 2, 3, 4)).flatmap(_value_columns))
    order = draw(st.permutations(["k", *(column.name for column in values), "f"]))
    listed = draw(st.permutations(values))
    row = st.tuples(
        _cells(key),
        st.tuples(*(st.one_of(st.none(), _cells(column)) for column in listed)),
        st.one_of(st.none(), st.integers(0, 9)),
    )
    return Drawn(key, tuple(listed), tuple(order), tuple(draw(st.lists(row, max_size=3))))


def _cells(column: Column) -> SearchStrategy[Cell]:
    """Draw contents that fit a column."""
    if column.kind == "integer":
        low, high = column.limits
        return st.sampled_from((low, high, low + 1, high - 1, 0, 1, 5)).filter(lambda number: low <= number <= high)
    texts = st.text("aAbeEéÉ1", min_size=0 if column.nullable else 1, max_size=column.width)
    return st.one_of(texts, st.just("a" * (column.width or 1)))


def _sent(column: Column, text: str) -> str:
    charset = "latin-1" if (column.collation or "").startswith("latin1") else "utf-8"
    return text.encode(charset).decode("latin-1")


def keys(column: Column) -> SearchStrategy[str]:
    """Draw words for a key column, as bytes: valid ones, ones just beyond a limit, and other spellings of the same."""
    fitting = _cells(column).filter(lambda cell: cell != "").map(lambda cell: _spelled(column, cell))
    if column.kind == "integer":
        low, high = column.limits
        edges = st.sampled_from((low - 1, low, -1, 0, high, high + 1)).map(str)
        odd = st.sampled_from(("001", "+1", "005", "+5", "5abc", "5.5", "abc", "--5"))
        return st.one_of(fitting, fitting, fitting, edges, odd)
    width = column.width or 1
    edges = st.sampled_from((max(1, width - 1), width, width + 1)).flatmap(
        lambda size: st.text("aAbeEéÉ1", min_size=size, max_size=size).map(lambda text: _sent(column, text))
    )
    broken = edges if (column.collation or "").startswith("latin1") else st.sampled_from(BROKEN)
    return st.one_of(fitting, fitting, fitting, edges, edges, broken)


def _parts(column: Column) -> SearchStrategy[str]:
    if column.kind == "integer":
        low, high = column.limits
        numbers = st.sampled_from((low - 1, low, -1, 0, 7, high, high + 1)).map(str)
        return st.one_of(numbers, numbers, st.sampled_from(("", "x", "12ab", "1.5", "007")))
    width = column.width or 1
    sizes = st.sampled_from(sorted({0, 1, max(0, width - 1), width, width + 1}))
    texts = sizes.flatmap(lambda size: st.text(LETTERS, min_size=size, max_size=size)).map(
        lambda text: _sent(column, text)
    )
    if (column.collation or "").startswith("latin1"):
        return texts
    return st.one_of(texts, texts, texts, st.sampled_from(BROKEN))


def values(columns: tuple[Column, ...], separator: str) -> SearchStrategy[str]:
    """Draw a value: parts that fit, as often with odd ones among them; fewer and more parts than columns."""
    fitting = st.tuples(*map(_fitting_parts, columns)).map(list)
    odd = st.tuples(*map(_parts, columns)).map(list)
    fewer = fitting.flatmap(lambda parts: st.integers(0, len(parts)).map(lambda count: parts[:count]))
    more = fitting.map(lambda parts: [*parts, "m"])
    return st.one_of(fitting, fitting, fitting, odd, fewer, more).map(separator.join)


def _fitting_parts(column: Column) -> SearchStrategy[str]:
    return _cells(column).map(lambda cell: str(cell) if isinstance(cell, int) else _sent(column, str(cell)))


@st.composite
def commands(draw: st.DrawFn, table: Drawn, separator: str = "|") -> list[s.Request]:
    """Draw up to ten commands on a few keys of a table, so that they meet."""
    pool = draw(st.lists(keys(table.key), min_size=1, max_size=3))
    word = st.sampled_from([*pool, *(_spelled(table.key, row[0]) for row in table.rows)])
    on = st.just("a")
    verb = st.sampled_from(("set", "set", "set", "add", "replace"))
    store = st.builds(s.Store, on, verb, word, values(table.values, separator), st.integers(0, 9))
    get = st.builds(s.Get, on, st.lists(word, min_size=1, max_size=3).map(tuple))
    delete = st.builds(s.Delete, on, word)
    return draw(st.lists(st.one_of(store, store, store, get, get, delete), min_size=1, max_size=10))


def _spelled(column: Column, key: Cell) -> str:
    return str(key) if isinstance(key, int) else _sent(column, str(key))


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
def configurations(draw: st.DrawFn) -> tuple[str, str, Drawn, list[s.Request]]:
    """Draw delimiter, separator, a table and commands whose values are joined by that separator."""
    separator = draw(SEPARATORS)
    table = draw(tables().filter(lambda table: len(table.values) > 1))
    return draw(DELIMITERS), separator, table, draw(commands(table, separator))
