"""Invalid rows of the configuration tables: quotes, statements, NUL, wide characters, very long values."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields, replace
from typing import Final

from hypothesis import strategies as st

SENTINEL: Final = "treasure"  # a table that no row names
_HOSTILE: Final = (
    "", " ", "'", '"', "`", "''", '""', "``", "\\", "\\'", "--", "/*", "*/", ";", "%", "%s", "%(x)s", "?", ":k", "{}", "\0", "\n",
    "\r\n", "\t", "é", "\u2028", "\U0001f600", "\ufeff", "0", "NULL", "k", "v", "k,v", "v|f", "|", ",", "test.t", "t", "T",
    f"t; DROP TABLE {SENTINEL}", f"'; DROP TABLE {SENTINEL}; -- ", f'"; DELETE FROM "{SENTINEL}"; -- ',
    f"`; DELETE FROM `{SENTINEL}`; -- ", f"v FROM t; DELETE FROM {SENTINEL}; -- ", f"v) VALUES (1); DROP TABLE {SENTINEL}; -- ",
    f"k = k OR 1=1; UPDATE {SENTINEL} SET v = 0; -- ", "..", "../x", "sqlite_master", "information_schema", "mysql", "x" * 250,
    "\U0001f600" * 60, "`" * 64, "'" * 250, "a.b.c", "@@aaa", "aaa", "default", "PRIMARY", "primary", "rowid", "SELECT", "table",
)  # fmt: skip
_PIECES: Final = st.one_of(st.sampled_from(_HOSTILE), st.text(max_size=12))
TEXTS: Final = st.one_of(
    st.sampled_from(_HOSTILE),
    st.lists(_PIECES, min_size=1, max_size=3).map("".join),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=40),
).filter(lambda text: text.lower() not in (SENTINEL, f"test.{SENTINEL}"))
# Tables and columns with such names exist, so that a row can be valid.
TABLES: Final = ("t", "odd'name", 'odd"name', "odd`name", f"t; DROP TABLE {SENTINEL}", "\u00e9", "a b", "select")


@dataclass(frozen=True)
class Container:
    """A row of `containers`; None is NULL."""

    name: str
    schema: str
    table: str
    key: str
    values: str | None
    flags: str | None
    cas: str | None
    expiry: str | None
    index: str

    def values_of_row(self) -> list[str | None]:
        """Return the cells in the table's order."""
        return [
            self.name, self.schema, self.table, self.key, self.values, self.flags, self.cas, self.expiry, self.index
        ]  # fmt: skip


_GOOD: Final = st.builds(
    Container,
    st.one_of(st.sampled_from(("m", "n'", 'n"', "n`", "n;--", "\u00e9")), TEXTS),
    st.just("test"),
    st.sampled_from(TABLES),
    st.just("k"),
    st.sampled_from(("v", "v|f'", 'v,c"')),
    st.just("0"),
    st.sampled_from(("0", 'c"')),
    st.sampled_from(("0", "e`")),
    st.just("PRIMARY"),
)


@st.composite
def _spoilt(draw: st.DrawFn) -> Container:
    """Return a row with one or two cells that are not as they should be."""
    cells = [each.name for each in fields(Container)][1:]
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=2, unique=True))
    return replace(draw(_GOOD), **{cell: draw(st.one_of(TEXTS, TEXTS, st.none())) for cell in chosen})


CONTAINERS: Final = st.one_of(_GOOD, _spoilt())
OPTIONS: Final = st.one_of(
    st.just({"separator": "|", "table_map_delimiter": "."}),
    st.dictionaries(
        st.one_of(st.sampled_from(("separator", "table_map_delimiter")), TEXTS), st.one_of(TEXTS, st.none()), max_size=3
    ),
)
_ON: Final = ("innodb_only", "innodb_only", "innodb_only", "innodb_only")
_POLICY: Final = st.one_of(st.sampled_from(("innodb_only", "innodb_only", "cache_only", "caching", "disabled")), TEXTS)
POLICIES: Final = st.one_of(
    st.just([("cache_policy", *_ON)]), st.lists(st.tuples(TEXTS, _POLICY, _POLICY, _POLICY, _POLICY), max_size=2)
)


@dataclass(frozen=True)
class Configuration:
    """Rows of the three tables; `plain`: they include a usable row."""

    containers: list[Container]
    options: dict[str, str | None]
    policies: list[tuple[str, str, str, str, str]]
    plain: bool


CONFIGURATIONS: Final = st.builds(
    Configuration, st.lists(CONTAINERS, max_size=3, unique_by=lambda row: row.name), OPTIONS, POLICIES, st.booleans()
)


def frames(name: str) -> bytes:
    """Return binary requests that use a mapping in all ways, and a noop; any bytes may stand in their words."""
    word = b"@@" + name.encode() + b".key'1"
    word, number = word[:250], b"5"
    return b"".join((
        _frame(0x01, word, bytes(8), number), _frame(0x00, word), _frame(0x0E, word, b"", b"'"), _frame(0x02, word, bytes(8), b"`"),
        _frame(0x05, word, bytes(20)), _frame(0x04, word), _frame(0x00, b"@@" + name.encode()[:240]), _frame(0x08, b""),
        _frame(0x00, b"key"), _frame(0x0A, b""),
    ))  # fmt: skip


def _frame(opcode: int, key: bytes, extras: bytes = b"", value: bytes = b"") -> bytes:
    length = len(extras) + len(key) + len(value)
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, length, 77, 0) + extras + key + value


def words(name: str) -> bytes:
    """Return the same in the text protocol, for a name that has no end of a word or a line in it."""
    word = name.encode()
    lines = (
        b"bind %b",
        b"get @@%b",
        b"get @@%b.k'1",
        b"incr @@%b.k 1",
        b"delete @@%b.k'1",
        b"get @@%b.@>a",
        b"touch @@%b.k 0",
    )
    stores = b"set @@%b.k'1 0 0 1\r\n5\r\nset @@%b.k\" 3 100 2\r\n|'\r\n" % (word, word)
    return stores + b"".join(line % word + b"\r\n" for line in lines) + b"flush_all\r\n"
