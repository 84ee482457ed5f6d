"""Histories against one endpoint under one group of settings."""

from __future__ import annotations

import itertools
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from hypothesis.errors import Flaky

from kvref_conformance.budget import Budget
from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import ShrinkLimit, ShrinkLimitReached
from kvref_conformance.model.model import MANY_THREADS, Model
from kvref_conformance.model.rules import Limits
from kvref_conformance.model.words import Mappings
from kvref_conformance.stateful.command_rules import missing_in
from kvref_conformance.stateful.concurrency.machine import FENCES, STEPS, TABLES, HistoryMachine
from kvref_conformance.stateful.concurrency.player import PATIENCE, HistoryConnections, Player
from kvref_conformance.stateful.run import example_settings, run_machine
from kvref_conformance.triage.repeat import DEFAULT_TIMES, Repeated, Repeats

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kvref_conformance.connection import Connection
    from kvref_conformance.coverage import Exercised
    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.sql.base import Database
    from kvref_conformance.sql.world import World
    from kvref_conformance.stateful.concurrency.player import HistoryRun, Rows

# Seconds, while a history is shrunk: one that hangs does so many times. A lock wait that ends takes longer.
SHORT_PATIENCE: Final = {False: 0.6, True: 4.0}
# Seconds in which a history is shortened; a case has one, and each try takes longer than one of a few commands.
SHORTENING_SECONDS: Final = 60.0


class Histories:
    """Histories with an endpoint that runs with these settings.

    Args:
        endpoint: the endpoint.
        world: its tables and mappings.
        settings: its settings, by the plugin's names.
        exercised: collects the requests; None: they are not collected.

    failed: the smallest history that failed.
    repeated: how often it was repeated.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        world: World,
        settings: Mapping[str, int],
        exercised: Exercised | None = None,
    ) -> None:
        self.failed: HistoryRun | None = None
        self.repeated = Repeated(0, 0)
        self.limits = Limits.of(settings)
        self._stack = ExitStack()
        self._endpoint, self._names = endpoint, world.names
        tables = {world.names[mapping]: world.names[table] for mapping, table in TABLES.items()}
        self._mappings = Mappings.of(endpoint.profile, tables, world.default_words())
        self._threads = _threads(endpoint) if world.database.has_plugin() else MANY_THREADS
        if exercised is not None:
            exercised.begin(world.names, settings=settings)
        self.player = Player(
            self._connections(world.database, exercised), self._model, SHORT_PATIENCE[self.limits.gives_up]
        )
        self._stack.callback(self.player.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def explore(
        self, name: str, examples: int, start: object, budget: Budget | None = None, database: Path | None = None
    ) -> str:
        """Run drawn histories.

        Args:
            name: of the case.
            examples: maximum number of histories.
            start: seed.
            budget: of the run of the suite.
            database: as `example_settings`.

        Returns:
            The smallest history in which something is not allowed, with what; "" if all is allowed.

        Raises:
            OverTime: the time limit of the run is reached.
        """
        limit = ShrinkLimit(budget or Budget(0), SHORTENING_SECONDS)
        own = {"player": self.player, "names": self._names, "limit": limit, "missing": missing_in(self._endpoint)}
        machine: type[HistoryMachine] = type(name, (HistoryMachine,), own)
        try:
            run_machine(machine, example_settings(examples, database, stateful_step_count=STEPS), start)
        except (CaseFailed, ShrinkLimitReached, Flaky):
            course = self.failed = machine.last
            assert course is not None, "a history has failed"
            self.player.patience = PATIENCE
            again = Repeats(DEFAULT_TIMES)
            self.repeated = again.of(lambda _: bool(self.player.run(course.rows, course.steps).failed), waits=False)
            return str(course)
        return ""

    def _model(self, rows: Rows) -> Model:
        return Model(
            self._endpoint.profile,
            self._mappings,
            limits=self.limits,
            threads=self._threads,
            fences=FENCES,
            rows=rows,
        )

    def _connections(self, database: Database, exercised: Exercised | None) -> HistoryConnections:
        transaction, waiter, dirty = None, None, None
        observer = self._another(database, "READ COMMITTED")
        if database.engine == "mysql":
            transaction = self._another(database, "READ COMMITTED")
            waiter = self._another(database, "READ COMMITTED")
            dirty = self._another(database, "READ UNCOMMITTED")
        numbers = itertools.count()

        def connect(*, binary: bool) -> Connection:
            on = f"connection {next(numbers)}"

            def watch(sent: bytes) -> None:
                if exercised is not None:
                    exercised.record(on, sent, binary=binary) if sent else exercised.end(on)

            return self._endpoint.connect(binary=binary, watch=watch)

        return HistoryConnections(connect, observer, transaction, waiter, dirty)

    def _another(self, database: Database, level: str) -> Database:
        """Open another SQL connection; it has a short lock wait timeout."""
        another = database.another()
        self._stack.callback(another.close)
        if database.engine == "mysql":
            another.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            another.execute(f"SET SESSION innodb_lock_wait_timeout = {PATIENCE:g}")
        return another


def _threads(endpoint: Endpoint) -> int:
    """Return the number of worker threads of the plugin; a command that waits blocks all connections of its thread."""
    with endpoint.connect() as connection:
        found = re.search(rb"STAT threads (\d+)", connection.ask((b"stats\r\n",), patience=PATIENCE).data)
    return int(found[1]) if found else 1
