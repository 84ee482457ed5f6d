"""A store in memory, `memory://`: the plugin's demo table in one process, for demonstrations and tests.

It has no durability, no access by SQL, no batches and no containers but the demo row. Everything
else is as over SQLite: the same code checks the configuration and compares keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cmp_to_key
from typing import Any, Final

from kvref.engine import operations
from kvref.engine.cache.memory import Policy
from kvref.engine.mapping import DEFAULT_DELIMITER, DEFAULT_SEPARATOR, Column, Directory, Mapping, Naming
from kvref.engine.operations import Cell, ListedRow, Row
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, HIT, CachedRow, written_row
from kvref.engine.values import RefusedError, to_bytes
from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.storage.base import PRIMARY, DirectStore, counted_cas_numbers
from kvref.storage.config import catalog
from kvref.storage.config.catalog import POLICY_KINDS
from kvref.storage.config.column_types import column_of
from kvref.storage.config.containers import Container, PolicyCell, Table
from kvref.storage.key_order import KeyOrder
from kvref.storage.planned_rows import Overlay, RefusedWriteError, SplitGroupError, Write, WriteKind
from kvref.storage.rows import from_sql

SCHEME: Final = "memory://"
DUPLICATE: Final = "duplicate key"
# The plugin's demo table and row (innodb_memcached_config.sql).
_CONTAINER: Final = Container("aaa", "test", "demo_test", "c1", "c2", "c3", "c4", "c5", "PRIMARY")
_COLUMNS: Final = {"c1": "VARCHAR(32)", "c2": "VARCHAR(1024)", "c3": "INT", "c4": "BIGINT UNSIGNED", "c5": "INT"}
_NAME_WIDTH: Final = 50
_MAX_ROW: Final = 4 << 10  # bytes of a row of the demo table: 1,024 characters


class MemoryStore(DirectStore):
    """Answer each operation from a dict, at once; a write is committed alone."""

    dsn = SCHEME
    reads = frozenset((PRIMARY,))

    def __init__(self, dsn: str, profile: Profile) -> None:
        self.problems: list[str] = []
        self.shared_mappings: catalog.SharedMappings | None = None
        self.when_committed: Callable[[float], None] | None = None
        if dsn != SCHEME:
            raise ConfigError(f"store {dsn!r}: write {SCHEME}: it has no path and no options")
        self._profile = profile
        self._catalog = _DemoCatalog(profile)
        self._order = self._catalog.order
        self._by_order = cmp_to_key(self._order.compare)
        self._rows: dict[Hashable, Row] = {}
        self._keys: list[Any] | None = None  # of all rows, ascending; None after a key is added or removed
        key, value = from_sql(tuple(self._catalog.columns[name] for name in ("c1", "c2")), ("AA", "HELLO, HELLO"))
        self._insert(Row(key, (value,), 8, 0, 0))

    def read_directory(self) -> Directory:
        directory, self.problems = catalog.read_directory(self._catalog, self._profile)
        return directory

    def cas_numbers(self) -> Iterator[int]:
        return counted_cas_numbers(self._profile)

    def execute(self, operation: operations.Operation) -> Any:
        """Answer one operation as `kvref.engine.operations` defines."""
        match operation:
            case operations.Lookup(_, key):
                row = self._rows.get(self.identity(key))
                return None if row is None else replace(row)  # a verb may change its copy
            case operations.ReadAlong(_, key, columns):
                row = self._rows.get(self.identity(key))
                return () if row is None else tuple(_cells(row)[column.name] for column in columns)
            case operations.Scan():
                bounds = (operation.low, operation.low_inclusive), (operation.high, operation.high_inclusive)
                return [replace(row) for row in self._between(*bounds)[: operation.limit]]
            case operations.ListRows(_, after, limit):
                rows = self._between((after, False), (None, False))[:limit]
                return [
                    ListedRow(row.key, row.expiry, row.cas, sum(map(len, map(to_bytes, row.values)))) for row in rows
                ]
            case operations.CountRows():
                return len(self._rows)
            case operations.Insert(_, row):
                return self._insert(row)
            case operations.Update(_, key, row):
                return self._update(key, row)
            case operations.Remove(_, key):
                self._rows.pop(self.identity(key), None)
                self._keys = None
            case operations.Clear():
                self._rows.clear()
                self._keys = None
            case operations.LoadMapping(name):
                return catalog.find(self._catalog, self._profile, self._catalog.naming(), name)[0]
            case operations.Recheck() | operations.Commit() | operations.RollBack() | operations.FixSnapshot():
                pass  # there is no DDL, and each write is committed
        return None

    def planned_rows(self, bound: Bound) -> MemoryRows:
        return MemoryRows(self, bound)

    def initialise(self, *, demo: bool = True) -> bool:  # noqa: ARG002 - the protocol's
        return False  # the configuration is part of the store

    def add_cache(self, name: str) -> bool:
        raise ConfigError(f"store {self.dsn}: a cache table {name!r} cannot be added")

    def follow_binary_log(self, staleness: float, mappings: Iterable[Mapping]) -> list[str]:  # noqa: ARG002
        raise ConfigError(f"store {self.dsn}: row_cache_binlog=1 needs a store mysql://, which has a binary log")

    def _insert(self, row: Row) -> str | None:
        identity = self.identity(row.key)
        if identity in self._rows:
            return DUPLICATE
        self._rows[identity] = row
        self._keys = None
        return None

    def _update(self, key: Cell, row: Row) -> str | None:
        old, new = self.identity(key), self.identity(row.key)
        if old != new and new in self._rows:
            return DUPLICATE
        if old in self._rows:
            del self._rows[old]
            self._rows[new] = row
            self._keys = None
        return None

    def _between(self, low: tuple[Cell, bool], high: tuple[Cell, bool]) -> list[Row]:
        """Return the rows between two keys in ascending order; each bound is a key, None for none, and inclusive."""
        if self._keys is None:
            self._keys = sorted(self._by_order(self._in_sql(row.key)) for row in self._rows.values())
        first, last = 0, len(self._keys)
        if low[0] is not None:
            first = (bisect_left if low[1] else bisect_right)(self._keys, self._by_order(self._in_sql(low[0])))
        if high[0] is not None:
            last = (bisect_right if high[1] else bisect_left)(self._keys, self._by_order(self._in_sql(high[0])))
        return [self._rows[self._order.identity(key.obj)] for key in self._keys[first:last]]

    def identity(self, key: Cell) -> Hashable:
        """Return what equal keys have in common; `key` is as the wire has it."""
        return self._order.identity(self._in_sql(key))

    def _in_sql(self, key: Cell) -> Cell:
        codec = self._catalog.columns["c1"].codec
        return key if codec is None else codec.to_sql(key)


class MemoryRows:
    """The rows of the only mapping, see `PlannedRows`; there is no row cache: each row is looked up."""

    rows: Final[dict[bytes, CachedRow]] = {}
    missing: Final[frozenset[bytes]] = frozenset()
    largest: Final = _MAX_ROW
    live: Final = True
    separate: Final = False

    def __init__(self, store: MemoryStore, bound: Bound) -> None:
        self._store = store
        self._bound = bound
        self._mapping = bound.mapping
        self.source = self
        self.hits = 0

    def plan_write(self, word: bytes) -> None:
        """Do nothing: no row is shown without a plan."""

    def release(self) -> None:
        """Do nothing: no row is shown without a plan."""

    def begin(self) -> bool:
        return True

    def read_many(self, words: Sequence[bytes], *, written: bool) -> Overlay:
        overlay = Overlay()
        absent: dict[object, bytes] = {}
        for word in words:
            if word in overlay.rows or word in overlay.aliases:
                continue
            try:
                cell = self._bound.key(word)
            except RefusedError:
                overlay.rows[word] = ABSENT
                continue
            found: Row | None = self._store.execute(operations.Lookup(self._mapping, cell))
            if found is None:
                key = absent.setdefault(self._store.identity(cell), word)
                overlay.rows[key] = ABSENT
            else:
                key = to_bytes(found.key)
                overlay.rows[key] = self._bound.row(key, found.values, 0, found.flags, found.cas, found.expiry)
            if key != word:
                overlay.aliases[word] = key
        if written and overlay.aliases and self._bound.rules.renames_key:
            raise SplitGroupError
        return overlay

    def apply_many(self, writes: Sequence[Write]) -> None:
        for write in writes:
            cause = self._store.execute(self._operation(write))
            if cause is not None:
                raise RefusedWriteError(cause)

    def _operation(self, write: Write) -> operations.Insert | operations.Update | operations.Remove:
        kind, word, spelled, new, _, parameters = write
        key: Cell = self._bound.key(word)
        if kind is WriteKind.DELETE:
            return operations.Remove(self._mapping, key)
        clears = self._bound.rules.clears_unmapped
        if kind is WriteKind.INSERT:
            row = written_row(self._mapping, self._bound.key(spelled), parameters)
            return operations.Insert(self._mapping, row, clears)
        before: Row = self._store.execute(operations.Lookup(self._mapping, key))
        if kind is WriteKind.RENEW:
            before.cas, before.expiry = new[CAS], new[EXPIRY]
            return operations.Update(self._mapping, key, before, clears, value_unchanged=True)
        stored = self._bound.key(spelled) if self._bound.rules.renames_key else before.key
        assert new[HIT], "an update leaves a row"
        return operations.Update(self._mapping, key, written_row(self._mapping, stored, parameters), clears)


class _DemoCatalog:
    """The configuration tables and the demo table, as the plugin's script creates them."""

    def __init__(self, profile: Profile) -> None:
        collation = str(profile["store.default_collation"])
        self.order = KeyOrder(collation)
        self.columns: dict[str, Column] = {}
        for name, declared in _COLUMNS.items():
            column = column_of(name, declared, collation, profile)
            assert column is not None, "a mapping can use each of these types"
            self.columns[name] = replace(column, nullable=name != "c1", collation=collation)

    def containers(self) -> list[Container]:
        return [_CONTAINER]

    def options(self) -> dict[str, bytes | None]:
        return {"separator": DEFAULT_SEPARATOR, "table_map_delimiter": DEFAULT_DELIMITER}

    def policies(self) -> list[PolicyCell]:
        member = [*Policy].index(Policy.TABLE) + 1
        return [PolicyCell("policy_name", "cache_policy", None)] + [
            PolicyCell(f"{kind}_policy", Policy.TABLE.value, member) for kind in POLICY_KINDS
        ]

    def naming(self) -> Naming:
        width, fold = _NAME_WIDTH, self.order.identity
        return Naming(self.columns["c1"].charset, width, lambda name: str(fold(name)), cmp_to_key(self.order.compare))

    def table(self, schema: str, name: str) -> Table | None:
        if (schema, name) != (_CONTAINER.db_schema, _CONTAINER.db_table):
            return None
        key = ("c1",)
        return Table(name, self.columns, unique={"PRIMARY": key}, order=tuple(self.columns), clustered=key)

    def to_64_bits(self, schema: str, name: str, column: str) -> str:
        raise AssertionError(f"{schema}.{name}.{column} is as wide as its use needs")


def _cells(row: Row) -> dict[str, Cell]:
    return dict(zip(_COLUMNS, (row.key, *row.values, row.flags, row.cas, row.expiry), strict=True))
