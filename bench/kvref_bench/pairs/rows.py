"""The rows of `rows.toml`: which work, on which two servers, and the ratio that kvref is to reach."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from kvref import documents
from kvref_bench import scenario
from kvref_bench.errors import BenchError
from kvref_bench.load.drivers import KEY_LENGTH
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.scenario.records import Table

FILE: Final = Path(__file__).with_name("rows.toml")
COUNT: Final = 100_000
VALUE: Final = 100  # bytes
KEYS: Final = Keys(COUNT, length=KEY_LENGTH)
VALUES: Final = Values((VALUE, VALUE))
# Seed article 004 and the scenario of it have the procedure; its body names the table.
ARTICLE: Final = "set-vs-sproc"
TABLE: Final = "demo"
SELECT: Final = f"SELECT v FROM {TABLE} WHERE k = ?"  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True)
class Generated:
    """Load of the benchmark's own generator; each answer is compared byte by byte.

    work: its keys are those of the table.
    """

    work: Work


@dataclass(frozen=True, slots=True)
class Memcaslap:
    """Load of memcaslap. connections: how many. gets: share of gets, 0 to 1; the others are sets."""

    connections: int
    gets: float


@dataclass(frozen=True, slots=True)
class Sysbench:
    """Prepared selects of sysbench. connections: how many, each with a thread. statement: what is prepared."""

    connections: int
    statement: str = SELECT


Load = Generated | Memcaslap | Sysbench
BY: Final = {"memcaslap": Memcaslap, "sysbench": Sysbench}


@dataclass(frozen=True, slots=True)
class Side:
    """One half of a pair: which server gets which load, and what the table says of it."""

    server: str
    load: Load
    what: str


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison.

    work: in the table's words. ours, theirs: the two halves. target: the ratio of ours to theirs to reach.
    unit: what is counted. durable: each write is on disk before it is answered, on both sides.
    collation: of the table, see `Table`. columns, keys, values: further fields of its `Table`, `Keys` and `Values`.
    """

    name: str
    work: str
    ours: Side
    theirs: Side
    target: float
    unit: Literal["operations", "keys"] = "operations"
    durable: bool = False
    collation: str = "latin1_bin"
    columns: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def table(self, keys: int) -> Table:
        """Return the table that its servers have, `keys` rows in it; its mapping is the default one."""
        common = table(keys)
        of = replace(common.keys, **self.keys)
        return replace(common, collation=self.collation, keys=of, values=values_of(self.values), **self.columns)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a server is made.

    what: it is in the table's words. kind: `kvref`, `mysqld` (with the plugin), `sql` (the same over SQL, through its
    socket), `memcached` or `floor`. over: the server behind it; "": kvref has a SQLite file.
    options: of `kvref serve`, or of the server. other: of another environment.
    scraped: its metrics are read each second.
    """

    what: str
    kind: str = "kvref"
    over: str = ""
    options: tuple[str, ...] = ()
    other: bool = False
    scraped: bool = False


@cache
def recipes() -> dict[str, Recipe]:
    """Return the servers by name."""
    given = documents.read_toml(FILE)["server"]
    return {name: Recipe(**{**each, "options": tuple(each.get("options", ()))}) for name, each in given.items()}


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows, in the order of the table."""
    return tuple(_row(each) for each in documents.read_toml(FILE)["row"])


def chosen(names: str | None) -> list[Row]:
    """Return the rows NAME[,NAME…]; None: all. Raises BenchError for a name that no row has."""
    known = {row.name: row for row in rows()}
    if names is None:
        return list(known.values())
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        raise BenchError(f"no rows {', '.join(unknown)}: choose among {', '.join(known)}")
    return [known[name] for name in names.split(",")]


@cache
def table(keys: int = COUNT) -> Table:
    """Return the table of most rows, see `Row.table`."""
    procedures = scenario.load(ARTICLE).table.procedures
    return Table(TABLE, "default", Keys(keys, length=KEY_LENGTH), VALUES, procedures=procedures)


def _row(given: dict[str, Any]) -> Row:
    given = dict(given)
    servers, load = given.pop("servers"), given.pop("load")
    what = given.pop("what", [recipes()[name].what for name in servers])
    values = values_of(given.get("values", {}))
    loads = _load(load, values), _load(given.pop("other", load), values)
    ours, theirs = (Side(*each) for each in zip(servers, loads, what, strict=True))
    return Row(ours=ours, theirs=theirs, **given)


def _load(given: dict[str, Any], values: Values) -> Load:
    options = dict(given)
    by = options.pop("by", None)
    return Generated(Work(KEYS, values, **options)) if by is None else BY[by](**options)


def values_of(given: dict[str, Any]) -> Values:
    """Return the values of a row or set-up: `size` in bytes, VALUE if not given, and other fields of `Values`."""
    given = dict(given)
    size = given.pop("size", VALUE)
    return Values((size, size), **given)
