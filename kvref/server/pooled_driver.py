"""Between sessions and a database server: each command runs on a connection of its own, in a thread while it waits.

A command's operations are carried out in order; what they wrote is committed before the reply leaves. Where the
database says that what a command saw is out of date (deadlock, a row that came up meanwhile, DDL, a lost connection
before the commit) the command begins anew: nothing of it was kept. Why threads: bench/README.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

from kvref.errors import StoreError
from kvref.semantics.mapping import Directory
from kvref.semantics.ports import LockWaitError, Operation, Steps
from kvref.storage.mysql import MySQLStore
from kvref.storage.mysql_link import AgainError, Link, LostError
from kvref.wire.replies import Reply, ServerError

_log = logging.getLogger("kvref.server")

TRIES: Final = 4
# Seconds between two looks at the mapped tables for DDL that no statement fails of; beside the commands, or after a
# pause before the first one, which would else be answered from what the tables were long ago.
LOOK_EVERY: Final = 1.0
PAUSE: Final = 2.0


class PooledDriver:
    """Answer the operations of all sessions from one database server.

    Args:
        store: where rows live.
    """

    dirty = False  # a reply is given after its commit

    def __init__(self, store: MySQLStore) -> None:
        self.store = store
        self._loop = asyncio.get_running_loop()
        most = store.login.connections
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="kvref-mysql")
        self._places = asyncio.Semaphore(most)
        self._idle: list[Link] = []
        self._commands: dict[Callable[[Reply], None], asyncio.Task[None]] = {}
        self._looked = self._loop.time()
        self._looking: asyncio.Task[None] | None = None

    def run(self, begin: Callable[[], Steps], done: Callable[[Reply], None]) -> Reply | None:
        """Run a command's steps.

        Args:
            begin: begins the command, or begins it anew.
            done: called later with the reply, where the command needs the database.

        Returns:
            The reply, or None when `done` will be called.
        """
        since = self._loop.time() - self._looked
        if LOOK_EVERY < since <= PAUSE and self._looking is None:
            self._looking = self._loop.create_task(self._look_behind())
        steps = begin()
        try:
            operation = steps.send(None)
        except StopIteration as stop:
            reply: Reply = stop.value
            return reply
        self._commands[done] = self._loop.create_task(self._carry_out(begin, steps, operation, done, since > PAUSE))
        return None

    def forget(self, done: Callable[[Reply], None]) -> None:
        """Stop a command that still waits for a connection on behalf of a client that is gone; others run out."""
        self._commands.pop(done, None)

    def when_settled(self, settled: Callable[[str], None]) -> None:
        """Call back at once: nothing that was answered waits for a commit."""
        settled("")

    def commit(self) -> None:
        """Do nothing: what was answered is committed."""

    async def read_directory(self) -> Directory:
        """Read the configuration, see `MySQLStore.read_directory`."""
        return self.store.adopt(await self._in_thread(self.store.look_up_directory))

    async def close(self) -> None:
        """Wait for the commands that run, then close the connections."""
        running = [*self._commands.values(), *([self._looking] if self._looking else [])]
        if running:
            await asyncio.wait(running)
        for link in self._idle:
            await self._in_thread(link.close)
        self._threads.shutdown(wait=False)

    async def _in_thread(self, call: Callable[..., Any], *arguments: object) -> Any:
        return await self._loop.run_in_executor(self._threads, call, *arguments)

    async def _carry_out(
        self,
        begin: Callable[[], Steps],
        steps: Steps,
        operation: Operation,
        done: Callable[[Reply], None],
        stale: bool,
    ) -> None:
        reply: Reply
        try:
            async with self._place():
                reply = await self._reply(begin, steps, operation, stale)
        except (StoreError, AgainError) as error:
            reply = ServerError(str(error))
        except Exception:  # noqa: BLE001 - logged whole
            # A server never dies of a request; the log has what to mend.
            _log.exception("a command failed")
            reply = ServerError("internal error, see the server's log")
        if self._commands.pop(done, None) is not None:
            done(reply)

    async def _reply(self, begin: Callable[[], Steps], steps: Steps, operation: Operation, stale: bool) -> Reply:
        tried = 0
        while True:
            tried += 1
            try:
                if stale:
                    steps.close()
                    await self._look()
                    steps = begin()
                    try:
                        operation = steps.send(None)
                    except StopIteration as stop:
                        reply: Reply = stop.value
                        return reply
                async with self._link() as link:
                    return await self._all(link, steps, operation)
            except (AgainError, LostError):
                if tried == TRIES:
                    raise
                stale = True

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.store.patience):
                await self._places.acquire()
        except TimeoutError as error:
            most = self.store.login.connections
            raise StoreError(
                f"none of {most} connections to the database became free within {self.store.patience:g} s"
            ) from error
        try:
            yield
        finally:
            self._places.release()

    @asynccontextmanager
    async def _link(self) -> AsyncIterator[Link]:
        link = self._idle.pop() if self._idle else await self._in_thread(self.store.link)
        try:
            yield link
        finally:
            if link.in_transaction:
                await self._in_thread(link.roll_back)
            if link.lost:
                # What ended it, such as a restart, has most likely ended those that wait for use too.
                lost, self._idle = [link, *self._idle], []
                for each in lost:
                    await self._in_thread(each.close)
            else:
                self._idle.append(link)

    async def _all(self, link: Link, steps: Steps, operation: Operation) -> Reply:
        try:
            while True:
                try:
                    answer = await self._in_thread(link.execute, operation)
                    self.store.heed(operation, answer)
                except LockWaitError:
                    operation = steps.throw(LockWaitError)
                    continue
                operation = steps.send(answer)
        except StopIteration as stop:
            reply: Reply = stop.value
        if link.in_transaction:
            await self._in_thread(link.commit)
        return reply

    async def _look_behind(self) -> None:
        try:
            async with self._place():
                await self._look()
        except (StoreError, AgainError) as error:
            _log.warning("cannot look at the mapped tables: %s", error)
        finally:
            self._looking = None

    async def _look(self) -> None:
        self._looked = self._loop.time()
        async with self._link() as link:
            self.store.take_over(await self._in_thread(link.look, self.store.watched()))
