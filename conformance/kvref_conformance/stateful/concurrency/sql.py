"""The SQL connections of histories: rows that are committed or not, an open transaction, a statement that waits."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kvref_conformance.endpoints.endpoint_target import EndpointTarget
from kvref_conformance.errors import CaseFailed
from kvref_conformance.judging.player import Player
from kvref_conformance.model.expected import Cells, Seen, shown
from kvref_conformance.stateful.statements import (
    COMMITTED,
    DIRTY,
    LEVELS,
    PATIENCE,
    TRANSACTION,
    WAITER,
    insertion,
    opening,
)
from kvref_conformance.steps import AwaitSql, Sql, StartSql
from kvref_conformance.wire.sentinels import Sentinels
from kvref_conformance.wire.template import Names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.judging.player import Result
    from kvref_conformance.model.model import Model
    from kvref_conformance.sql.world import World

# Before rows that are not those of the model.
SEES: Final = "SQL sees "
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
        for name in LEVELS if self.transactions else ():
            self._take(opening(name))
            self._take(Sql(f"SET SESSION innodb_lock_wait_timeout = {PATIENCE:g}", on=name))

    def close(self) -> None:
        """Close the connections."""
        self._player.close()
        self._target.close()

    def fill(self, model: Model) -> list[Sql]:
        """Give the tables the rows of a model; what a history before left open may still be committed meanwhile.

        Args:
            model: no step was taken yet.

        Returns:
            The statements that a case begins with which repeats the history.
        """
        if not self._settled:
            self._settle(model)
        tables = model.all_tables()
        deletes = [Sql(f"DELETE FROM {table}", on=COMMITTED) for table in tables]
        rows = ({place: model.rows.newest(place) for place in model.rows.places(table)} for table in tables)
        inserts = [insertion(table, own) for table, own in zip(tables, rows, strict=True)]
        deadline = time.monotonic() + PATIENCE
        while True:
            for statement in deletes:
                self._take(statement)
            try:
                for statement in inserts:
                    self._take(statement)
            except CaseFailed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)
            else:
                return deletes + inserts

    def run(self, step: Sql | StartSql) -> str:
        """Run a statement; returns the error, or what came of one that should wait, "" where all is well."""
        shown = self._player.take(step)
        if isinstance(step, StartSql):
            return "" if shown is None else str(shown.result)
        assert shown is not None, "a statement has a result"
        return str(shown.result["error"][1]) if "error" in shown.result else ""

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
                return f"{SEES}{shown(seen)}"
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
            result = self._take(Sql(f"SELECT c1, c2, c3, c4 FROM {table}", on=on))
            assert result is not None, "nothing is waited for"
            for row in result["rows"]:
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
