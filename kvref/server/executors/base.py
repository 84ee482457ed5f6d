"""The interface of an executor, which the connection and the server use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kvref.engine.mapping import Directory
from kvref.engine.operations import OperationGen
from kvref.engine.session import Session
from kvref.protocol.replies import Reply
from kvref.protocol.rules import WireRules
from kvref.server.planners.base import TextPlanner
from kvref.server.slots import Commits


class Executor(Protocol):
    """Carries out the commands of all connections against one store."""

    def begin(self, reads: str = "") -> Any:
        """Return the transaction of a new connection, one at a time; `reads` is as `Listener.reads`."""

    def run(self, transaction: Any, begin: Callable[[], OperationGen], done: Callable[[Reply], None]) -> Reply | None:
        """Run a command; None where `done` is called later with the reply."""

    def commits_of(self, transaction: Any) -> Commits:
        """Return the commits that the replies of a connection with this transaction wait for."""

    def planner(self, transaction: Any, session: Session, wire_rules: WireRules) -> TextPlanner | None:
        """Return what plans the commands of a connection; None if each of them is run alone."""

    def end(self, transaction: Any) -> None:
        """Forget the transaction of a connection that is gone; what it has not committed goes with it."""

    def commit(self) -> None:
        """Commit what is open and notify everyone who waits for it."""

    async def check(self) -> None:
        """Check that the store answers a query, without reading rows; raises StoreError if it does not."""

    async def read_directory(self) -> Directory:
        """Read the configuration tables again."""

    async def close(self) -> None:
        """Finish running commands."""
