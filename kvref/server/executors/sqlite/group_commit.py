"""One durable commit for the writes of many connections: its waiters, its time, and the handling of a failure.

Writes collect in one transaction while the previous one is synced to disk. A thread waits for the disk, so that
commands without a write are answered meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final, Protocol

from kvref.errors import StoreError
from kvref.storage.sqlite.store import SQLiteStore

# How long a commit waits for more writes, in seconds, while commands keep coming: with none it comes at once.
GATHER: Final = 0.001
Settled = Callable[[str], None]


class Committing(Protocol):
    """Who carries out commands, see `SQLiteExecutor`."""

    commands: int

    def committed(self, *, lost: bool) -> int: ...


class GroupCommit:
    """The commits of one store."""

    def __init__(self, store: SQLiteStore, executor: Committing) -> None:
        self._store = store
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._disk: Thread | None = None  # waits for the disk, from the first commit on
        self._requests: SimpleQueue[Callable[[], str] | None] = SimpleQueue()  # of it; None ends it
        self._waiting: list[Settled] = []  # for the next commit
        self._until = 0.0  # when the first of them has waited long enough (loop time)
        self._syncing: list[Settled] | None = None  # for the disk; None: nothing is on its way there
        self._unsynced = False  # there is a commit that is not on its way there yet
        self._lost = ""  # why what was written is lost
        self._number = 0  # of the next commit
        self._connections = 0  # with replies that wait for it, each call with several counted as two
        self._shared = False  # the last commit was for several connections
        self._closed = False

    @property
    def unsettled(self) -> int | None:
        """Return which commit holds what is written by now; None where all of it is on the disk, and nothing is lost.

        What is written later is in that commit or a later one.
        """
        if self._store.dirty or self._unsynced or self._lost:
            return self._number
        return None if self._syncing is None else self._number - 1

    def when_settled(self, number: int, settled: Settled, *, at_once: bool = False) -> None:
        if self._syncing is not None and number != self._number:
            self._syncing.append(settled)
            return
        self._connections += 1 if at_once else 2
        # Where connections write by turns, the next one is about to: a commit for one of them costs as much as for all.
        if at_once and not self._shared and self._syncing is None and not self._waiting:
            self._waiting.append(settled)
            self.commit()
            return
        if not self._waiting:
            self._until = self._loop.time() + GATHER
            if self._syncing is None:
                self._loop.call_soon(self._gather, self._executor.commands)
        self._waiting.append(settled)

    def commit_store(self) -> None:
        """Make what is written so far visible to other connections of the file."""
        if not self._store.dirty:
            return
        cause = ""
        try:
            self._store.commit()
            self._unsynced = True
        except StoreError as error:
            cause = str(error)
        if writes := self._executor.committed(lost=bool(cause)):
            cause = f"{cause}: {writes} pending writes are lost"
        self._lost = self._lost or cause

    def commit(self) -> None:
        """Commit what is written and begin to bring it to the disk, unless the disk is busy: then that comes next.

        After `close`, what a connection still writes is neither committed nor acknowledged.
        """
        if self._syncing is not None or self._closed:
            return
        waiting, self._waiting = self._waiting, []
        self._number += 1
        self._shared, self._connections = self._connections > 1, 0
        if self._store.dirty:
            self.commit_store()
        cause, self._lost = self._lost, ""
        if cause or not self._unsynced:
            _notify(waiting, cause)
            return
        self._unsynced = False
        self._syncing = waiting
        if self._disk is None:
            self._disk = Thread(target=self._sync, name="kvref-sync", daemon=True)
            self._disk.start()
        self._requests.put(self._to_disk)

    def close(self) -> None:
        """Commit what is open, and wait for the disk."""
        self._closed = True
        if self._disk is not None:
            self._requests.put(None)
            self._disk.join()
        self.commit_store()
        waiting = [*(self._syncing or []), *self._waiting]
        self._syncing, self._waiting = None, []
        _notify(waiting, self._lost or self._to_disk())

    def _gather(self, commands: int) -> None:
        """Commit, unless commands came since the last call: what they write may share the commit."""
        if not self._waiting or self._syncing is not None:
            return
        now = self._executor.commands
        if commands != now and self._loop.time() < self._until:
            self._loop.call_soon(self._gather, now)
        else:
            self.commit()

    def _sync(self) -> None:
        while (sync := self._requests.get()) is not None:
            self._loop.call_soon_threadsafe(self._synced, sync())

    def _to_disk(self) -> str:
        try:
            self._store.sync()
        except StoreError as error:
            return str(error)
        return ""

    def _synced(self, cause: str) -> None:
        if self._syncing is None:
            return  # `close` has waited for it
        waiting, self._syncing = self._syncing, None
        self._store.cache.synced(lost=bool(cause))
        _notify(waiting, cause)
        if self._waiting:
            self._loop.call_soon(self._gather, self._executor.commands)


def _notify(waiting: list[Settled], cause: str) -> None:
    for settled in waiting:
        settled(cause)
