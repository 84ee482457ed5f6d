"""Between sessions and the store: runs a session's steps, parks those that meet another writer, commits once a tick.

A write is acknowledged after the commit that holds it: connections keep their replies while the store is dirty and are
told by `when_settled` whether the tick became durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kvref.errors import StoreError
from kvref.semantics.mapping import Directory
from kvref.semantics.ports import LockWaitError, Operation, Steps, takes_lock
from kvref.storage.sqlite import BusyError, SQLiteStore
from kvref.wire.replies import Reply, ServerError

_log = logging.getLogger("kvref.server")

SLICE: Final = 500  # operations of one command before the other connections have their turn
RETRY_AFTER: Final = 0.005  # seconds between two tries for SQLite's write lock


@dataclass(slots=True)
class _Parked:
    """Steps that wait for the write lock: where they stand, whom to tell, and until when (loop time)."""

    steps: Steps
    operation: Operation
    done: Callable[[Reply], None]
    deadline: float


class TickDriver:
    """Answer the operations of all sessions from one SQLite file.

    Args:
        store: where rows live.
        lock_wait: how long a write waits for another writer, in seconds.
    """

    def __init__(self, store: SQLiteStore, lock_wait: float) -> None:
        self.store = store
        self._lock_wait = lock_wait
        self._loop = asyncio.get_running_loop()
        self._parked: deque[_Parked] = deque()
        self._retrying = False
        self._waiting: list[Callable[[str], None]] = []
        self._looked = False  # this tick has looked at what others did to the file
        self._down = ""  # why nothing can be answered from the store

    @property
    def dirty(self) -> bool:
        """Tell whether replies must wait for this tick's commit."""
        return self.store.dirty

    def run(self, begin: Callable[[], Steps], done: Callable[[Reply], None]) -> Reply | None:
        """Run a command's steps.

        Args:
            begin: begins the command.
            done: called later with the reply, where the command waits for another writer or is a long one.

        Returns:
            The reply, or None when `done` will be called.
        """
        if not self._looked:
            self._look()
        return self._advance(begin(), None, done, None)

    async def read_directory(self) -> Directory:
        """Read the configuration, see `SQLiteStore.read_directory`."""
        return self.store.read_directory()

    async def close(self) -> None:
        """Commit what is open."""
        self.commit()

    def _look(self) -> None:
        self._looked = True
        self._loop.call_soon(self._forget_look)
        try:
            self.store.refresh()
        except BusyError:
            return  # the next tick looks again
        except StoreError as error:
            self._down = str(error)
        else:
            self._down = ""

    def _forget_look(self) -> None:
        self._looked = False

    def forget(self, done: Callable[[Reply], None]) -> None:
        """Drop what waits on behalf of a connection that is gone: nobody would learn of its write."""
        for parked in [parked for parked in self._parked if parked.done == done]:
            self._parked.remove(parked)
            parked.steps.close()

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
        self, steps: Steps, operation: Operation | None, done: Callable[[Reply], None], deadline: float | None
    ) -> Reply | None:
        try:
            for _ in range(SLICE):
                if operation is not None and deadline is None:
                    self._keep_order(operation)
                if operation is not None and self._down:
                    return ServerError(self._down)
                answer: Any = None if operation is None else self.store.execute(operation)
                deadline = None
                operation = steps.send(answer)
        except StopIteration as stop:
            reply: Reply = stop.value
            return reply
        except BusyError:
            assert operation is not None
            self._park(steps, operation, done, deadline)
            return None
        except StoreError as error:
            return ServerError(str(error))
        except Exception:  # noqa: BLE001 - logged whole
            # A server never dies of a request; the log has what to mend.
            _log.exception("a command failed")
            return ServerError("internal error, see the server's log")
        assert operation is not None
        self._loop.call_soon(self._continue, steps, operation, done)
        return None

    def _continue(self, steps: Steps, operation: Operation, done: Callable[[Reply], None]) -> None:
        reply = self._advance(steps, operation, done, None)
        if reply is not None:
            done(reply)

    def _keep_order(self, operation: Operation) -> None:
        if self._parked and not self.store.dirty and takes_lock(operation):
            raise BusyError("others wait for the write lock")

    def _park(self, steps: Steps, operation: Operation, done: Callable[[Reply], None], deadline: float | None) -> None:
        if deadline is None:
            self._parked.append(_Parked(steps, operation, done, self._loop.time() + self._lock_wait))
        else:
            self._parked.appendleft(_Parked(steps, operation, done, deadline))
        if not self._retrying:
            self._retrying = True
            self._loop.call_later(RETRY_AFTER, self._retry)

    def _retry(self) -> None:
        now = self._loop.time()
        while self._parked:
            parked = self._parked.popleft()
            if now >= parked.deadline:
                parked.done(_give_up(parked.steps))
                continue
            reply = self._advance(parked.steps, parked.operation, parked.done, parked.deadline)
            if reply is not None:
                parked.done(reply)
            elif self._parked and self._parked[0].steps is parked.steps:
                break  # the lock is still taken: no use in asking for each of them
        self._retrying = bool(self._parked)
        if self._retrying:
            self._loop.call_later(RETRY_AFTER, self._retry)


def _give_up(steps: Steps) -> Reply:
    try:
        steps.throw(LockWaitError)
    except StopIteration as stop:
        reply: Reply = stop.value
        return reply
    raise RuntimeError("a command asked for more after its wait was over")
