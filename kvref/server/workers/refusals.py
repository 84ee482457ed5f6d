"""What several processes cannot serve as one process does: said before it is served, never answered wrongly."""

from __future__ import annotations

from kvref.engine.cache.policies import Policy
from kvref.engine.mapping import Directory
from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.storage.base import Scheme


def refuse_settings(workers: int, profile: Profile, settings: dict[str, int], scheme: Scheme) -> None:
    """Refuse settings whose meaning rests on one process.

    Args:
        workers: 1 or more.
        profile: in force.
        settings: values by name.
        scheme: of the store.

    Raises:
        ConfigError: they need --workers 1.
    """
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
