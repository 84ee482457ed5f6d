"""The rows: which work, on which two servers, and the ratio that kvref is to reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from kvref_bench import scenario
from kvref_bench.load.drivers.memcaslap import KEY_LENGTH
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.scenario.records import Table

ServerName = Literal[
    "kvref-sqlite", "kvref-sqlite-metrics", "kvref-mysql", "kvref-mysql-level-0", "kvref-mysql-level-2",
    "plugin", "mysql", "memcached", "kvref-cached", "kvref-uncached", "plugin-logged",
    "mysql-logged", "floor", "kvref-compiled", "kvref-compiled-mysql", "kvref-workers",
]  # fmt: skip
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


@dataclass(frozen=True, slots=True)
class Side:
    """One half of a pair: which server gets which load, and what the table says of it."""

    server: ServerName
    load: Load
    what: str


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison.

    work: in the table's words. ours, theirs: the two halves. target: the ratio of ours to theirs to reach.
    unit: what is counted. durable: each write is on disk before it is answered, on both sides.
    collation: of the table, see `Table`.
    """

    name: str
    work: str
    ours: Side
    theirs: Side
    target: float
    unit: Literal["operations", "keys"] = "operations"
    durable: bool = False
    collation: str = "latin1_bin"

    def table(self, keys: int) -> Table:
        """Return the table that its servers have, `keys` rows in it; its mapping is the default one."""
        return replace(table(keys), collation=self.collation)


LEVELS: Final[tuple[tuple[int, ServerName], ...]] = ((1, "kvref-mysql"), (2, "kvref-mysql-level-2"))
SETS: Final = ((1, 64), (16, 8))  # depth and connections of binary sets


def rows() -> tuple[Row, ...]:
    """Return all rows, in the order of the table."""
    return (
        *_over_sqlite(), *_workers(), *_over_mysql(), *_levels(), *_binary(), *_cached(), _floor(), *_of_parts(),
        *_compiled(),
    )  # fmt: skip


@cache
def table(keys: int = COUNT) -> Table:
    """Return the table of most rows, see `Row.table`."""
    procedures = scenario.load(ARTICLE).table.procedures
    return Table(TABLE, "default", Keys(keys, length=KEY_LENGTH), VALUES, procedures=procedures)


def _over_sqlite() -> tuple[Row, ...]:
    mixed, work = Memcaslap(32, 0.9), "90 % get, 10 % set, 32 connections"
    demo = _mixed(32)  # memcaslap's keys are no UTF-8
    numbers = 8, 64, 512
    gets = tuple(_both(f"get-{each}", f"get, {each} connections", _ours("get", each), 1.0) for each in numbers)
    memcached = tuple(
        Row(
            f"get-{each}-memcached", f"get, {each} connections", _sqlite(get), Side("memcached", get, "memcached"), 0.75
        )
        for each, get in ((each, _ours("get", each)) for each in numbers)
    )
    sets = tuple(
        _both(
            f"set-{depth}", f"set, depth {depth}, 64 connections", _ours("set", 64, depth=depth), target, durable=True
        )
        for depth, target in ((1, 3.0), (16, 10.0))
    )
    return (
        _both("mixed-plugin", work, mixed, 2.0, durable=True),
        Row("mixed-memcached", work, _sqlite(mixed), Side("memcached", mixed, "memcached"), 0.6),
        Row(
            "mixed-demo", f"{work}, keys compared as utf8mb4_0900_ai_ci does", _sqlite(demo), _plugin(demo), 1.2,
            durable=True, collation="utf8mb4_0900_ai_ci",
        ),
        *gets,
        *memcached,
        _both("multiget", "get of 100 keys, 64 connections", _ours("get", 64, multiget=100), 1.5, unit="keys"),
        *sets,
        Row(
            "connections", "get, 2,000 connections", _sqlite(_ours("get", 2000)),
            Side("kvref-sqlite", _ours("get", 20), "itself with 20"), 0.8,
        ),
    )  # fmt: skip


def _workers() -> tuple[Row, ...]:
    """Return what two processes of kvref do where one did before."""
    mixed = _mixed(64)
    loads = (
        ("get", "get, 64 connections", _ours("get", 64), False),
        ("mixed", "90 % get, 10 % set, 64 connections", mixed, True),
        ("set", "set, depth 1, 64 connections", _ours("set", 64), True),
        ("set-16", "set, depth 16, 64 connections", _ours("set", 64, depth=16), True),
    )
    return tuple(
        Row(
            f"workers-2-{name}", work, Side("kvref-workers", load, "kvref over SQLite, 2 workers"),
            _sqlite(load, "one process"), 0.95, durable=durable,
        )
        for name, work, load, durable in loads
    )  # fmt: skip


