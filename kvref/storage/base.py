"""The interface of a store, DSNs, and the description of a scheme by which a store registers itself in `stores.py`."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from kvref.engine.mapping import Directory, Mapping
from kvref.engine.operations import Operation
from kvref.engine.plans.bound import Bound
from kvref.profiles import Profile
from kvref.storage.config.catalog import SharedMappings
from kvref.storage.planned_rows import PlannedRows

MYSQL: Final = "mysql://"
# Which servers of a replication group answer plain gets, see `kvref.storage.mysql.login.Login.reads`.
PRIMARY: Final = "primary"
REPLICA: Final = "replica"
SESSION: Final = "session"
READS: Final = (PRIMARY, REPLICA, SESSION)
_IN_QUERY: Final = re.compile(r"([?&](?:password|passwd|pwd)=)[^&]*", re.IGNORECASE)


def without_password(dsn: str) -> str:
    """Return a DSN for messages: everything that is or may be a password is removed."""
    dsn = _IN_QUERY.sub(r"\1…", dsn)
    head, at, tail = dsn.rpartition("@")
    scheme, slashes, login = (head or tail).partition("://")
    user, colon, word = login.partition(":")
    if not at and word.rstrip("/").isdecimal():
        return dsn  # a port
    return f"{scheme}{slashes}{user}:…{at}{tail if at else ''}" if colon else dsn


class MappedTables(Protocol):
    """Mapped tables, as the server uses them: of one store or of several.

    Attributes:
        dsn: its DSN without a password, for messages.
        reads: the values of `reads` that a listener may have, of READS.
        problems: one sentence for each configuration row that the last `read_directory` could not use.
        when_committed: called with the duration of each commit in seconds, in any thread.
    """

    dsn: str
    reads: frozenset[str]
    problems: list[str]
    when_committed: Callable[[float], None] | None

    def read_directory(self) -> Directory:
        """Read the configuration and set `problems`; raises ConfigError if no row is usable, and StoreError."""

    def adopt(self, directory: Directory) -> Directory:
        """Use a configuration that another process or thread has read, and return it."""
        return directory

    def cas_numbers(self) -> Iterator[int]:
        """Return the counter of cas numbers, by the fact `cas.start`."""

    def limit_row_cache(self, size: int, *, keeps_rows: bool = False) -> None:  # noqa: ARG002 - for stores with a cache
        """Empty the row cache and set its maximum size in bytes; a store without a cache does nothing.

        With `keeps_rows`, commands mean what they meant before: rows may stay, for mappings that are the same.
        """
        return

    def follow_binary_log(self, staleness: float, mappings: Iterable[Mapping]) -> list[str]:
        """Cache rows that are read, and drop those that the binary log of the database names.

        Args:
            staleness: seconds by which a row may be out of date; 0: no get misses a commit that was answered before it.
            mappings: the mappings in use.

        Returns:
            One sentence for each of them whose rows are not cached.

        Raises:
            ConfigError: the store has no binary log, or this one does not have what is needed.
            StoreError: the store is not reached.
        """

    def missing_privileges(self, mappings: Iterable[Mapping]) -> list[str]:  # noqa: ARG002 - for stores with accounts
        """Return a sentence for each mapping whose table the account may not write; blocks, callable in any thread."""
        return []

    def numbers(self) -> dict[str, int]:
        """Return what the store counts, by the names of rows of `stats`; empty if it counts nothing."""
        return {}

    def close(self) -> None:
        """Commit what is open and release files and connections."""
        return


class Store(MappedTables, Protocol):
    """One store; `shared_mappings` are mappings shared by several worker processes, None for a single process."""

    shared_mappings: SharedMappings | None

    def initialise(self, *, demo: bool = True) -> bool:
        """Create missing configuration tables; return whether `containers` was created. Raises StoreError.

        Args:
            demo: also create the plugin's demo table and its row, if `containers` is missing.
        """

    def add_cache(self, name: str) -> bool:
        """Create a cache table and its row of `containers`, and return True, unless there is a row with this name.

        Raises ConfigError: no mapping can have this name, or another table has it. StoreError.
        """


@runtime_checkable
class DirectStore(Store, Protocol):
    """A store in this process that answers each operation at once and commits each write alone, without batches."""

    def execute(self, operation: Operation) -> Any:
        """Return the answer to an operation, as `kvref.engine.operations` defines it; raises StoreError."""

    def planned_rows(self, bound: Bound) -> PlannedRows | None:
        """Return the rows of a mapping for plans; None: all its commands run by steps."""


def counted_cas_numbers(profile: Profile) -> Iterator[int]:
    """Return a counter of cas numbers that no store keeps: from 1 as the plugin has it, or from the microsecond now.

    Fewer than a million numbers a second are used, so none comes twice after a restart.
    """
    return itertools.count(1 if profile["cas.start"] == "one" else time.time_ns() // 1000)


@dataclass(frozen=True, slots=True)
class Scheme:
    """The scheme of a DSN.

    Args:
        prefix: beginning of its DSNs.
        form: how to write a DSN, for messages.
        open: opens the store of a DSN for a profile, with the maximum time of a lock wait in seconds.
        transactions: it is a database server with its own transactions, which several processes can use.
        volatile: rows live in the process that opened the store and are lost when it ends.
    """

    prefix: str
    form: str
    open: Callable[[str, Profile, float], Store]
    transactions: bool = False
    volatile: bool = False
