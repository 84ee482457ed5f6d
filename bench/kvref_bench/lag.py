"""Measure how long it takes until SQL sees a write: write a few rows, stop, and query until they are visible.

A trial is one memcached connection that writes `WRITES` new rows one by one and then is idle. From the last STORED on
it measures, each once:

* `visible`: until a SQL connection at READ COMMITTED sees all of the rows;
* `uncommitted`: until one at READ UNCOMMITTED does (InnoDB only: a SQLite file has no such reads);
* `unlocked`: until `SELECT … FOR UPDATE` gets the lock of each row (InnoDB only: kvref's batches over SQLite lock no
  rows for SQL). It waits in the server, as an application would; so it needs no NOWAIT, which 5.6 lacks.

For the first two, one connection looks for the rows of all trials every 5 ms. Trials overlap, but at most `A_TICK`
begin in one interval: 5.6.14 commits six connections at a tick (transactions page, section 3), and the seventh would
measure the queue. Within the interval they begin at random, since the ticks are at fixed times after the start of the
server.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Final

from kvref.addresses import connect, parse_address
from kvref.errors import cause_of
from kvref_bench.errors import BenchError
from kvref_bench.lag_seen import Eye, Found, LockWait
from kvref_bench.load.plan import Kind
from kvref_bench.load.result import Usage, WorkerResult
from kvref_bench.observer import SQLITE, InnoDB, observe
from kvref_bench.workload.keys import key
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvref_bench.observer import Name
    from kvref_bench.scenario.records import Table

VISIBLE: Final = Kind("set", "visible")
UNCOMMITTED: Final = Kind("set", "uncommitted")

WRITES: Final = 10
A_TICK: Final = 5
# Bytes read of one line.
_MAX_LINE: Final = 8192
LONGEST: Final = 20.0  # seconds, besides three intervals: 5.6.14 takes 5 and up to one interval


def measure(
    address: str,
    dsn: str,
    table: Table,
    *,
    trials: int,
    interval: int,
    seed: int = 0,
    watch: Callable[[int], None] | None = None,
) -> list[WorkerResult]:
    """Measure after how long writes are seen; the rows are gone afterwards.

    address: HOST:PORT or unix:PATH of the memcached endpoint. dsn: of the SQL server or SQLite file behind it.
    table: prepared on that endpoint; rows beyond its own are written.
    trials: how many. interval: `innodb_api_bk_commit_interval` in force, s.
    seed: of the moments at which trials begin. watch: gets the number of trials that are done, each time one is.

    Returns: one result: a count of each kind in each trial, in service timing; `open`: how many were not seen within
        20 s and three intervals, which `stopped` names.

    Raises:
        BenchError: no such mapping, an endpoint that cannot be reached or that does not store.
    """
    began, cpu = time.time_ns(), os.times()
    found = Found(LONGEST + 3 * interval)
    cells = [_cell(table, name) for trial in range(trials) for name in _names(table, trial)]
    with ExitStack() as stack:
        cleaner = stack.enter_context(closing(observe(dsn, table.mapping)))
        cleaner.delete(cells)
        stack.callback(cleaner.delete, cells)
        eyes = [stack.enter_context(each) for each in _eyes(dsn, table.mapping, found)]
        _Trials(address, dsn, table, found, eyes).run(_starts(trials, interval, seed), watch)
    used = os.times()
    return [
        WorkerResult(
            worker=0,
            host=socket.gethostname(),
            pid=os.getpid(),
            began=began,
            seconds=time.perf_counter() - found.start,
            histograms=found.histograms,
            usage=Usage(user=used.user - cpu.user, system=used.system - cpu.system),
            distinct=len(cells),
            open=len(found.unseen),
            stopped="; ".join(found.unseen) or None,
        )
    ]


def _eyes(dsn: str, mapping: str, found: Found) -> list[Eye]:
    committed = observe(dsn, mapping)
    if not isinstance(committed, InnoDB):
        return [Eye(VISIBLE, committed, found)]
    return [
        Eye(VISIBLE, committed, found),
        Eye(UNCOMMITTED, InnoDB(dsn, mapping, "READ UNCOMMITTED"), found),
    ]


class _Trials:
    """All trials of a measurement, each in a thread of its own."""

    def __init__(self, address: str, dsn: str, table: Table, found: Found, eyes: Sequence[Eye]) -> None:
        self._address = address
        self._dsn = dsn
        self._table = table
        self._found = found
        self._eyes = eyes
        self._over = threading.Event()

    def run(self, starts: Sequence[float], watch: Callable[[int], None] | None) -> None:
        """Run one trial at each of the moments, seconds."""
        with ThreadPoolExecutor(len(starts)) as pool:
            try:
                pending = {pool.submit(self._one, number, at) for number, at in enumerate(starts)}
                for done, each in enumerate(as_completed(pending), 1):
                    each.result()
                    if watch is not None:
                        watch(done)
            finally:
                self._over.set()

    def _one(self, number: int, at: float) -> None:
        if self._over.wait(max(0.0, self._found.start + at - time.perf_counter())):
            return
        names = _names(self._table, number)
        cells = [_cell(self._table, each) for each in names]
        with ExitStack() as stack:
            watchers: list[Eye | LockWait] = [*self._eyes]
            if not self._dsn.startswith(SQLITE):
                locker = InnoDB(self._dsn, self._table.mapping, patience=int(self._found.limit))
                watchers.append(stack.enter_context(LockWait(locker, self._found)))
            # Entered last and so left first: its end commits what a lock may still wait for.
            session = stack.enter_context(closing(_Session(self._address, self._table, self._found.limit)))
            session.write(names)
            since = time.perf_counter_ns()
            seen = [each.expect(cells, since) for each in watchers]
            while not self._over.is_set() and not all(each.wait(0.05) for each in seen):
                pass
        for eye in self._eyes:
            eye.check()


class _Session:
    """A memcached connection that is bound to the table's mapping and stores rows.

    patience: seconds that it waits for an answer.
    """

    def __init__(self, address: str, table: Table, patience: float) -> None:
        self._address = address
        self._table = table
        where = parse_address(address)
        try:
            self._socket = connect(where.socket_address, patience)
        except OSError as error:
            raise BenchError(f"{address}: {error.strerror or error}") from error
        self._replies = self._socket.makefile("rb")
        self._ask(b"bind %s\r\n" % table.mapping.encode(), b"SUCCEED\r\n")

    def write(self, names: Sequence[bytes]) -> None:
        """Store the rows, each after the answer to the one before. Raises BenchError when one is not stored."""
        for name in names:
            data = value(self._table.values, name)
            self._ask(b"set %s 0 0 %d\r\n%s\r\n" % (name, len(data), data), b"STORED\r\n")

    def close(self) -> None:
        """Close the connection."""
        self._replies.close()
        self._socket.close()

    def _ask(self, request: bytes, wanted: bytes) -> None:
        try:
            self._socket.sendall(request)
            reply = self._replies.readline(_MAX_LINE)
        except OSError as error:
            raise BenchError(f"{self._address}: no answer to {request[:60]!r}: {cause_of(error)}") from error
        if reply != wanted:
            raise BenchError(f"{self._address}: {request[:60]!r} was answered {reply!r} instead of {wanted!r}")


def _names(table: Table, trial: int) -> list[bytes]:
    first = table.keys.count + trial * WRITES
    return [key(table.keys, number) for number in range(first, first + WRITES)]


def _cell(table: Table, name: bytes) -> Name:
    # A number as text would be compared as a floating-point number, without the index.
    return int(name) if table.keys.shape == "int" else name.decode()


def _starts(trials: int, interval: int, seed: int) -> list[float]:
    """Return when each trial begins, seconds: one at random in each part of the intervals."""
    part = interval / A_TICK
    generator = random.Random(seed)  # noqa: S311 - moments
    return [(number + generator.random()) * part for number in range(trials)]
