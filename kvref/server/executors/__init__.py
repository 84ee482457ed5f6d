"""Executors carry out the commands of all connections against one store, or several.

Read `base.py` first, their interface and the one interpreter of verbs; then `sqlite/executor.py` or
`mysql/executor.py`.
"""

from __future__ import annotations

from kvref.server.executors.base import Executor
from kvref.server.executors.direct import DirectExecutor
from kvref.server.executors.routing import RoutingExecutor
from kvref.server.executors.sqlite.executor import SQLiteExecutor
from kvref.storage.base import DirectStore, MappedTables
from kvref.storage.isolation import Isolation
from kvref.storage.several import SeveralStores
from kvref.storage.sqlite.store import SQLiteStore


def executor_for(store: MappedTables, isolation: Isolation, lock_wait: float, *, alone: bool = True) -> Executor:
    """Return the executor of a store, or of several, in the running loop; a write waits `lock_wait` seconds.

    Args:
        alone: connections use no other store.

    Raises:
        ConfigError: the store cannot serve with these settings.
    """
    if isinstance(store, SeveralStores):
        return RoutingExecutor(store, [executor_for(each, isolation, lock_wait, alone=False) for each in store.stores])
    if isinstance(store, SQLiteStore):
        return SQLiteExecutor(store, isolation, lock_wait, alone=alone)
    if isinstance(store, DirectStore):
        return DirectExecutor(store, isolation)
    # They need an extra.
    from kvref.server.executors.mysql.executor import MySQLExecutor  # noqa: PLC0415
    from kvref.storage.mysql.store import MySQLStore  # noqa: PLC0415

    assert isinstance(store, MySQLStore), "each store has an executor"
    return MySQLExecutor(store, isolation, alone=alone)