def _over_mysql() -> tuple[Row, ...]:
    get, write, connections = _ours("get", 128), _ours("set", 128), 128
    call = scenario.load(ARTICLE).series[1].work
    procedure = Generated(
        Work(KEYS, VALUES, call.verbs, protocol="mysql", statements=call.statements, sessions=connections)
    )
    get_work, set_work = "get over MySQL, 128 connections", "set over MySQL, 128 connections"
    same = "plugin, same server"
    return (
        Row(
            "mysql-get", get_work, _mysql(get),
            Side("mysql", Sysbench(connections), "prepared selects"), 2.0,
        ),
        Row("mysql-get-plugin", get_work, _mysql(get), _plugin(get, same), 0.75),
        Row("mysql-set", set_work, _mysql(write), _plugin(write, same), 2.0, durable=True),
        *_pipelined_over_mysql("get", 1.0),
        *_pipelined_over_mysql("set", 10.0),
        Row(
            "mysql-set-sproc", set_work, _mysql(write),
            Side("mysql", procedure, "prepared stored procedure"), 5.0, durable=True,
        ),
    )  # fmt: skip


def _pipelined_over_mysql(verb: str, target: float) -> tuple[Row, ...]:
    loads = [(depth, _ours(verb, 8, depth=depth)) for depth in (16, 64)]
    return tuple(
        Row(
            f"mysql-{verb}-{depth}", f"{verb} over MySQL, depth {depth}, 8 connections", _mysql(load),
            _plugin(load, "plugin, same server"), target, durable=verb == "set",
        )
        for depth, load in loads
    )  # fmt: skip


def _levels() -> tuple[Row, ...]:
    """Return what committed reads cost over MySQL, at the default level and at 2, compared with uncommitted ones."""
    dirty = "itself at innodb_api_trx_level=0"
    pipelined, ten = _ours("get", 8, depth=16), _ours("get", 8, depth=16, multiget=10)
    loads: tuple[tuple[str, str, Load, Literal["operations", "keys"]], ...] = (
        ("get", "get over MySQL, 128 connections", _ours("get", 128), "operations"),
        ("get-16", "get over MySQL, depth 16, 8 connections", pipelined, "operations"),
        ("multiget-16", "get of 10 keys over MySQL, depth 16, 8 connections", ten, "keys"),
    )
    return tuple(
        Row(
            f"level-{level}-{name}", work, Side(ours, load, f"kvref, level {level}"),
            Side("kvref-mysql-level-0", load, dirty), 0.95, unit,
        )
        for level, ours in LEVELS
        for name, work, load, unit in loads
    )  # fmt: skip


def _binary() -> tuple[Row, ...]:
    """Return gets and sets of the binary protocol; several keys are quiet gets with a noop behind them."""
    get = Generated(Work(KEYS, VALUES, {"get": 1.0}, protocol="binary", sessions=64))
    many = Generated(replace(get.work, multiget=100))
    writes = [(depth, replace(get.work, verbs={"set": 1.0}, sessions=each, depth=depth)) for depth, each in SETS]
    get_work, keys_work = "binary get, 64 connections", "100 quiet binary gets, 64 connections"
    same = "plugin, same server"
    return (
        _both("binary-get", get_work, get, 1.0),
        _both("binary-multiget", keys_work, many, 1.0, unit="keys"),
        Row("mysql-binary-get", f"{get_work}, over MySQL", _mysql(get), _plugin(get, same), 0.75),
        Row("mysql-binary-multiget", f"{keys_work}, over MySQL", _mysql(many), _plugin(many, same), 0.75, unit="keys"),
        *(
            Row(
                f"mysql-binary-set-{depth}", f"binary set over MySQL, depth {depth}, {work.sessions} connections",
                _mysql(Generated(work)), _plugin(Generated(work), same), 2.0, durable=True,
            )
            for depth, work in writes
        ),
    )  # fmt: skip


