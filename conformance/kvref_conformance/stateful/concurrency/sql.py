"""The SQL connections of histories: rows that are committed or not, an open transaction, a statement that waits."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

import pymysql

from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Cells, Seen, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvref_conformance.model.model import Model
    from kvref_conformance.model.rows import Row, RowId
    from kvref_conformance.sql.base import Database

# Seconds for which a statement waits for a lock, and in which the tables can be filled.
PATIENCE: Final = 8.0
# Between two looks at what follows soon.
PAUSE: Final = 0.002
# Seconds without a new row after which what was judged before has nothing left to commit.
SETTLED: Final = 0.3


class SqlConnections:
    """What the steps of a history do over SQL.

    Args:
        database: has the tables; over SQLite, which has one writer, no transaction is open and no statement waits.
    """

    def __init__(self, database: Database) -> None:
        self._stack = ExitStack()
        self._committed = self._another(database, "READ COMMITTED")
        self.transactions = database.engine == "mysql"
        self._transaction = self._waiter = self._dirty = self._committed
        if self.transactions:
            self._transaction = self._another(database, "READ COMMITTED")
            self._waiter = self._another(database, "READ COMMITTED")
            self._dirty = self._another(database, "READ UNCOMMITTED")
        self._thread = self._stack.enter_context(ThreadPoolExecutor(1))
        self._waiting: Future[None] | None = None
        self._settled = False

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()

    def fill(self, model: Model) -> None:
        """Give the tables the rows of a model; what a history before left open may still be committed meanwhile."""
        if not self._settled:
            self._settle(model)
        deadline = time.monotonic() + PATIENCE
        while True:
            for table in model.all_tables():
                self._committed.execute(f"DELETE FROM {table}")
            try:
                for table in model.all_tables():
                    self.insert(table, {place: model.rows.newest(place) for place in model.rows.places(table)})
            except (pymysql.MySQLError, sqlite3.Error):
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)
            else:
                return

    def run(self, step: s.Change | s.End, model: Model, *, begins: bool) -> None:
        """Run a statement, in a thread of its own if it waits.

        Args:
            step: the statement.
            model: has taken the step.
            begins: no transaction was open before it.
        """
        if isinstance(step, s.End):
            self._transaction.execute("COMMIT" if step.commit else "ROLLBACK")
            return
        if step.within and begins:
            self._transaction.execute("BEGIN")
        statement = _statement(step, model)
        if _waits(step, model):
            self._waiting = self._thread.submit(self._waiter.execute, statement)
        else:
            (self._transaction if step.within else self._committed).execute(statement)

    def insert(self, table: str, rows: Mapping[RowId, Row | None]) -> None:
        """Insert rows."""
        self._committed.execute(_insert(table, rows))

    def is_waiting(self, patience: float) -> bool:
        """Return whether the statement that waits still does so after some seconds; raises what it raised."""
        if self._waiting is None:
            return False
        try:
            self._waiting.result(patience)
        except TimeoutError:
            return True
        return False

    def compare(self, model: Model, expected: Seen, patience: float) -> str:
        """Return what SQL sees if these are not the rows; what is expected soon is waited for."""
        deadline = time.monotonic() + patience
        while True:
            seen = list(self._cells(model, dirty=expected.dirty))
            if model.numbers.sees(expected, seen):
                return ""
            if not expected.soon or time.monotonic() > deadline:
                return f"SQL sees {shown(seen)}"
            time.sleep(PAUSE)

    def roll_back(self) -> None:
        """End the transaction that a history has left open."""
        if self.transactions:
            with suppress(pymysql.MySQLError):  # the server may be what failed
                self._transaction.execute("ROLLBACK")

    def end_waiting(self, patience: float) -> None:
        """Forget the statement that waits, once it has ended or after some seconds."""
        with suppress(pymysql.MySQLError):
            self.is_waiting(patience)
        self._waiting = None

    def _another(self, database: Database, level: str) -> Database:
        """Open another SQL connection; it has a short lock wait timeout."""
        another = database.another()
        self._stack.callback(another.close)
        if database.engine == "mysql":
            another.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            another.execute(f"SET SESSION innodb_lock_wait_timeout = {PATIENCE:g}")
        return another

    def _cells(self, model: Model, *, dirty: bool) -> Iterator[Cells]:
        for table, (key, value, flags, cas) in self._rows(model, self._dirty if dirty else self._committed):
            yield table, str(key), str(value), int(str(flags)), int(str(cas))

    def _rows(self, model: Model, observer: Database) -> Iterator[tuple[str, Sequence[object]]]:
        for table in model.all_tables():
            for row in observer.query(f"SELECT c1, c2, c3, c4 FROM {table}"):
                yield table, row

    def _settle(self, model: Model) -> None:
        """Wait for the commits of connections that other cases have closed: they would add rows to a history."""
        # Not cells: rows of other cases may hold NULL.
        seen: list[tuple[str, Sequence[object]]] = []
        until = time.monotonic() + SETTLED
        while time.monotonic() < until:
            before, seen = seen, list(self._rows(model, self._committed))
            if seen != before:
                until = time.monotonic() + SETTLED
            time.sleep(PAUSE)
        self._settled = True


def _statement(step: s.Change, model: Model) -> str:
    where = f"WHERE c1 = '{step.key}'"
    if step.verb == "delete":
        return f"DELETE FROM {step.table} {where}"
    waits = _waits(step, model)
    row = waits[1] if waits else model.rows.own(s.SQL if step.within else s.AUTOCOMMIT, (step.table, step.key))
    assert row is not None, "it was just written"
    if step.verb == "insert":
        return _insert(step.table, {(step.table, step.key): row})
    return f"UPDATE {step.table} SET c2 = '{row.item.value}', c3 = {row.item.flags}, c4 = {row.number.seen} {where}"


def _insert(table: str, rows: Mapping[RowId, Row | None]) -> str:
    items = ((key, row.item, row.number.seen) for (_, key), row in rows.items() if row)
    cells = (f"('{key}', '{item.value}', {item.flags}, {number}, 0)" for key, item, number in items)
    return f"INSERT INTO {table} VALUES {', '.join(cells)}"


def _waits(step: s.Change, model: Model) -> tuple[RowId, Row | None] | None:
    """Return what a statement waits for and what it will write, where it waits."""
    waits = model.sql_waits
    return waits if waits and not step.within and waits[0] == (step.table, step.key) else None
