"""Histories against one endpoint under one group of settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from kvref_conformance.judging.findings import Signature, signature
from kvref_conformance.model import steps as s
from kvref_conformance.model.model import MANY_THREADS, Model
from kvref_conformance.model.rules import Limits
from kvref_conformance.model.words import Mappings
from kvref_conformance.stateful.as_case import as_case
from kvref_conformance.stateful.command_rules import missing_in
from kvref_conformance.stateful.concurrency.exclusions import refuses
from kvref_conformance.stateful.concurrency.machine import FENCES, KEYS, STEPS, TABLES, HistoryMachine
from kvref_conformance.stateful.concurrency.sql import SEES, SqlConnections
from kvref_conformance.stateful.modelled import ModelledConversation
from kvref_conformance.stateful.run import example_settings, run_machine
from kvref_conformance.stateful.statements import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_conformance.case import Case
    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.judging.findings import Search
    from kvref_conformance.judging.judge import Judge
    from kvref_conformance.sql.world import World
    from kvref_conformance.stateful.modelled import Wrong

Rows: TypeAlias = "tuple[tuple[str, str, str], ...]"
"""Rows that a history begins with: table, key, value."""
# Seconds, while a history is shrunk: one that hangs does so many times. A lock wait that ends takes longer.
SHORT_PATIENCE: Final = {False: 0.6, True: 4.0}
# Seconds in which a history is shortened; a case has one, and each try takes longer than one of a few commands.
SHORTENING_SECONDS: Final = 60.0


class Histories:
    """Histories with an endpoint that runs with the settings of a case.

    Args:
        judge: of the run.
        world: the tables and mappings.
        case: has the settings.
        search: takes what is not allowed.
    """

    def __init__(self, judge: Judge, world: World, case: Case, search: Search) -> None:
        assert case.settings is not None, "the settings of a history are in the case"
        self._limits = Limits.of(case.settings, judge.endpoint.profile)
        self._judge, self._case, self._search = judge, case, search
        self._endpoint, self._names = judge.endpoint, world.names
        tables = {world.names[mapping]: world.names[table] for mapping, table in TABLES.items()}
        self._mappings = Mappings.of(self._endpoint.profile, tables, world.default_words())
        self._threads = _threads(self._endpoint) if world.database.has_plugin() else MANY_THREADS
        judge.exercised.begin(world.names, settings=case.settings)
        self._sql = SqlConnections(self._endpoint, world)
        self._patience = PATIENCE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sql.close()

    def explore(self, examples: int, start: object) -> None:
        """Run drawn histories.

        Args:
            examples: maximum number of histories.
            start: seed.

        Raises:
            what `run_machine` raises: something new is not allowed.
        """
        self._patience = PATIENCE
        own = {"histories": self, "names": self._names, "missing": missing_in(self._endpoint)}
        machine: type[HistoryMachine] = type(self._case.id, (HistoryMachine,), own)
        run_machine(machine, example_settings(examples, self._judge.database, stateful_step_count=STEPS), start)

    def script(self) -> Case:
        """Return the smallest history that failed as a case."""
        return as_case(self._case, self._search.last, self._judge)

    def begin(self, rows: Rows) -> ModelledConversation:
        """Begin a history with these rows.

        Raises:
            CaseFailed: its first step that is not allowed, as `take` and `finish`.
            ShrinkLimitReached: no smaller history is to be looked for.
        """
        self._search.patience.check()
        profile = self._endpoint.profile
        model = Model(profile, self._mappings, limits=self._limits, threads=self._threads, fences=FENCES, rows=rows)
        exercised = self._judge.exercised
        exercised.end("")
        conversation = ModelledConversation(
            self._endpoint, model, self._report, exercised=exercised, sql=self._sql, patience=self._patience
        )
        conversation.fill()
        return conversation

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

    def _report(self, conversation: ModelledConversation) -> None:
        assert conversation.wrong is not None, "something is not allowed"
        self._patience = SHORT_PATIENCE[self._limits.gives_up]
        self._search.fail(self._case.id, tuple(conversation.exchanges), _signature(conversation.wrong))


def _signature(wrong: Wrong) -> Signature:
    """Return a signature as `findings.signature`; rows that differ are one thing, whichever they are."""
    return ("rows",) if wrong.got.startswith(SEES) else signature(*wrong, KEYS)


def _ending(model: Model) -> Iterator[s.Step]:
    yield s.End(commit=True)
    for _ in range(len(model.open)):
        for on in list(model.open):
            yield s.Close(on, quits=False)
    yield s.Read()


def _threads(endpoint: Endpoint) -> int:
    """Return the number of worker threads of the plugin; a command that waits blocks all connections of its thread."""
    with endpoint.connect() as connection:
        found = re.search(rb"STAT threads (\d+)", connection.exchange((b"stats\r\n",), patience=PATIENCE).data)
    return int(found[1]) if found else 1
