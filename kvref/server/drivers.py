"""What a connection and the server ask of a driver, and which driver a store needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from kvref.engine.mapping import Directory
from kvref.engine.operations import OperationGen
from kvref.engine.session import Session
from kvref.protocol.replies import Reply
from kvref.protocol.rules import WireRules
from kvref.server.driver import TickDriver
from kvref.server.shortcut import Shortcut
from kvref.storage.isolation import Isolation
from kvref.storage.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from kvref.server.plain_ways import PlainWays
    from kvref.storage.mysql.store import MySQLStore


class Driver(Protocol):
    """Runs the commands of all connections against one store."""

    @property
    def unsettled(self) -> int | None:
        """Return which commit replies must wait for, see `when_settled`; None where they need not."""

    def begin(self) -> Any:
        """Return the transaction of a new connection: the driver's own, one at a time."""

    def run(self, transaction: Any, begin: Callable[[], OperationGen], done: Callable[[Reply], None]) -> Reply | None:
        """Run a command; None where `done` is called later with the reply."""

    def look(self) -> bool:
        """Learn what others did to the tables; tells whether what a shortcut keeps of their rows is valid."""

    def shortcut(self, session: Session, wire_rules: WireRules) -> Shortcut | None:
        """Return what answers the plain commands of a connection, None where none of them is."""

    def plain_ways(self, session: Session, wire_rules: WireRules) -> PlainWays | None:
        """Return what gathers the plain commands of a connection, None where none of them is."""

    def end(self, transaction: Any) -> None:
        """Forget the transaction of a connection that is gone; what it has not committed goes with it."""

    def when_settled(self, number: int, settled: Callable[[str], None]) -> None:
        """Call back when replies of that commit may leave, with an empty text or why its writes are lost."""

    def commit(self) -> None:
        """Commit what is open and tell everyone who waits for it."""

    async def check(self) -> None:
        """Ask the store for an answer, rows aside; raises StoreError where there is none."""

    async def read_directory(self) -> Directory:
        """Read the configuration tables again."""

    async def close(self) -> None:
        """Finish what runs."""


def driver_for(store: SQLiteStore | MySQLStore, isolation: Isolation, lock_wait: float) -> Driver:
    """Return the driver of a store, in the running loop.

    Args:
        store: where rows live.
        isolation: who sees what, and waits for whom; a later change of it counts too.
        lock_wait: how long a write waits for another writer, in seconds.
    """
    if isinstance(store, SQLiteStore):
        return TickDriver(store, isolation, lock_wait)
    from kvref.server import coalescing_driver, pooled_driver  # noqa: PLC0415 - need an extra

    few = store.login.most(batches=isolation.batches) < coalescing_driver.FEWEST_CONNECTIONS
    if isolation.batches or few or store.login.together < coalescing_driver.FEWEST_TOGETHER:
        return pooled_driver.PooledDriver(store, isolation)
    if store.login.handlersocket:
        from kvref.server import handlersocket_driver  # noqa: PLC0415 - as above

        return handlersocket_driver.HandlerSocketDriver(store, isolation)
    return coalescing_driver.CoalescingDriver(store, isolation)
