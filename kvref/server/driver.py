"""Between sessions and the store: runs a session's steps, parks those that meet another writer, commits once a tick.

A write is acknowledged after the commit that holds it: connections keep their replies while the store is dirty and are
told by `when_settled` whether the tick became durable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kvref.errors import StoreError
from kvref.semantics.ports import Operation, Steps
from kvref.storage.sqlite import BusyError, SQLiteStore
from kvref.wire.replies import Reply, ServerError

RETRY_AFTER: Final = 0.005  # seconds between two tries for SQLite's write lock
LOCK_WAIT: Final = "lock wait timeout"


@dataclass(slots=True)
class _Parked:
    """Steps that wait for the write lock: where they stand, whom to tell, and until when (loop time)."""

    steps: Steps
    operation: Operation
    done: Callable[[Reply], None]
    deadline: float


class Driver:
    """Answer the operations of all sessions from one store.

    Args:
        store: where rows live.
        lock_wait: how long a write waits for another writer, in seconds.
    """

    def __init__(self, store: SQLiteStore, lock_wait: float) -> None:
        self.store = store
        self._lock_wait = lock_wait
        self._loop = asyncio.get_running_loop()
        self._parked: deque[_Parked] = deque()
        self._waiting: list[Callable[[str], None]] = []

    def run(self, steps: Steps, done: Callable[[Reply], None]) -> Reply | None:
        """Run a command's steps.

        Args:
            steps: what `execute` returned.
            done: called later with the reply, where the command has to wait for another writer.

        Returns:
            The reply, or None when `done` will be called.
        """
        return self._advance(steps, None, done, self._loop.time() + self._lock_wait)

    def when_settled(self, settled: Callable[[str], None]) -> None:
        """Call back after this tick's commit, with an empty text or the reason why its writes are lost."""
        if not self._waiting:
            self._loop.call_soon(self.commit)
        self._waiting.append(settled)

    def commit(self) -> None:
        """Commit what the tick wrote and tell everyone who waits for it."""
        waiting, self._waiting = self._waiting, []
        cause = ""
        try:
            self.store.commit()
        except StoreError as error:
            cause = str(error)
        for settled in waiting:
            settled(cause)

    def _advance(
        self, steps: Steps, operation: Operation | None, done: Callable[[Reply], None], deadline: float
    ) -> Reply | None:
        try:
            while True:
                answer: Any = None if operation is None else self.store.execute(operation)
                operation = steps.send(answer)
        except StopIteration as stop:
            reply: Reply = stop.value
            return reply
        except BusyError:
            # Only the first operation that writes can meet the lock, so nothing of this command has happened yet.
            assert operation is not None
            if not self._parked:
                self._loop.call_later(RETRY_AFTER, self._retry)
            self._parked.append(_Parked(steps, operation, done, deadline))
            return None
        except StoreError as error:
            return ServerError(str(error))

    def _retry(self) -> None:
        waiting, self._parked = self._parked, deque()
        now = self._loop.time()
        for parked in waiting:
            if now >= parked.deadline:
                parked.steps.close()
                parked.done(ServerError(LOCK_WAIT))
                continue
            reply = self._advance(parked.steps, parked.operation, parked.done, parked.deadline)
            if reply is not None:
                parked.done(reply)
