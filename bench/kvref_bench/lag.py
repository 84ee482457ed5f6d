"""Measure how long it takes until SQL sees a write: write a few rows, stop, and query until they are visible.

A trial is one memcached connection that writes `WRITES` new rows one by one and then is idle. From the last STORED on
it measures, each once:

* `visible`: until a SQL connection at READ COMMITTED sees all of the rows;
* `uncommitted`: until one at READ UNCOMMITTED does (InnoDB only: a SQLite file has no such reads);
* `unlocked`: until `SELECT … FOR UPDATE` gets the lock of each row (InnoDB only: kvref's batches over SQLite lock no
  rows for SQL). It waits in the server, as an application would; so it needs no NOWAIT, which 5.6 lacks.

For the first two, one connection each looks for the rows of all trials every 5 ms; a write delays a look by its own
duration. Trials overlap, but at most `A_TICK` begin in one interval: 5.6.14 commits six connections at a tick
(transactions page, section 3), and the seventh would measure the queue. Within the interval they begin at random, since
the ticks are at fixed times after the start of the server.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import ER

from kvref_bench.errors import BenchError
from kvref_bench.load import histogram
from kvref_bench.load.records import Cell, Kind, Usage, WorkerResult
from kvref_bench.peers import wire
from kvref_bench.peers.base_tables import DATABASE
from kvref_bench.peers.sqlite_tables import SCHEME, SQLiteTables
from kvref_bench.sql import login
from kvref_bench.workload.keys import key
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from kvref_bench.scenario.records import Table

    Name = int | str

VISIBLE: Final = Kind("set", "visible")
UNCOMMITTED: Final = Kind("set", "uncommitted")
UNLOCKED: Final = Kind("set", "unlocked")
ISOLATION: Final = {VISIBLE: "READ COMMITTED", UNCOMMITTED: "READ UNCOMMITTED"}

WRITES: Final = 10
A_TICK: Final = 5
EVERY: Final = 0.005  # seconds between two looks
LONGEST: Final = 20.0  # seconds, besides three intervals: 5.6.14 takes 5 and up to one interval


def measure(address: str, dsn: str, table: Table, *, trials: int, interval: int, seed: int = 0) -> list[WorkerResult]:
    """Measure after how long writes are seen; the rows are gone afterwards.

    address: HOST:PORT or unix:PATH of the memcached endpoint. dsn: of the SQL server or SQLite file behind it.
    table: prepared on that endpoint; rows beyond its own are written.
    trials: how many. interval: `innodb_api_bk_commit_interval` in force, s. seed: of the moments at which trials begin.

    Returns: one result: a count of each kind in each trial, in service timing; `open`: how many were not seen within
        20 s and three intervals, which `stopped` names.

    Raises:
        BenchError: the table is missing, or the endpoint cannot be reached or does not store.
    """
    began, cpu, found = time.time_ns(), os.times(), Found(LONGEST + 3 * interval)
    cells = [_cell(table, name) for trial in range(trials) for name in _names(table, trial)]
    kinds = (VISIBLE,) if dsn.startswith(SCHEME) else (VISIBLE, UNCOMMITTED)
    generator, part = random.Random(seed), interval / A_TICK  # noqa: S311 - moments
    with ExitStack() as stack:
        cleaner = stack.enter_context(closing(Rows(dsn, table)))
        cleaner.run("DELETE FROM", cells)
        stack.callback(cleaner.run, "DELETE FROM", cells)
        observers = {kind: stack.enter_context(closing(Rows(dsn, table, ISOLATION[kind]))) for kind in kinds}
        locks = stack.enter_context(ThreadPoolExecutor(trials))
        # One at random in each part of the intervals.
        starts = deque((number + generator.random()) * part for number in range(trials))
        going: list[Trial] = []
        while starts or going:
            time.sleep(EVERY)
            if starts and time.perf_counter() - found.start >= starts[0]:
                starts.popleft()
                trial = Trial(_names(table, trials - 1 - len(starts)), set(kinds))
                stack.callback(trial.end)
                trial.begin(address, table)
                if UNCOMMITTED in kinds:
                    trial.locking = locks.submit(_lock, dsn, table, list(trial.cells), int(found.limit))
                going.append(trial)
            for kind, rows in observers.items():
                _observe(kind, rows, [each for each in going if kind in each.awaited], found)
            for each in [each for each in going if each.is_over(found)]:
                each.end()
                going.remove(each)
    used = os.times()
    usage = Usage(used.user - cpu.user, used.system - cpu.system)
    seconds, stopped = time.perf_counter() - found.start, "; ".join(found.unseen) or None
    host, lost = socket.gethostname(), len(found.unseen)
    return [WorkerResult(0, host, os.getpid(), began, seconds, found.histograms, usage, open=lost, stopped=stopped)]


class Found:
    """What was seen.

    limit: seconds after which something counts as not seen.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.start = time.perf_counter()
        self.histograms: dict[Cell, dict[int, int]] = {}
        self.unseen: list[str] = []

    def settle(self, kind: Kind, since: int, now: int | None) -> None:
        """Count what was seen at a moment of `perf_counter_ns`; None: not within the limit.

        since: the reply to the last write of its trial, of `perf_counter_ns`.
        """
        if now is None or self.is_late(since, now):
            self.unseen.append(f"not {kind.outcome} after {self.limit:g} s")
        else:
            cell = Cell(int(now / 1e9 - self.start), kind, "service")
            histogram.add(self.histograms.setdefault(cell, {}), {histogram.index(now - since): 1})

    def is_late(self, since: int, now: int) -> bool:
        """Return whether the limit is over."""
        return now - since > self.limit * 1e9


