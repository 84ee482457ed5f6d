"""Threads for calls that block: one wake-up of a thread and one of the event loop for each call.

`loop.run_in_executor` takes two futures, a semaphore and a further turn of the loop for the same (`bench/README.md`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

_Call = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[object, ...]]


class Threads:
    """Threads of the running loop, started when they are needed.

    Args:
        most: number of threads.
        name: of each, with a number behind it.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()  # None ends a thread
        self._started = 0
        self._unfinished = 0  # calls

    def call(self, what: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Call what blocks; return a future of its result. A cancelled future does not stop its call."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._unfinished += 1
        if self._unfinished > self._started and self._started < self._most:
            self._started += 1
            Thread(target=self._work, name=f"{self._name}_{self._started}", daemon=True).start()
        self._calls.put((future, what, arguments))
        return future

    def close(self) -> None:
        """End each thread after the calls that were made so far."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while self._carry_out():
            pass

    def _carry_out(self) -> bool:
        """Run the next call and forget it; return whether there was one."""
        call = self._calls.get()
        if call is None:
            return False
        future, what, arguments = call
        with suppress(RuntimeError):  # the loop was closed meanwhile
            try:
                result = what(*arguments)
            except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
                self._loop.call_soon_threadsafe(self._end, future, None, error)
            else:
                self._loop.call_soon_threadsafe(self._end, future, result, None)
        return True

    def _end(self, future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
        self._unfinished -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
