"""Histories against one endpoint under one group of settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from hypothesis.errors import Flaky

from kvref_conformance.budget import Budget
from kvref_conformance.conversation import render
from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import ShrinkLimit, ShrinkLimitReached
from kvref_conformance.model import steps as s
from kvref_conformance.model.model import MANY_THREADS, Model
from kvref_conformance.model.rules import Limits
from kvref_conformance.model.words import Mappings
from kvref_conformance.stateful.command_rules import missing_in
from kvref_conformance.stateful.concurrency.exclusions import refuses
from kvref_conformance.stateful.concurrency.machine import FENCES, STEPS, TABLES, HistoryMachine
from kvref_conformance.stateful.concurrency.sql import PATIENCE, SqlConnections
from kvref_conformance.stateful.modelled import ModelledConversation
from kvref_conformance.stateful.run import example_settings, run_machine
from kvref_conformance.triage.repeat import DEFAULT_TIMES, Repeated, Repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from kvref_conformance.coverage import Exercised
    from kvref_conformance.endpoint import Endpoint
    from kvref_conformance.sql.world import World

Rows: TypeAlias = "tuple[tuple[str, str, str], ...]"
"""Rows that a history begins with: table, key, value."""
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

    failed: the smallest history that failed: its rows, and how it went.
    repeated: how often it was repeated.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        world: World,
        settings: Mapping[str, int],
        exercised: Exercised | None = None,
    ) -> None:
        self.failed: tuple[Rows, ModelledConversation] | None = None
        self.repeated = Repeated(0, 0)
        self.limits = Limits.of(settings)
        self._endpoint, self._names = endpoint, world.names
        tables = {world.names[mapping]: world.names[table] for mapping, table in TABLES.items()}
        self._mappings = Mappings.of(endpoint.profile, tables, world.default_words())
        self._threads = _threads(endpoint) if world.database.has_plugin() else MANY_THREADS
        if exercised is not None:
            exercised.begin(world.names, settings=settings)
        self._exercised = exercised
        self._sql = SqlConnections(endpoint, world)
        self._patience = PATIENCE
        self._limit = ShrinkLimit(Budget(0), SHORTENING_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sql.close()

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
        self._limit = ShrinkLimit(budget or Budget(0), SHORTENING_SECONDS)
        own = {"histories": self, "names": self._names, "missing": missing_in(self._endpoint)}
        machine: type[HistoryMachine] = type(name, (HistoryMachine,), own)
        try:
            run_machine(machine, example_settings(examples, database, stateful_step_count=STEPS), start)
        except (CaseFailed, ShrinkLimitReached, Flaky):
            assert self.failed is not None, "a history has failed"
            rows, conversation = self.failed
            self._patience = PATIENCE
            self.repeated = Repeats(DEFAULT_TIMES).of(lambda _: self.fails(rows, conversation.steps), waits=False)
            return _described(rows, conversation)
        return ""

    def begin(self, rows: Rows) -> ModelledConversation:
        """Begin a history with these rows.

        Raises:
            CaseFailed: its first step that is not allowed, as `take` and `finish`.
            ShrinkLimitReached: no smaller history is to be looked for.
        """
        self._limit.check()

        def report(conversation: ModelledConversation) -> None:
            self.failed = rows, conversation
            self._limit.found()
            self._patience = SHORT_PATIENCE[self.limits.gives_up]
            raise CaseFailed(_described(rows, conversation))

        return self._begin(rows, report)

    def take(self, conversation: ModelledConversation, step: s.Step) -> None:
        """Do a step, unless it may not be done now."""
        if conversation.wrong is None and not refuses(conversation.model, step, transactions=self._sql.transactions):
            conversation.take(step)

    def finish(self, conversation: ModelledConversation) -> None:
        """End everything that is open, in turn: a command that waits ends after the one that it waits for."""
        done = len(conversation.steps)
        try:
            for step in _ending(conversation.model):
                self.take(conversation, step)
        finally:
            del conversation.steps[done:]
            conversation.close()

    def fails(self, rows: Rows, steps: Iterable[s.Step]) -> bool:
        """Run a history again, and return whether something is not allowed."""
        conversation = self._begin(rows, lambda _: None)
        for step in steps:
            self.take(conversation, step)
        self.finish(conversation)
        return conversation.wrong is not None

    def _begin(self, rows: Rows, report: Callable[[ModelledConversation], None]) -> ModelledConversation:
        model = Model(
            self._endpoint.profile,
            self._mappings,
            limits=self.limits,
            threads=self._threads,
            fences=FENCES,
            rows=rows,
        )
        if self._exercised is not None:
            self._exercised.end("")
        conversation = ModelledConversation(
            self._endpoint, model, report, exercised=self._exercised, sql=self._sql, patience=self._patience
        )
        conversation.fill()
        return conversation


def _described(rows: Rows, conversation: ModelledConversation) -> str:
    """Write a history for a reader."""
    return f"at the beginning: {', '.join(map(' '.join, rows)) or 'no row'}\n{render(conversation.exchanges)}"


def _ending(model: Model) -> Iterator[s.Step]:
    yield s.End(commit=True)
    for _ in range(len(model.open)):
        for on in list(model.open):
            yield s.Close(on, quits=False)
    yield s.Look()


def _threads(endpoint: Endpoint) -> int:
    """Return the number of worker threads of the plugin; a command that waits blocks all connections of its thread."""
    with endpoint.connect() as connection:
        found = re.search(rb"STAT threads (\d+)", connection.ask((b"stats\r\n",), patience=PATIENCE).data)
    return int(found[1]) if found else 1
