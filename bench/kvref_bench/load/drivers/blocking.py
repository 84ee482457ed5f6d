"""Blocking client libraries: each session is a thread with a connection of its own, as a web server's workers are.

All threads of a process share one interpreter, which runs one of them at a time. That is what such a client costs its
application; more processes are more workers of the point.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from time import perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple

from pymemcache.client.base import Client, PooledClient  # type: ignore[import-untyped]
from pymemcache.client.hash import HashClient  # type: ignore[import-untyped]

from kvref.addresses import parse_address
from kvref.client import MappedClient
from kvref_bench.errors import BenchError
from kvref_bench.load.drivers.meter import Measured, Meter, Window, endless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.drivers.meter import Pair, Pools
    from kvref_bench.load.work import Task

TIMEOUTS = {"connect_timeout": 10.0, "timeout": 60.0, "no_delay": True}


class Session(NamedTuple):
    """What one thread needs: the library's get, and how its connection is closed."""

    get: Callable[[str], bytes | None]
    close: Callable[[], None]


Open = Callable[["Task", str | None, int], list[Session]]


def pymemcache(task: Task, word: str | None, sessions: int) -> list[Session]:
    """Open a `Client` for each session.

    task: has the address. word: key of a first get on each connection, which switches the mapping; None: no first get.
    """
    where = parse_address(task.address).socket_address
    clients = [Client(where, **TIMEOUTS) for _ in range(sessions)]
    for each in clients:
        _switch(each, word)
    return [Session(each.get, each.close) for each in clients]


def pymemcache_pooled(task: Task, word: str | None, sessions: int) -> list[Session]:
    """Open one `PooledClient` for all sessions, with a connection for each; else as `pymemcache`."""
    where = parse_address(task.address).socket_address
    client = PooledClient(where, max_pool_size=sessions, **TIMEOUTS)
    opened = [client.client_pool.get() for _ in range(sessions)]
    for each in opened:
        _switch(each, word)
        client.client_pool.release(each)
    return [Session(client.get, client.close) for _ in range(sessions)]


def pymemcache_hash(task: Task, word: str | None, sessions: int) -> list[Session]:
    """Open a `HashClient` of one server for each session; else as `pymemcache`."""
    where = parse_address(task.address).socket_address
    clients = [HashClient([where], **TIMEOUTS) for _ in range(sessions)]
    for each in clients:
        _switch(each, word)
    return [Session(each.get, each.close) for each in clients]


def mapped(task: Task, word: str | None, sessions: int) -> list[Session]:
    """Open a `kvref.client.MappedClient` for each session, bound to the mapping unless each key names it."""
    mapping = None if word is None else task.work.mapping
    clients = [MappedClient(task.address, mapping=mapping, delimiter=task.work.delimiter) for _ in range(sessions)]
    return [Session(each.get, each.close) for each in clients]


def _switch(client: Client | HashClient, word: str | None) -> None:
    if word is not None and client.get(word) is None:
        raise BenchError(f"{word} was answered like a missing key: the server has no such mapping")


def run(task: Task, word: str | None, pools: Pools, window: Window, opening: Open) -> Measured:
    """Measure one worker's sessions.

    word: as of `pymemcache`. pools: of each session. window: of the point. opening: of all sessions.
    """
    with ExitStack() as stack:
        sessions = opening(task, word, len(pools))
        for session, pool in zip(sessions, pools, strict=True):
            stack.callback(session.close)
            session.get(pool[0][0])
        meters = [Meter(task, window) for _ in sessions]
        threads = [
            threading.Thread(target=_ask, args=(session.get, islice(endless(pool), task.work.operations), meter))
            for session, pool, meter in zip(sessions, pools, meters, strict=True)
        ]
        time.sleep(window.ready())
        moment = window.start()
        for meter, thread in zip(meters, threads, strict=True):
            meter.start(moment)
            thread.start()
        try:
            while any(each.is_alive() for each in threads) and not window.over():
                time.sleep(window.pause)
        finally:
            for meter, thread in zip(meters, threads, strict=True):
                meter.over = True
                thread.join()
        return window.measured(meters)


def _ask(get: Callable[[str], bytes | None], pairs: Iterator[Pair], meter: Meter) -> None:
    bins = meter.recorder.bins["service"][0]
    key, stopped, sent = "", None, perf_counter_ns()
    try:
        for key, wanted in pairs:
            sent = perf_counter_ns()
            found = get(key)
            now = perf_counter_ns()
            if found == wanted:
                # As `histogram.index`.
                took = now - sent
                shift = (took | 128).bit_length() - 8
                bins[(shift << 7) + (took >> shift)] += 1
                if now >= meter.boundary:
                    meter.turn(now)
            else:
                meter.otherwise(key, found, sent, now)
            if meter.over:
                break
    except Exception as error:  # noqa: BLE001 - whatever a library raises is what it answered
        meter.otherwise(key, repr(error).encode(), sent, perf_counter_ns())
        stopped = f"a session ended: {error!r}"
    meter.finish(stopped)
