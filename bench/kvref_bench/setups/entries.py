"""The set-ups of `setups.toml`: how each differs from the demo table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from kvref import documents
from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.pairs.rows import values_of
from kvref_bench.scenario.records import Table

FILE: Final = Path(__file__).with_name("setups.toml")
# The collation of the demo table that `kvref init --demo` makes in each store.
COLLATIONS: Final = {"sqlite": "NOCASE", "mysql": "utf8mb4_0900_ai_ci"}
STORES: Final = {"sqlite": "SQLite", "mysql": "MySQL 8.0.33"}
DEMO: Final = "demo"
MAPPING: Final = "default"
VERBS: Final = ("get", "set")
KEY_BYTES: Final = 16
SESSIONS: Final = 8
DEPTH: Final = 16
POOL: Final = 1 << 14  # requests, which the generator encodes before each measurement
LIMIT: Final = 1.5
LOGIN: Final = "bench:bench"


@dataclass(frozen=True, slots=True)
class Setup:
    """One set-up.

    name: in options and tables. what: in a phrase. stores: in which it can be.
    limit: largest acceptable ratio of its CPU time to that of the demo table.
    options: of `kvref serve`; `{metrics}` is an address whose metrics are read each second.
    listener: keys of its `[[listener]]`; `{folder}` has the files `users` and `certificate.pem`. Clients authenticate
        if there is an `auth_file`, and use TLS if there is a `tls_cert`.
    table, keys, values, work: fields of these classes that are not those of the demo table.
    """

    name: str
    what: str
    stores: tuple[str, ...] = tuple(STORES)
    limit: float = LIMIT
    options: tuple[str, ...] = ()
    listener: dict[str, Any] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    work: dict[str, Any] = field(default_factory=dict)

    def made(self, store: str, count: int) -> Table:
        """Return its table with so many rows."""
        given = {"collation": COLLATIONS[store], "key_type": "VARCHAR(32)", **self.table}
        # The database has the options of the set-up before.
        delimiter = self.requests(count, "get").delimiter
        restored = f"UPDATE {{options}} SET value = '{delimiter}' WHERE name = 'table_map_delimiter'"  # noqa: S608 - data
        statements = (restored, *given.pop("statements", ()))
        name = DEMO if self.name == DEMO else "setup"
        return Table(name, MAPPING, self._keys(count), self._values, statements=statements, **given)

    def requests(self, count: int, verb: str, seed: int = 0) -> Work:
        """Return the requests of one verb for a table with so many rows."""
        fixed = Work(self._keys(count), self._values, {verb: 1.0}, mapping=MAPPING, sessions=SESSIONS, depth=DEPTH)
        return replace(fixed, pool=POOL, seed=seed, **self.work)

    def _keys(self, count: int) -> Keys:
        # With a write batch, sessions with the same keys would wait for each other.
        return replace(Keys(count, length=KEY_BYTES, apart=True), **self.keys)

    @property
    def _values(self) -> Values:
        return values_of(self.values)


@cache
def setups() -> tuple[Setup, ...]:
    """Return all set-ups, in the order of the table; the demo table is the first."""
    given = documents.read_toml(FILE)["setup"]
    lists = ("stores", "options")
    return tuple(Setup(**{**each, **{name: tuple(each[name]) for name in lists if name in each}}) for each in given)


@cache
def left_out() -> dict[str, str]:
    """Return why an option or a setting of `kvref serve` is in no set-up, by its name."""
    found: dict[str, str] = documents.read_toml(FILE)["left_out"]
    return found


def chosen(names: str | None, stores: tuple[str, ...]) -> dict[str, list[Setup]]:
    """Return the set-ups NAME[,NAME…] of each store; None: all. Raises BenchError for a name that none has."""
    known = setups()
    wanted = [each.name for each in known] if names is None else names.split(",")
    if unknown := [name for name in wanted if all(name != each.name for each in known)]:
        raise BenchError(f"no set-ups {', '.join(unknown)}: choose among {', '.join({e.name: None for e in known})}")
    return {store: [each for each in known if each.name in wanted and store in each.stores] for store in stores}