def _cached() -> tuple[Row, ...]:
    """Return what the row cache over MySQL makes of gets, all on one mysqld with a binary log."""
    get, keys = _ours("get", 128), _ours("get", 64, multiget=100)
    get_work, keys_work = "get over MySQL with a binary log, 128 connections", "get of 100 keys over it, 64 connections"
    plugin = "plugin, same server"
    return (
        Row("cached-get", get_work, _row_cache(get), Side("kvref-uncached", get, "itself without a cache"), 1.0),
        Row("cached-get-plugin", get_work, _row_cache(get), Side("plugin-logged", get, plugin), 1.0),
        Row(
            "cached-get-select", get_work, _row_cache(get),
            Side("mysql-logged", Sysbench(128), "prepared selects"), 3.0,
        ),
        Row(
            "cached-multiget-plugin", keys_work, _row_cache(keys), Side("plugin-logged", keys, plugin), 2.0,
            unit="keys",
        ),
    )  # fmt: skip


def _floor() -> Row:
    """Return what any server on uvloop could reach of the row that is furthest from its target."""
    mixed = Memcaslap(32, 0.9)
    ours = Side("floor", mixed, "a dictionary behind uvloop")
    return Row("floor", "90 % get, 10 % set, 32 connections", ours, Side("memcached", mixed, "memcached"), 0.75)


def _of_parts() -> tuple[Row, ...]:
    """Return what a part costs: metrics that are scraped, and this package's generator compared with memcaslap."""
    get, mixed = _ours("get", 64), Memcaslap(64, 0.9)
    work = _mixed(64).work
    theirs = Side("memcached", mixed, "memcaslap")
    return (
        Row(
            "metrics", "get, 64 connections, with --metrics", Side("kvref-sqlite-metrics", get, "scraped each second"),
            Side("kvref-sqlite", get, "itself without"), 0.9,
        ),
        *(
            Row(
                f"generator-{depth}", "90 % get, 10 % set, 64 connections, memcached",
                Side("memcached", Generated(replace(work, depth=depth)), f"this generator, depth {depth}"),
                theirs, target,
            )
            for depth, target in ((1, 0.9), (16, 2.0))
        ),
    )  # fmt: skip


def _compiled() -> tuple[Row, ...]:
    """Return what the build gains that `.ci/build venv` makes."""
    get, write, many = _ours("get", 64), _ours("set", 64, depth=16), _ours("get", 64, multiget=100)
    of_sqlite = (
        ("mixed", "90 % get, 10 % set, 32 connections", Memcaslap(32, 0.9)),
        ("get-64", "get, 64 connections", get),
        ("multiget", "get of 100 keys, 64 connections", many),
        ("set-16", "set, depth 16, 64 connections", write),
    )
    of_mysql = (
        ("mysql-get", "get over MySQL, 128 connections", _ours("get", 128)),
        ("mysql-set", "set over MySQL, 128 connections", _ours("set", 128)),
    )
    compiled, interpreted = "kvref, compiled", "interpreted"
    return (
        *(
            Row(f"compiled-{name}", work, Side("kvref-compiled", load, compiled), _sqlite(load, interpreted), 1.0)
            for name, work, load in of_sqlite
        ),
        *(
            Row(f"compiled-{name}", work, Side("kvref-compiled-mysql", load, compiled), _mysql(load, interpreted), 1.0)
            for name, work, load in of_mysql
        ),
    )


def _ours(verb: str, sessions: int, depth: int = 1, multiget: int = 1) -> Generated:
    return Generated(Work(KEYS, VALUES, {verb: 1.0}, sessions=sessions, depth=depth, multiget=multiget))


def _mixed(sessions: int) -> Generated:
    return Generated(Work(KEYS, VALUES, {"get": 0.9, "set": 0.1}, sessions=sessions))


def _both(
    name: str, work: str, load: Load, target: float, *, unit: Literal["operations", "keys"] = "operations",
    durable: bool = False,
) -> Row:  # fmt: skip
    return Row(name, work, _sqlite(load), _plugin(load), target, unit, durable)


def _sqlite(load: Load, what: str = "kvref over SQLite") -> Side:
    return Side("kvref-sqlite", load, what)


def _mysql(load: Load, what: str = "kvref over MySQL") -> Side:
    return Side("kvref-mysql", load, what)


def _row_cache(load: Load) -> Side:
    return Side("kvref-cached", load, "kvref, row_cache_binlog=1")


def _plugin(load: Load, what: str = "plugin") -> Side:
    return Side("plugin", load, what)
