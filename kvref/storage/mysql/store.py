"""The InnoDB store: mapped tables of a MySQL or MariaDB server; `connection.py` is one connection to it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from typing import Any, Final
from weakref import WeakSet

from kvref.engine.mapping import Directory, Mapping
from kvref.engine.operations import LoadMapping, Operation, Recheck
from kvref.errors import ConfigError, StoreError
from kvref.profiles import Profile
from kvref.storage.base import PRIMARY, READS, counted_cas_numbers
from kvref.storage.config.containers import update_mapping
from kvref.storage.isolation import READ_COMMITTED, Isolation
from kvref.storage.mysql import vitess
from kvref.storage.mysql.binlog.eligibility import terms
from kvref.storage.mysql.binlog.follower import refusal
from kvref.storage.mysql.binlog.row_cache import RowCache
from kvref.storage.mysql.cluster import SECONDARY_SECONDS, Secondaries
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.database import Database
from kvref.storage.mysql.login import Login
from kvref.storage.mysql.mapped_table import MappedTable, Version
from kvref.storage.mysql.schema import KnownTables
from kvref.storage.rows import MAX_STATEMENTS, PerMapping

_log = logging.getLogger("kvref.storage")

COMMITTED: Final = Isolation(READ_COMMITTED)
_GROUP: Final = "SHOW GLOBAL VARIABLES LIKE 'group_replication_group_name'"


@dataclass(slots=True)
class ReplicaCounts:
    """Keys of gets, by what has answered them.

    Args:
        gets: a secondary.
        behind: the primary, because the secondary had not executed the connection's last write in time.
        unavailable: the primary, because no secondary could be read.
    """

    gets: int = 0
    behind: int = 0
    unavailable: int = 0


class MySQLStore(Database):
    """The tables of one server; arguments as of `Database`."""

    def __init__(self, login: Login, profile: Profile, lock_wait: float) -> None:
        super().__init__(login, profile, lock_wait)
        self.dsn = login.text
        # Only with reads=session, servers report GTIDs.
        self.reads = frozenset(READS[: READS.index(login.reads) + 1])
        self.problems: list[str] = []
        self.tables = PerMapping(self._mapped_table)
        self._version = Version()
        # The first mapping that differs from this one in nothing.
        self.canonical = PerMapping(lambda mapping: self._canonical.setdefault(_field_values(mapping), mapping))
        self._canonical: dict[tuple[object, ...], Mapping] = {}
        self._mappings: WeakSet[Mapping] = WeakSet()
        self.row_cache: RowCache | None = None  # where rows are kept for gets
        self._row_cache_bytes = 0
        self.replica_counts: ReplicaCounts | None = None if login.reads == PRIMARY else ReplicaCounts()

    def reads_for(self, listener: str) -> str:
        """Return the server of a listener's plain gets: its own value of `reads` if the DSN allows it, or the DSN's."""
        return listener if listener in self.reads else self.login.reads

    def connect(self, isolation: Isolation = COMMITTED, *, brief: bool = False) -> MySQLConnection:
        """Open a connection, see `MySQLConnection`; raises StoreError where the server is not reached."""
        return MySQLConnection(self, isolation, brief=brief)

    def initialise(self, *, demo: bool = True) -> bool:
        with closing(self.connect()) as opened:
            return opened.create_schema(demo=demo)

    def add_cache(self, name: str) -> bool:
        with closing(self.connect()) as opened:
            return opened.create_cache(name)

    def limit_row_cache(self, size: int, *, keeps_rows: bool = False) -> None:  # noqa: ARG002 - none are kept
        self._row_cache_bytes = size
        if self.row_cache is not None:
            self.row_cache.clear()
            self.row_cache.limit = size

    def follow_binary_log(self, staleness: float, mappings: Iterable[Mapping]) -> list[str]:
        if reason := refusal(self.login):
            raise ConfigError(f"store {self.dsn}: the row cache {reason}")
        self.row_cache = RowCache(self._row_cache_bytes, staleness)
        with closing(self.connect()) as opened:
            found = [(mapping, terms(opened.query, mapping, staleness)) for mapping in mappings]
        return [
            f"mapping {mapping.name!r}: rows of {mapping.source} are not cached: {each.refusal}"
            for mapping, each in found
            if each.refusal
        ]

    def missing_privileges(self, mappings: Iterable[Mapping]) -> list[str]:
        with closing(self.connect()) as opened:
            found = [(mapping, opened.missing_privileges(mapping)) for mapping in mappings]
        return [f"mapping {mapping.name!r}: {each}" for mapping, each in found if each]

    def numbers(self) -> dict[str, int]:
        cached = {} if self.row_cache is None else self.row_cache.numbers()
        replica = {} if self.replica_counts is None else asdict(self.replica_counts)
        return {f"row_cache_{name}": number for name, number in cached.items()} | {
            f"replica_{name}": number for name, number in replica.items()
        }

    def close(self) -> None:
        """Stop monitoring the servers; the callers that opened connections close them."""
        self.nodes.close()

    def read_directory(self) -> Directory:
        if self.login.reads != PRIMARY:
            with closing(self.connect()) as opened:
                require_group(opened, self)
        directory, self.problems = self.load_directory()
        return self.adopt(directory)

    def load_directory(self) -> tuple[Directory, list[str]]:
        """Read the configuration and change no mapping, so that any thread may; raises as `read_directory`.

        Waits up to 3.1 s for tablets of Vitess that replace their connections to a restarted database.
        """
        for pause in vitess.PAUSES:
            try:
                return self._load_directory()
            except StoreError as error:
                if not vitess.is_transient(error):
                    raise
                _log.warning("store %s: %s: next attempt in %g s", self.dsn, error, pause)
            time.sleep(pause)
        return self._load_directory()

    def _load_directory(self) -> tuple[Directory, list[str]]:
        known: KnownTables = {}
        with closing(MySQLConnection(self, COMMITTED, known=known)) as opened:
            found = opened.read_directory()
        self.known = known  # where nothing can be read, the connections in use stay
        return found

    def adopt(self, directory: Directory) -> Directory:
        """Take over a configuration that was read, in the thread of all commands."""
        self.naming = directory.naming
        self.track(directory.default)
        return directory

    def cas_numbers(self) -> Iterator[int]:
        return counted_cas_numbers(self.profile)

    def track(self, mapping: Mapping) -> None:
        """Keep a mapping up to date with its table."""
        self._mappings.add(mapping)

    def apply_schema_result(self, operation: Operation, answer: Any) -> None:
        """Remember what an answer of a connection says about mappings, in the thread of all commands."""
        if isinstance(operation, Recheck):
            self.update_mappings(answer)
        elif isinstance(operation, LoadMapping) and answer is not None:
            self.track(answer)

    def mappings_in_use(self) -> list[Mapping]:
        return list(self._mappings)

    def update_mappings(self, seen: list[tuple[Mapping, Mapping | ConfigError]]) -> None:
        """Bring mappings up to date with what a connection saw of their tables."""
        before = [_field_values(mapping) for mapping, _ in seen]
        for mapping, found in seen:
            update_mapping(mapping, found)
        changed = before != [_field_values(mapping) for mapping, _ in seen]
        # Each connection may have read its own mapping, which must not outlive it.
        self.statements.clear()
        self.canonical.clear()
        if changed or len(self._canonical) > MAX_STATEMENTS:
            self.tables.clear()
            self._version.live = False
            self._version = Version()
            self._canonical.clear()

    def _mapped_table(self, mapping: Mapping) -> MappedTable:
        return MappedTable(mapping, self.statements(mapping), self._version)


class Replicas(Database):
    """The secondaries of a replication group, for reading rows."""

    def __init__(self, primary: Database) -> None:
        super().__init__(primary.login, primary.profile, SECONDARY_SECONDS)
        self.nodes = Secondaries(primary.login)
        self.reply_timeout = SECONDARY_SECONDS
        self.statements = primary.statements
        self._primary = primary

    def record_and_compare_columns(self, mapping: Mapping, part: str, shape: object) -> bool:
        """Return whether the primary has described the columns in the same way; a secondary may lag behind its DDL."""
        return self._primary.columns(mapping, part) == shape


def require_group(connection: MySQLConnection, store: MySQLStore) -> None:
    """Raise ConfigError if a server belongs to no replication group."""
    rows = connection.query(_GROUP)
    if not rows or not rows[0][1]:
        server = "MySQL" if connection.mariadb is None else "MariaDB"
        raise ConfigError(
            f"store {store.login.text}: reads={store.login.reads} needs a MySQL replication group, and this"
            f" {server} server is in none: leave reads out"
        )


def _field_values(mapping: Mapping) -> tuple[object, ...]:
    return tuple([getattr(mapping, each.name) for each in fields(mapping)])
