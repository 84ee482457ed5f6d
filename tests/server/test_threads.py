"""Threads that make calls for an event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kvref.server.executors.mysql.pool import Threads

SECONDS = 10.0


def test_calls_run_at_once_on_as_many_threads_as_are_allowed() -> None:
    async def play() -> None:
        threads = Threads(2, "name")
        both = threading.Barrier(2)
        assert await threads.call(threading.current_thread) is await threads.call(threading.current_thread)
        names = {"name_1", "name_2"}
        calls = [threads.call(lambda: (both.wait(SECONDS), threading.current_thread().name)[1]) for _ in range(4)]
        assert {await each for each in calls} == names
        threads.close()
        for thread in threading.enumerate():
            if thread.name in names:
                thread.join(SECONDS)
                assert not thread.is_alive()

    asyncio.run(play())


def test_results_and_errors_reach_the_caller() -> None:
    async def play() -> None:
        threads = Threads(1, "name")
        assert await threads.call(divmod, 7, 4) == (1, 3)
        with pytest.raises(ZeroDivisionError):
            await threads.call(divmod, 7, 0)
        with pytest.raises(SystemExit):
            await threads.call(exit_)
        assert await threads.call(divmod, 7, 4) == (1, 3)
        threads.close()

    asyncio.run(play())


def exit_() -> None:
    raise SystemExit


def test_a_call_of_which_the_caller_was_cancelled_ends() -> None:
    async def play() -> None:
        threads = Threads(1, "name")
        goes_on, done = threading.Event(), threading.Event()

        def wait() -> None:
            goes_on.wait(SECONDS)
            done.set()

        threads.call(wait).cancel()
        goes_on.set()
        assert await threads.call(done.is_set)
        threads.close()

    asyncio.run(play())


def test_a_call_outlives_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    goes_on, done = threading.Event(), threading.Event()

    def wait() -> None:
        goes_on.wait(SECONDS)
        done.set()

    async def play() -> threading.Thread:
        threads = Threads(1, "outlives")
        threads.call(wait)
        threads.close()
        return next(each for each in threading.enumerate() if each.name == "outlives_1")

    thread = asyncio.run(play())
    goes_on.set()
    thread.join(SECONDS)
    assert done.is_set()
    assert not thread.is_alive()
    assert not raised
