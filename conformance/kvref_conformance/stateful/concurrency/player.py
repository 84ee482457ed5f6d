"""Run a history on an endpoint: send, look, compare with what the model allows."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import pymysql

from kvref_conformance.connection import beyond
from kvref_conformance.errors import CaseFailed
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Answer, Cells, Closed, Expected, Refill, Seen, Served, Silence, shown
from kvref_conformance.stateful.concurrency.exclusions import ObserverAbilities, refuses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kvref_conformance.connection import Connection
    from kvref_conformance.model.model import Model
    from kvref_conformance.model.rows import Row, RowId

Rows: TypeAlias = "tuple[tuple[str, str, str], ...]"
# A reply from an endpoint that is not blocked arrives within this time, also on a busy machine.
PATIENCE: Final = 8.0
# Seconds without a reply to a command that waits: long for an endpoint without the lock.
SILENT: Final = 0.02
# For each connection that a history leaves open to be closed by the endpoint.
CLOSE_SECONDS: Final = 1.0
# Between two looks at what follows soon.
PAUSE: Final = 0.002
# Seconds without a new row after which what was judged before has nothing left to commit.
SETTLED: Final = 0.3


class Observer(Protocol):
    """A SQL connection, each of whose statements commits itself unless a transaction was begun."""

    def query(self, statement: str) -> list[tuple[object, ...]]:
        """Run a SELECT and return its rows."""

    def execute(self, statement: str) -> None:
        """Run a statement without rows."""


@dataclass(frozen=True, slots=True)
class HistoryConnections:
    """The connections with which histories run.

    Args:
        connect: opens a memcached connection, binary or not.
        observer: sees what is committed.
        transaction: the connection of the open SQL transaction; None if the store allows none at the same time.
        waiter: the SQL connection that waits for rows; None as above.
        dirty: the SQL connection that reads uncommitted rows; None as above.
    """

    connect: Callable[..., Connection]
    observer: Observer
    transaction: Observer | None
    waiter: Observer | None
    dirty: Observer | None

    @property
    def abilities(self) -> ObserverAbilities:
        """Return the abilities of the observer."""
        return ObserverAbilities(transactions=self.transaction is not None)


@dataclass
class HistoryRun:
    """A history as it went.

    Args:
        rows: at the beginning: table, key, value.
        model: gives what is allowed.
        steps: that were done.
        told: each step and what came, for a reader.
        failed: what was wrong; empty where all was allowed.
        lines: the open connections.
        reported: the failure was raised.
    """

    rows: Rows
    model: Model
    steps: list[s.Step] = field(default_factory=list)
    transcript: list[str] = field(default_factory=list)
    failed: str = ""
    lines: dict[str, Connection] = field(default_factory=dict)
    reported: bool = False

    def __str__(self) -> str:
        rows = ", ".join(" ".join(row) for row in self.rows) or "no row"
        return "\n".join([f"at the beginning: {rows}", *self.transcript, f"not allowed: {self.failed}"])


class Player:
    """Runs histories, one after the other.

    Args:
        stage: where.
        model: makes a model with these rows.
        short_patience: what follows a failure, as `patience`: a history that hangs does so many times.

    patience: seconds in which what has to come comes.
    """

    def __init__(self, connections: HistoryConnections, model: Callable[[Rows], Model], short_patience: float) -> None:
        self._connections = connections
        self._model = model
        self._short_patience = short_patience
        self.patience = PATIENCE
        self._settled = False
        self._thread = ThreadPoolExecutor(1)
        self._waiting: Future[None] | None = None

    def close(self) -> None:
        """End the thread in which SQL waits."""
        self._thread.shutdown()

    def begin(self, rows: Rows) -> HistoryRun:
        """Fill the tables for a history that begins with these rows."""
        course = HistoryRun(rows, self._model(rows))
        self._try(course, lambda: self._fill(course.model))
        return course

    def take(self, course: HistoryRun, step: s.Step) -> None:
        """Do a step, unless the history has failed or the step may not be done now."""
        if not course.failed and not refuses(course.model, step, self._connections.abilities):
            course.steps.append(step)
            self._try(course, lambda: self._do(step, course))

    def finish(self, course: HistoryRun) -> None:
        """End everything that is open, in turn: a command that waits ends after the one that it waits for."""
        done = len(course.steps)
        for step in _ending(course.model):
            self.take(course, step)
        del course.steps[done:]
        self._let_go(course.lines)

    def shorten(self) -> None:
        """Wait less from now on."""
        self.patience = self._short_patience

    def run(self, rows: Rows, steps: Iterable[s.Step]) -> HistoryRun:
        """Run a history from its first row to the end of its last connection."""
        course = self.begin(rows)
        for step in steps:
            self.take(course, step)
        self.finish(course)
        return course

    @staticmethod
    def _try(course: HistoryRun, do: Callable[[], str]) -> None:
        try:
            course.failed = do()
        except (CaseFailed, pymysql.MySQLError, sqlite3.Error) as error:
            course.failed = f"{type(error).__name__}: {error}"

    def _do(self, step: s.Step, course: HistoryRun) -> str:
        model = course.model
        number = model.number(step) if isinstance(step, s.Store) and step.verb == "cas" else 0
        begins = isinstance(step, s.Change) and step.within and not model.sql_open
        expected = model.take(step)
        course.transcript.append(encodings.shown(step))
        # The rows before a connection ends.
        before = [expected.pop(0)] if isinstance(step, s.Close) and isinstance(expected[0], Seen) else []
        failed = self._compare_all(before, course)
        if failed:
            return failed
        if isinstance(step, s.Change | s.End):
            self._state(step, model, begins=begins)
        elif isinstance(step, s.Close):
            if step.quits:
                line = course.lines[step.on]
                line.send(encodings.sent(s.BINARY, "quit") if line.binary else b"quit\r\n")
        elif not isinstance(step, s.Look):
            if isinstance(step, s.Open):
                course.lines[step.on] = self._connect(model.skipped, binary=step.protocol == s.BINARY)
                step = s.Bind(step.on, step.mapping, protocol=step.protocol)
            data = encodings.sent(step.protocol, encodings.request(step, number))
            course.lines[step.on].send(data, ask=True)
        return self._compare_all(expected, course)

    def _connect(self, skipped: int, *, binary: bool) -> Connection:
        # The endpoint deals connections to its threads in turn.
        for _ in range(skipped):
            self._connections.connect(binary=binary).close()
        return self._connections.connect(binary=binary)

    def _compare_all(self, expected: list[Expected], course: HistoryRun) -> str:
        for each in expected:
            wrong = self._look(course.model, each, course.lines)
            course.transcript.append(f"    {wrong or each}")
            if wrong:
                return f"{each}, but {wrong}"
        return ""

    def _look(self, model: Model, expected: Expected, lines: dict[str, Connection]) -> str:
        """Look at what is expected; returns what came instead."""
        match expected:
            case Silence(s.AUTOCOMMIT):
                return "" if self._is_waiting(SILENT) else "SQL does not wait"
            case Served():
                return "SQL goes on waiting" if self._is_waiting(self.patience) else ""
            case Silence():
                answer = _answer(lines[expected.on], SILENT)
                return "" if answer is None else f"it does not wait: {answer!r}"
            case Closed():
                return "" if lines.pop(expected.on).hang_up(self.patience) else "it is not closed"
            case Answer():
                answer = _answer(lines[expected.on], self.patience)
                if answer is None:
                    return f"no answer came within {self.patience:g} s"
                return "" if model.numbers.answers(expected, answer) else repr(answer)
            case Refill():
                self._connections.observer.execute(self._insert(expected.table, dict(expected.rows)))
                return ""
        return self._compare(model, expected)

    def _is_waiting(self, patience: float) -> bool:
        assert self._waiting is not None, "a statement was begun"
        try:
            self._waiting.result(patience)
        except TimeoutError:
            return True
        return False

    def _compare(self, model: Model, expected: Seen) -> str:
        observer = self._connections.dirty if expected.dirty else self._connections.observer
        assert observer is not None, "care refuses a dirty look where there is none"
        deadline = time.monotonic() + self.patience
        while True:
            seen = list(self._cells(observer, model))
            if model.numbers.sees(expected, seen):
                return ""
            if not expected.soon or time.monotonic() > deadline:
                return f"SQL sees {shown(seen)}"
            time.sleep(PAUSE)

    def _cells(self, observer: Observer, model: Model) -> Iterator[Cells]:
        for table, (key, value, flags, cas) in self._rows(observer, model):
            yield table, str(key), str(value), int(str(flags)), int(str(cas))

    def _rows(self, observer: Observer, model: Model) -> Iterator[tuple[str, Sequence[object]]]:
        for table in model.all_tables():
            for row in observer.query(f"SELECT c1, c2, c3, c4 FROM {table}"):
                yield table, row

    def _fill(self, model: Model) -> str:
        """Begin with the rows of the model; what a history before left open may still be committed meanwhile."""
        if not self._settled:
            self._settle(model)
        deadline = time.monotonic() + PATIENCE
        while True:
            for table in model.all_tables():
                self._connections.observer.execute(f"DELETE FROM {table}")
            try:
                for table in model.all_tables():
                    rows = {place: model.rows.newest(place) for place in model.rows.places(table)}
                    self._connections.observer.execute(self._insert(table, rows))
            except (pymysql.MySQLError, sqlite3.Error):
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)
            else:
                return ""

    def _settle(self, model: Model) -> None:
        """Wait for the commits of connections that other cases have closed: they would add rows to a history."""
        # Not cells: rows of other cases may hold NULL.
        seen: list[tuple[str, Sequence[object]]] = []
        until = time.monotonic() + SETTLED
        while time.monotonic() < until:
            before, seen = seen, list(self._rows(self._connections.observer, model))
            if seen != before:
                until = time.monotonic() + SETTLED
            time.sleep(PAUSE)
        self._settled = True

    def _state(self, step: s.Change | s.End, model: Model, *, begins: bool) -> None:
        within = isinstance(step, s.End) or step.within
        observer = self._connections.transaction if within else self._connections.observer
        assert observer is not None, "care refuses a transaction where there is none"
        if isinstance(step, s.End):
            observer.execute("COMMIT" if step.commit else "ROLLBACK")
            return
        if begins:
            observer.execute("BEGIN")
        if _asleep(step, model):
            assert self._connections.waiter is not None, "care lets no statement wait where it may not"
            self._waiting = self._thread.submit(self._connections.waiter.execute, self._statement(step, model))
            return
        observer.execute(self._statement(step, model))

    def _statement(self, step: s.Change, model: Model) -> str:
        name, where = step.table, f"WHERE c1 = '{step.key}'"
        if step.verb == "delete":
            return f"DELETE FROM {name} {where}"
        asleep = _asleep(step, model)
        owner = s.SQL if step.within else s.AUTOCOMMIT
        row = asleep[1] if asleep else model.rows.own(owner, (step.table, step.key))
        assert row is not None, "it was just written"
        if step.verb == "insert":
            return self._insert(step.table, {(step.table, step.key): row})
        return f"UPDATE {name} SET c2 = '{row.item.value}', c3 = {row.item.flags}, c4 = {row.number.seen} {where}"

    def _insert(self, table: str, rows: Mapping[RowId, Row | None]) -> str:
        items = ((key, row.item, row.number.seen) for (_, key), row in rows.items() if row)
        cells = (f"('{key}', '{item.value}', {item.flags}, {number}, 0)" for key, item, number in items)
        return f"INSERT INTO {table} VALUES {', '.join(cells)}"

    def _let_go(self, lines: dict[str, Connection]) -> None:
        if self._connections.transaction is not None:
            with suppress(pymysql.MySQLError):  # the server may be what failed
                self._connections.transaction.execute("ROLLBACK")
        # All at once: a connection that waits for a lock of another one is not closed before that one.
        for line in lines.values():
            line.send(b"", half=True)
        for line in lines.values():
            line.drain(CLOSE_SECONDS)
        if self._waiting is not None:
            with suppress(pymysql.MySQLError, TimeoutError):
                self._waiting.result(self.patience)
            self._waiting = None


def _answer(connection: Connection, patience: float) -> str | None:
    """Return the reply to the last request and how the connection ended; None if it is not there in time."""
    reply = connection.answer(patience)
    if reply is None:
        return None
    text = encodings.received(s.BINARY if connection.binary else s.TEXT, reply.data)
    if reply.limit:
        return f"{text}({beyond(reply.limit)})"
    return f"{text}(connection closed)" if reply.closed else text


def _asleep(step: s.Change, model: Model) -> tuple[RowId, Row | None] | None:
    """Return what a statement waits for and what it will write, where it waits."""
    waits = model.sql_waits
    return waits if waits and not step.within and waits[0] == (step.table, step.key) else None


def _ending(model: Model) -> Iterator[s.Step]:
    """End everything that is open, in turn: a command that waits ends after the one that it waits for."""
    yield s.End(commit=True)
    for _ in range(len(model.open)):
        for on in list(model.open):
            yield s.Close(on, quits=False)
    yield s.Look()
