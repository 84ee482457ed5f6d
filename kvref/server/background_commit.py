"""Commits of batches without a command: of idle connections, and of clients that have disconnected."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

from kvref.engine.session import Session
from kvref.protocol.replies import Reply, ServerError
from kvref.server.executors.base import Executor

_log = logging.getLogger("kvref.server")


class Owner(Protocol):
    """The connection of a batch."""

    def committed(self) -> None: ...
    def batch_lost(self) -> None: ...


class BackgroundCommit:
    """The open batch of one connection, and its commit in the background, of which its owner is notified."""

    __slots__ = ("_executor", "_loop", "_owner", "_session", "_since", "_transaction", "lost", "quiet_since", "running")

    def __init__(self, executor: Executor, session: Session, transaction: Any, owner: Owner) -> None:
        self._executor = executor
        self._session = session
        self._transaction = transaction
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self.quiet_since = self._loop.time()
        self._since: tuple[int, float] | None = None  # number of the open batch, loop time of its first answer
        self.running = False
        self.lost: ServerError | None = None  # why the commit failed: sent in place of the next reply

    @property
    def batch_since(self) -> float | None:
        """Return since when the batch is open (loop time); None if there is no batch."""
        return None if self._since is None else self._since[1]

    def note(self) -> None:
        """Note a reply, and whether it began or ended the batch."""
        self.quiet_since = self._loop.time()
        batch = self._session.batch
        if not batch.open:
            self._since = None
        elif self._since is None or self._since[0] != batch.number:
            self._since = batch.number, self.quiet_since

    def start(self) -> None:
        """Commit; `running` until the commit is complete."""
        self.running = True
        reply = self._executor.run(self._transaction, self._session.end_batch, self._committed)
        if reply is not None:
            self._committed(reply)

    def _committed(self, reply: Reply) -> None:
        self.running = False
        self.note()
        commits = self._executor.commits_of(self._transaction)
        if isinstance(reply, ServerError):
            _log.error("background commit of a batch failed: %s", reply.text)
            if not self._session.batch.open:
                self.lost = reply
        if (number := commits.unsettled) is not None:  # also after an error, which leaves the write lock of the file
            commits.when_settled(number, self._settled)
        self._owner.committed()

    def _settled(self, lost: str) -> None:
        if lost:
            _log.error("a batch committed in the background was lost: %s", lost)
            self.lost = ServerError(lost)
            self._owner.batch_lost()
