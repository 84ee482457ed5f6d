"""Histories against one endpoint under one group of settings: draw, hold, shrink."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final, Self

from kvref_conformance.differential.shrink import fewer
from kvref_conformance.stateful.concurrency.generate import History, history
from kvref_conformance.stateful.concurrency.model import Model
from kvref_conformance.stateful.concurrency.player import PATIENCE, Course, Player, Stage
from kvref_conformance.stateful.concurrency.rules import Limits, Rules
from kvref_conformance.stateful.concurrency.steps import TABLES
from kvref_conformance.triage.repeat import DEFAULT_TIMES, Repeated, Repeats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.connection import Connection
    from kvref_conformance.coverage import Exercised
    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.sql.base import Database
    from kvref_conformance.sql.world import World
    from kvref_conformance.stateful.concurrency.steps import Step

# Seconds, while a history is shrunk: one that hangs does so many times. A lock wait that ends takes longer.
SHORT_PATIENCE: Final = {False: 0.6, True: 4.0}
# More than a history opens connections: none shares a thread with another.
NO_THREADS: Final = 1000


class Histories:
    """Histories with an endpoint that runs with these settings.

    Args:
        endpoint: the endpoint.
        world: its tables and mappings.
        settings: its settings, by the plugin's names.
        exercised: collects the requests; None: they are not collected.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        world: World,
        settings: Mapping[str, int],
        exercised: Exercised | None = None,
    ) -> None:
        self.repeated = Repeated(0, 0)
        self._stack = ExitStack()
        self._rules, self._limits = Rules.of(endpoint.profile), Limits.of(settings)
        self._names = {mapping: world.names[mapping] for mapping in TABLES}
        own = {mapping: (f"test/{world.names[table]}",) for mapping, table in TABLES.items()}
        self._words = own if self._rules.bound_named else dict.fromkeys(TABLES, world.default_words())
        self._threads = _threads(endpoint) if world.database.has_plugin() else NO_THREADS
        observer = self._another(world.database, "READ COMMITTED")
        transaction, waiter, dirty = None, None, None
        if world.database.engine == "mysql":
            transaction = self._another(world.database, "READ COMMITTED")
            waiter = self._another(world.database, "READ COMMITTED")
            dirty = self._another(world.database, "READ UNCOMMITTED")
        tables = {table: world.names[table] for table in sorted(set(TABLES.values()))}
        if exercised is not None:
            exercised.begin(world.names, settings=settings)

        numbers = count()

        def connect() -> Connection:
            on = f"line {next(numbers)}"
            if exercised is None:
                return endpoint.connect()
            return endpoint.connect(watch=lambda sent: exercised.say(on, sent) if sent else exercised.end(on))

        stage = Stage(connect, observer, transaction, waiter, dirty, tables, self._names)
        self._means = stage.means
        self._player = Player(stage, self._begin)
        self._stack.callback(self._player.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def try_one(self, seed: str) -> str:
        """Hold the history of a seed; returns what is not allowed in it, shrunk, with all that was said before."""
        script = self.draw(seed)
        course = self.hold(script)
        if not course.failed:
            return ""
        small, again = script, course
        # What fails without a step cannot shrink: the endpoint is gone. What cannot be repeated is shown as it was.
        if not self.hold(replace(script, steps=())).failed:
            shorter = self.shrink(script)
            repeated = self.hold(shorter)
            small, again = (shorter, repeated) if repeated.failed else (script, course)
        self.repeated = Repeats(DEFAULT_TIMES).of(lambda _: bool(self.hold(small).failed), waits=False)
        rows = ", ".join(" ".join(row) for row in small.rows) or "no row"
        return "\n".join([f"at the beginning: {rows}", *again.lines, f"not allowed: {again.failed}"])

    def draw(self, seed: str) -> History:
        """Draw the history of a seed."""
        return history(Random(seed), self._begin, self._means)

    def hold(self, script: History) -> Course:
        """Hold a history."""
        return self._player.hold(script)

    def shrink(self, script: History) -> History:
        """Return a smaller history in which something is not allowed either."""
        self._player.patience = SHORT_PATIENCE[self._limits.gives_up]
        try:
            return self._smaller(script)
        finally:
            self._player.patience = PATIENCE

    def _smaller(self, script: History) -> History:
        while True:
            before = script
            script = replace(script, steps=tuple(fewer(script.steps, partial(self._fails_with_steps, script))))
            script = replace(script, rows=tuple(fewer(script.rows, partial(self._fails_with_rows, script))))
            if script == before:
                return script

    def _fails_with_steps(self, script: History, steps: list[Step]) -> bool:
        return bool(self.hold(replace(script, steps=tuple(steps))).failed)

    def _fails_with_rows(self, script: History, rows: list[tuple[str, str, str]]) -> bool:
        return bool(self.hold(replace(script, rows=tuple(rows))).failed)

    def _begin(self, rows: tuple[tuple[str, str, str], ...]) -> Model:
        return Model(self._rules, self._limits, self._names, self._words, self._threads, rows)

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
