"""Commits of batches without a command: of idle connections, and of clients that have disconnected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kvref.engine.session import Session
from kvref.protocol.replies import Reply, ServerError
from kvref.server.executors.base import Executor

_log = logging.getLogger("kvref.server")


class Owner(Protocol):
    """The connection of a batch."""

    def committed(self) -> None:
        """Go on: such a commit is through, or could not be done."""


class BackgroundCommit:
    """The open batch of one connection, and its commit in the background.

    Args:
        executor: of the server.
        session: the connection's.
        transaction: the executor's, of the same connection.
        owner: is notified when such a commit is through, or could not be done.
    """

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
        elif (number := commits.unsettled) is not None:
            commits.when_settled(number, self._settled)
        self._owner.committed()

    def _settled(self, lost: str) -> None:
        if lost:
            _log.error("a batch committed in the background was lost: %s", lost)
            self.lost = ServerError(lost)


LOOK_EVERY: Final = 1.0  # seconds, where the profile looks for idle connections
OLD: Final = 5.0  # seconds (CONN_IDLE_TIME_TO_BK_COMMIT of 5.6)
MAX_COMMITS: Final = 6  # connections that 5.6 commits at once (BK_MAX_PROCESS_COMMIT is passed by one)


class Client(Protocol):
    """A connection as this module sees it; times are those of the loop, in seconds."""

    @property
    def batch_since(self) -> float | None:
        """Return since when its batch is open; None if it has none."""

    @property
    def quiet_since(self) -> float:
        """Return the time of its last reply."""

    def commit_idle(self) -> None:
        """Commit its batch, unless a command of it is on its way."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which batches a tick commits.

    Args:
        commits: value of the fact `idle.commits`.
    """

    commits: str

    def period(self, interval: int) -> float:
        """Return the seconds between two ticks.

        Args:
            interval: innodb_api_bk_commit_interval, in seconds.
        """
        return LOOK_EVERY if self.commits == "idle" else interval

    def due(self, clients: Iterable[Client], interval: int, now: float) -> list[Client]:
        """Return the connections to commit, those with the oldest batches first."""
        batches = [(since, client) for client in clients if (since := client.batch_since) is not None]
        batches.sort(key=lambda batch: batch[0])
        if self.commits == "older-than-5s":
            return [client for since, client in batches if now - since > OLD][:MAX_COMMITS]
        every = self.commits == "every-open"
        return [client for _, client in batches if every or now - client.quiet_since >= interval]


class IdleCommit:
    """Commit idle batches for as long as the server runs.

    Args:
        rule: which.
        clients: gives all connections.
        interval: gives innodb_api_bk_commit_interval as it is in force.
    """

    def __init__(self, rule: Rule, clients: Callable[[], Iterable[Client]], interval: Callable[[], int]) -> None:
        self._rule = rule
        self._clients = clients
        self._interval = interval
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(rule.period(interval()), self._tick)

    def stop(self) -> None:
        """Commit no more."""
        self._timer.cancel()

    def _tick(self) -> None:
        interval = self._interval()
        self._timer = self._loop.call_later(self._rule.period(interval), self._tick)
        for client in self._rule.due(self._clients(), interval, self._loop.time()):
            client.commit_idle()
