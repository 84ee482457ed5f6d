"""The SQL connections of histories: rows that are committed or not, an open transaction, a statement that waits."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kvref_conformance.endpoint_target import EndpointTarget
from kvref_conformance.errors import CaseFailed
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Cells, Seen, shown
from kvref_conformance.player import Player
from kvref_conformance.sentinels import Sentinels
from kvref_conformance.steps import AwaitSql, Sql, StartSql
from kvref_conformance.template import Names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.model.model import Model
    from kvref_conformance.model.rows import Row, RowId
    from kvref_conformance.player import Result
    from kvref_conformance.sql.world import World

# Names of connections: without a transaction, in the open one, with the statement that waits, at READ UNCOMMITTED.
COMMITTED: Final = "committed"
TRANSACTION: Final = "transaction"
WAITER: Final = "waiter"
DIRTY: Final = "dirty"
LEVELS: Final = {**dict.fromkeys((COMMITTED, TRANSACTION, WAITER), "READ COMMITTED"), DIRTY: "READ UNCOMMITTED"}
# Seconds for which a statement waits for a lock, and in which the tables can be filled.
PATIENCE: Final = 8.0
# Between two looks at what follows soon.
PAUSE: Final = 0.002
# Seconds without a new row after which what was judged before has nothing left to commit.
SETTLED: Final = 0.3


class SqlConnections:
    """What the steps of a history do over SQL.

    Args:
        endpoint: the endpoint.
        world: its tables; over SQLite, which has one writer, no transaction is open and no statement waits.
    """

    def __init__(self, endpoint: Endpoint, world: World) -> None:
        self._target = EndpointTarget(endpoint, world)
        self._player = Player(self._target, Names({}, str), Sentinels())
        self.transactions = world.database.engine == "mysql"
        self._settled = False
        for name, level in LEVELS.items() if self.transactions else ():
            self._execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}", name)
            self._execute(f"SET SESSION innodb_lock_wait_timeout = {PATIENCE:g}", name)

    def close(self) -> None:
        """Close the connections."""
        self._player.close()
        self._target.close()

    def fill(self, model: Model) -> None:
        """Give the tables the rows of a model; what a history before left open may still be committed meanwhile."""
        if not self._settled:
            self._settle(model)
        deadline = time.monotonic() + PATIENCE
        while True:
            for table in model.all_tables():
                self._execute(f"DELETE FROM {table}")
            try:
                for table in model.all_tables():
                    self.insert(table, {place: model.rows.newest(place) for place in model.rows.places(table)})
            except CaseFailed:
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
            self._execute("COMMIT" if step.commit else "ROLLBACK", TRANSACTION)
            return
        if step.within and begins:
            self._execute("BEGIN", TRANSACTION)
        statement = _statement(step, model)
        if _waits(step, model):
            self._player.take(StartSql(statement, WAITER))
        else:
            self._execute(statement, TRANSACTION if step.within else COMMITTED)

    def insert(self, table: str, rows: Mapping[RowId, Row | None]) -> None:
        """Insert rows."""
        self._execute(_insert(table, rows))

    def is_waiting(self, patience: float) -> bool:
        """Return whether the statement that waits still does so after some seconds; raises CaseFailed if it failed."""
        return self._take(AwaitSql(WAITER, patience=patience)) is None

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
            self._target.execute(TRANSACTION, "ROLLBACK")  # the server may be what failed: an error is none here

    def end_waiting(self, patience: float) -> None:
        """Wait until the statement that waits has ended, at most for some seconds."""
        if WAITER in self._player.running:
            with suppress(CaseFailed):
                self.is_waiting(patience)

    def _execute(self, statement: str, on: str = COMMITTED) -> Result:
        result = self._take(Sql(statement, on=on))
        assert result is not None, "nothing is waited for"
        return result

    def _take(self, step: Sql | AwaitSql) -> Result | None:
        """Return the result of a statement, None if it still runs; raises CaseFailed if it failed."""
        result: Result | None = self._player.take(step).result
        if result is not None and "error" in result:
            raise CaseFailed(result["error"][1])
        return result

    def _cells(self, model: Model, *, dirty: bool) -> Iterator[Cells]:
        for table, (key, value, flags, cas) in self._rows(model, DIRTY if dirty else COMMITTED):
            yield table, str(key), str(value), int(str(flags)), int(str(cas))

    def _rows(self, model: Model, on: str) -> Iterator[tuple[str, Sequence[object]]]:
        for table in model.all_tables():
            for row in self._execute(f"SELECT c1, c2, c3, c4 FROM {table}", on)["rows"]:
                yield table, row

    def _settle(self, model: Model) -> None:
        """Wait for the commits of connections that other cases have closed: they would add rows to a history."""
        # Not cells: rows of other cases may hold NULL.
        seen: list[tuple[str, Sequence[object]]] = []
        until = time.monotonic() + SETTLED
        while time.monotonic() < until:
            before, seen = seen, list(self._rows(model, COMMITTED))
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
