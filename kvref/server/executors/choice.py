"""Which executor a store needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.server.executors.base import Executor
from kvref.server.executors.sqlite.executor import SQLiteExecutor
from kvref.storage.isolation import Isolation
from kvref.storage.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from kvref.storage.mysql.store import MySQLStore


def executor_for(store: SQLiteStore | MySQLStore, isolation: Isolation, lock_wait: float) -> Executor:
    """Return the executor of a store, in the running loop.

    Args:
        store: where rows live.
        isolation: who sees what, and waits for whom; a later change of it counts too.
        lock_wait: how long a write waits for another writer, in seconds.
    """
    if isinstance(store, SQLiteStore):
        return SQLiteExecutor(store, isolation, lock_wait)
    from kvref.server.executors.mysql.executor import MySQLExecutor  # noqa: PLC0415 - needs an extra

    return MySQLExecutor(store, isolation)
