"""What a scenario says, resolved for one scale: plain values that end in the run's record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kvref_bench.load.work import Keys, Values, Work


@dataclass(frozen=True, slots=True)
class Table:
    """The table behind a scenario; native memcached has items of the same keys and values instead.

    Its columns are `k` and `v` (with several value columns also `v2` and so on), with extras also `flags`, `cas` and
    `exp`.

    name: of the table in the database `kvref_bench`; mapping: of its row in `containers`.
    keys, values: what is in it when a point begins.
    extras: it has columns for flags, cas and expiry too.
    collation: of keys and values, MySQL's. In latin1_bin any byte is a character, and bytes are compared, as memcached
        does.
    procedures: bodies of stored procedures by name, with the parameters `the_key` and `the_value`, of the columns'
        types; for statements as `CALL name(:key, :value)`.
    key_type, value_type: SQL types of `k` and of each value column; "" derives them from keys and values.
    index: name of the unique index on `k`; other than PRIMARY: a secondary one, and a serial number is the primary key.
    more: definitions of further columns, each after a comma.
    statements: SQL that changes the table after it is filled; `{table}`, `{containers}` and `{options}` are the names
        of the table and of the configuration tables.
    """

    name: str
    mapping: str
    keys: Keys
    values: Values
    extras: bool = True
    collation: str = "latin1_bin"
    procedures: dict[str, str] = field(default_factory=dict)
    key_type: str = ""
    value_type: str = ""
    index: str = "PRIMARY"
    more: str = ""
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """One line of the scenario's figure.

    over: `memcached`: each endpoint given has such a line; `sql`: each SQL server given.
    work: commands of its sessions; sessions and seed are filled in for each point.
    sessions: replace the scenario's; None: the scenario's.
    settings: of the server, in place of all of the scenario's; None: the scenario's.
    needs_table: an endpoint without a table behind it (native memcached) has no such line.
    """

    name: str
    over: Literal["memcached", "sql"]
    work: Work
    sessions: tuple[int, ...] | None = None
    settings: dict[str, tuple[int, ...]] | None = None
    needs_table: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """An experiment.

    version: raised when figures from before and after must not be compared.
    question: what it answers, one sentence; source: the publication it repeats, and what it does not say.
    kind: `load`: operations by sessions; `lag`: after how long a write is seen over SQL.
    sessions: numbers of sessions to measure with.
    settings: of the server, by the plugin's own names, every combination; each combination is a start of the server.
    fresh: the table is filled again before each point, not before each combination of settings.
    processes: maximum number of load workers.
    warmup, measure, cooldown: seconds of each point; measure is the limit where sessions have a number of operations.
    repetitions: of each point; the order is repetition, settings, sessions, series and endpoints in turn.
    rates: shares of the closed loop's median operations a second at which the open loop measures; none: no open loop.
    hits: share of gets that must be answered with a value; None where it is not known before.
    trials: of kind `lag`.
    scale: `small`, `laptop` or `full`.
    sha256: of the file, the scale and what was set by hand.
    """

    name: str
    version: int
    title: str
    question: str
    source: str
    table: Table
    series: tuple[Series, ...]
    sessions: tuple[int, ...]
    kind: Literal["load", "lag"] = "load"
    settings: dict[str, tuple[int, ...]] = field(default_factory=dict)
    fresh: bool = False
    processes: int = 1
    warmup: float = 2.0
    measure: float = 10.0
    cooldown: float = 0.0
    repetitions: int = 5
    rates: tuple[float, ...] = ()
    hits: float | None = 1.0
    trials: int = 0
    scale: str = "laptop"
    sha256: str = ""
