"""What a parent passes to its workers when it forks them, and the settings that workers refuse."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from kvref.engine.cache.memory import Policy
from kvref.engine.mapping import Directory
from kvref.engine.shared_state import VBuckets
from kvref.errors import ConfigError, StoreError
from kvref.profiles import Profile
from kvref.server.listeners.listener import Listener, missing_privileges, refuse_shared_cache, unknown_mappings
from kvref.server.server import lock_wait
from kvref.server.telemetry.event_counters import EventCounters
from kvref.server.workers.counters import SharedPrefixes
from kvref.server.workers.marks import MarkTables
from kvref.server.workers.shared_memory import Memory, SharedMappings
from kvref.storage.base import MappedTables, Scheme, without_password
from kvref.storage.config.containers import Container
from kvref.storage.several import Placement, tables_of
from kvref.storage.sqlite.file import SCHEME, identity, path_of
from kvref.storage.stores import open_store

# The worker to which the others pass a connection that writes. SQLite has one writer: a second process waits for its
# lock, and its caches are empty after each commit of the first.
WRITER: Final = 0


def refuse_settings(workers: int, profile: Profile, settings: dict[str, int], scheme: Scheme) -> None:
    """Raise ConfigError for settings whose meaning rests on one process, if there are several workers."""
    reads, writes = (settings[f"daemon_memcached_{kind}_batch_size"] for kind in "rw")
    if workers == 1:
        return
    if scheme.volatile:
        raise ConfigError(
            f"--workers {workers}: processes cannot share the rows of {scheme.prefix}: choose --workers 1 or another"
            " store"
        )
    if writes > 1 and not scheme.transactions:
        raise ConfigError(
            f"--workers {workers} and daemon_memcached_w_batch_size={writes}: over SQLite, one process keeps"
            " the pending writes and row locks of a batch in memory: choose --workers 1,"
            " daemon_memcached_w_batch_size=1 or a store mysql://"
        )
    if max(reads, writes) > 1 and profile["flush.other_batches"] == "committed":
        raise ConfigError(
            f"--workers {workers} and batches of {max(reads, writes)}: in profile {profile.name!r}, flush_all"
            " commits the batches of all connections, but a worker cannot commit another worker's batches:"
            " choose --workers 1, batches of 1 or another profile"
        )


def refuse_policies(workers: int, directory: Directory) -> None:
    """Refuse cache policies with a memory cache; raises ConfigError."""
    cached = directory.policies.in_memory
    if workers > 1 and cached is not None:
        raise ConfigError(
            f"--workers {workers} and cache_policies: {cached[0]} is {cached[1].value!r}: workers cannot share"
            f" the memory cache: choose --workers 1, or set it to {Policy.TABLE.value!r} or"
            f" {Policy.OFF.value!r}"
        )


@dataclass
class Plan:
    """What is served by several processes.

    Args:
        workers: 2 or more.
        read_settings: returns values by name, see `settings.parse`.
        pid: of the parent.
        since: monotonic time of the start.
    """

    placement: Placement
    profile: Profile
    workers: int
    read_settings: Callable[[], dict[str, int]]
    settings: dict[str, int]
    listeners: list[Listener]
    pid: int
    since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        dsns = self.placement.dsns
        self.dsns = tuple(dsns.values())
        self.text = ", ".join(f"{name} {without_password(dsn)}".lstrip() for name, dsn in dsns.items())
        paths = [path_of(each) for each in self.dsns if each.startswith(SCHEME)]
        self._files = {path: identity(path) for path in paths}
        self.one_writes = len(self._files) == len(self.dsns)  # only WRITER is to write: all stores are SQLite files
        # The store ensures that no CAS number is used twice.
        self.numbers_in_store = len(self.dsns) == 1 and bool(self._files) and self.profile["cas.start"] != "one"
        self.shared_mappings = [SharedMappings() for _ in self.dsns]
        self.directory, self.problems = self.read()
        first_cas = 0
        if not self.numbers_in_store:
            store = self.open()
            try:
                first_cas = next(store.cas_numbers())
            finally:
                store.close()
        self.memory = Memory(self.workers, first_cas)
        VBuckets(self.memory.vbuckets).reset()
        self.prefixes = SharedPrefixes(self.workers)
        self.marks = MarkTables()
        self.tally = EventCounters(self.workers)

    def open(self) -> MappedTables:
        """Open the stores, which no fork may copy; raises StoreError, also if a file was replaced since the start."""
        for path, before in self._files.items():
            if identity(path) != before:
                raise StoreError(f"store {path} was deleted or replaced: restart the server")
        with ExitStack() as opened:
            stores = []
            for dsn, mappings in zip(self.dsns, self.shared_mappings, strict=True):
                store = open_store(dsn, self.profile, lock_wait(self.profile, self.settings))
                opened.callback(store.close)
                store.shared_mappings = mappings
                stores.append(store)
            opened.pop_all()
        return tables_of(self.placement, stores, self.profile)

    def read(self) -> tuple[Directory, list[str]]:
        """Read the configuration; return it with one sentence for each unusable row or mapping of a listener.

        Raises:
            ConfigError: no usable row, or a configuration that several processes cannot serve.
            StoreError: the store cannot be read.
        """
        store = self.open()
        try:
            directory = store.read_directory()
            refuse_policies(self.workers, directory)
            refuse_shared_cache(self.listeners, directory)
            lacks = missing_privileges(self.listeners, store, directory)
            return directory, [*store.problems, *lacks, *unknown_mappings(self.listeners, directory)]
        finally:
            store.close()


def fingerprint(directory: Directory) -> str:
    """Return a text that identifies a configuration in any process."""
    found = []
    for each in directory.parts or (directory,):
        assert isinstance(each.default.row, Container)
        found.append((each.default.row, *each.options))
    return repr(found)