class Rows:
    """A SQL connection to the rows of a scenario's table; every statement is a separate transaction.

    patience: seconds that it waits for a row lock.

    Raises:
        BenchError: the database is not reached.
    """

    def __init__(self, dsn: str, table: Table, isolation: str = ISOLATION[VISIBLE], patience: int = 50) -> None:
        self._file = SQLiteTables(dsn) if dsn.startswith(SCHEME) else None
        self._table = f'"{DATABASE}.{table.name}"' if self._file else f"{DATABASE}.{table.name}"
        self._connection: Any = None
        if self._file is None:
            self._connection = login.parse(dsn).connect()
            with self._connection.cursor() as cursor:
                cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")
                cursor.execute("SET SESSION innodb_lock_wait_timeout = %s", (patience,))

    def run(self, what: str, names: Sequence[Name], end: str = "") -> list[Any]:
        """Run `what` on the rows with these keys and return the first column. Raises BenchError."""
        mark = "?" if self._file else "%s"
        statement = f"{what} {self._table} WHERE k IN ({', '.join([mark] * len(names))}) {end}"
        if self._file is not None:
            return [row[0] for row in self._file.query(statement, tuple(names))]
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement, tuple(names))
            except pymysql.MySQLError as error:
                raise BenchError(f"SQL could not look for the rows of {self._table}: {error}") from error
            return [row[0] for row in cursor.fetchall()]

    def present(self, names: Sequence[Name]) -> set[Name]:
        """Return those of the keys that have a row which this connection sees."""
        found = self.run("SELECT k FROM", names) if names else []
        return {each.decode() if isinstance(each, bytes) else each for each in found}

    def lock(self, names: Sequence[Name]) -> bool:
        """Wait until no other transaction has locked a row of the keys; False when that took too long."""
        try:
            # One by one: with all of them a small table is read whole, and rows of others are waited for.
            for name in names:
                self.run("SELECT k FROM", [name], "FOR UPDATE")
        except BenchError as error:
            cause = error.__cause__
            if isinstance(cause, pymysql.err.OperationalError) and cause.args[0] == ER.LOCK_WAIT_TIMEOUT:
                return False
            raise
        return True

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()


@dataclass
class Trial:
    """A connection that has written rows and is idle.

    names: keys of the rows. awaited: kinds of reads that have not seen the rows. locking: gives the moment at which
    the lock was free; None: no lock is measured.
    """

    names: Sequence[bytes]
    awaited: set[Kind]
    cells: frozenset[Name] = frozenset()
    since: int = 0
    locking: Future[int | None] | None = None
    _session: ExitStack = field(default_factory=ExitStack)

    def begin(self, address: str, table: Table) -> None:
        """Write the rows. Raises BenchError if the endpoint cannot be reached or does not store."""
        self.cells = frozenset(_cell(table, each) for each in self.names)
        session = self._session.enter_context(wire.line_connection(address))
        _exchange(session, b"bind %s" % table.mapping.encode(), b"SUCCEED")
        for name in self.names:
            data = value(table.values, name)
            _exchange(session, b"set %s 0 0 %d\r\n%s" % (name, len(data), data), b"STORED")
        self.since = time.perf_counter_ns()

    def is_over(self, found: Found) -> bool:
        """Return whether all has been seen or given up; counts the lock."""
        if self.awaited or not (self.locking is None or self.locking.done()):
            return False
        if self.locking is not None:
            found.settle(UNLOCKED, self.since, self.locking.result())
        return True

    def end(self) -> None:
        """Close the connection."""
        self._session.close()


def _observe(kind: Kind, rows: Rows, trials: Sequence[Trial], found: Found) -> None:
    there, now = rows.present([cell for each in trials for cell in each.cells]), time.perf_counter_ns()
    for each in trials:
        if each.cells <= there or found.is_late(each.since, now):
            found.settle(kind, each.since, now)
            each.awaited.remove(kind)


def _lock(dsn: str, table: Table, cells: Sequence[Name], patience: int) -> int | None:
    with closing(Rows(dsn, table, patience=patience)) as rows:
        return time.perf_counter_ns() if rows.lock(cells) else None


def _exchange(session: wire.LineConnection, request: bytes, wanted: bytes) -> None:
    reply = session.exchange(request)
    if reply != wanted:
        raise BenchError(f"{session.address}: {request[:60]!r} was answered {reply!r} instead of {wanted!r}")


def _names(table: Table, trial: int) -> list[bytes]:
    first = table.keys.count + trial * WRITES
    return [key(table.keys, number) for number in range(first, first + WRITES)]


def _cell(table: Table, name: bytes) -> Name:
    # A number as text would be compared as a floating-point number, without the index.
    return int(name) if table.keys.shape == "int" else name.decode()
