"""Generated conversations find planted defects, and no step of the conversation that they report can be left out.

The numbers of examples are the default ones. The time in which a conversation is shortened is longer: how far it gets in
the default time depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from helpers.live import nightly
from hypothesis.errors import Flaky

from kvref_conformance.case import Case
from kvref_conformance.cases.generated import SETTINGS
from kvref_conformance.errors import CaseFailed
from kvref_conformance.judging.conversation import render
from kvref_conformance.judging.findings import Search, ShrinkLimit, ShrinkLimitReached
from kvref_conformance.judging.judge import Judge
from kvref_conformance.judging.trial import judging
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.running.options import DEFAULT_EXAMPLES, DEFAULT_HISTORIES
from kvref_conformance.stateful.commands import STEPS, CommandMachine
from kvref_conformance.stateful.concurrency import Histories
from kvref_conformance.stateful.concurrency.machine import CONNECTIONS
from kvref_conformance.stateful.concurrency.run import Rows
from kvref_conformance.stateful.modelled import ModelledConversation
from kvref_conformance.stateful.run import example_settings, run_machine
from kvref_testbed import targets
from kvref_testbed.targets.kvref_server import KvrefSQLite

pytestmark = [pytest.mark.live, pytest.mark.nightly]
SEEDS = (1, 2, 3, 4, 5)
SECONDS = 200.0
# Found by commands on two connections.
OF_COMMANDS = (
    "answers_a_repeated_key_once",
    "shares_the_binding",
    "counts_below_zero",
    "counts_on_text",
    "forgets_the_switch_of_a_silent_store",
    "stores_whatever_the_cas_number",
    "takes_unknown_for_default",
)
# Found by histories of three connections with batches.
OF_HISTORIES = {
    "takes_one_write_more": SETTINGS["writes"],
    "hides_own_writes": SETTINGS["snapshot"],
    "keeps_one_view_at_level_1": SETTINGS["committed"],
}


def sample(defects: Iterable[str]) -> list[Any]:
    """Return a case for each defect and seed; the first of all is in the default tier."""
    each = [(defect, seed) for defect in defects for seed in SEEDS]
    return [each[0], *(nightly(*one) for one in each[1:])]


class Recorder(CommandMachine):
    """Keeps the shortest conversation that failed."""

    shortest: ClassVar[Recorder | None]

    @property
    def sent(self) -> list[s.Request]:
        """Return the commands of the conversation."""
        return [step for step in self.conversation.steps if not isinstance(step, s.Open)]

    def report(self, conversation: ModelledConversation) -> None:
        """Keep it, and report it as ever."""
        if self.shortest is None or len(self.sent) <= len(self.shortest.sent):
            Recorder.shortest = self
        super().report(conversation)


@contextmanager
def judged(defect: str, settings: dict[str, int] | None = None) -> Iterator[Judge]:
    """Serve the default profile with a defect, and yield a judge of it."""
    recipe = KvrefSQLite(defect, program=("kvref_testbed.mutants", defect))
    named = {**(settings or {}), "innodb_api_bk_commit_interval": 100000}
    options = [word for name, value in named.items() for word in ("--set", f"{name}={value}")]
    with targets.booted(recipe, options if settings else ()) as instance:
        store = instance.target.store
        assert store is not None
        with judging(instance.target.memcached(), store, lambda: None, instance.restart) as judge:
            yield judge


def renamed(step: s.Request, keys: dict[str, str]) -> s.Request:
    """Return a command with other keys."""

    def word(old: str) -> str:
        for key, other in keys.items():
            old = old.replace(key, other)
        return old

    if isinstance(step, s.Get):
        return replace(step, words=tuple(map(word, step.words)))
    return replace(step, word=word(step.word)) if isinstance(step, s.Store | s.Count | s.Delete | s.Touch) else step


def fails(machine: type[CommandMachine], steps: list[s.Request], found: Recorder) -> bool:
    """Return whether a reply to these commands, or a row behind them, is not allowed."""
    machine.search = Search(machine.judge)
    run = machine()
    run.begin(protocols=tuple(found.protocols.values()))
    try:
        for step in steps:
            run.do(renamed(step, dict(zip(found.keys, run.keys, strict=True))))
        run.compare_rows()
    except CaseFailed:
        return True
    finally:
        run.conversation.close()
    return False


@pytest.mark.parametrize(("defect", "seed"), sample(OF_COMMANDS))
def test_commands_find_a_defect_and_need_each_step(defect: str, seed: int) -> None:
    Recorder.shortest = None
    with judged(defect) as judge:
        search = Search(judge)
        search.patience = ShrinkLimit(judge.budget, SECONDS)
        machine = type("planted-defect", (Recorder,), {"judge": judge, "search": search})
        with pytest.raises((CaseFailed, ShrinkLimitReached, Flaky)):
            run_machine(machine, example_settings(DEFAULT_EXAMPLES, stateful_step_count=STEPS), seed)
        assert Recorder.shortest is not None
        found, steps = Recorder.shortest, Recorder.shortest.sent
        shown = "\n".join(map(encodings.shown, steps))
        assert fails(machine, steps, found), f"does not repeat:\n{shown}"
        unneeded = [n for n in range(len(steps)) if fails(machine, steps[:n] + steps[n + 1 :], found)]
        assert not unneeded, f"steps {unneeded} of\n{shown}"


class RecordedHistories(Histories):
    """Keeps what it began with."""

    def __init__(self, judge: Judge, case: Case) -> None:
        assert judge.world is not None
        self.search = Search(judge, SECONDS)
        super().__init__(judge, judge.world, case, self.search)
        self.begun: list[tuple[Rows, ModelledConversation]] = []

    def begin(self, rows: Rows) -> ModelledConversation:
        """Begin a history, and keep it."""
        conversation = super().begin(rows)
        self.begun.append((rows, conversation))
        return conversation

    def shortest(self) -> tuple[Rows, list[s.Step]]:
        """Return the rows and the steps of the history that is reported."""
        return next((rows, each.steps) for rows, each in self.begun if tuple(each.exchanges) == self.search.last)


def history_fails(judge: Judge, case: Case, rows: Rows, steps: list[s.Step]) -> bool:
    """Return whether something in these steps is not allowed."""
    with RecordedHistories(judge, case) as histories:
        try:
            conversation = histories.begin(rows)
            try:
                for step in steps:
                    histories.take(conversation, step)
            finally:
                histories.finish(conversation)
        except CaseFailed:
            return True
    return False


@pytest.mark.nightly  # shortening a history takes minutes: each try waits for replies that do not come
@pytest.mark.parametrize(("defect", "seed"), sample(OF_HISTORIES))
def test_histories_find_a_defect_and_need_each_step(defect: str, seed: int) -> None:
    settings = OF_HISTORIES[defect]
    case = Case("planted-defect", (), (), settings=settings)
    with judged(defect, settings) as judge, RecordedHistories(judge, case) as histories:
        with pytest.raises((CaseFailed, ShrinkLimitReached, Flaky)):
            histories.explore(DEFAULT_HISTORIES, seed)
        shown, script = render(histories.search.last), histories.script()
        rows, found = histories.shortest()
        opens, steps = found[: len(CONNECTIONS)], found[len(CONNECTIONS) :]
        assert history_fails(judge, case, rows, found), f"does not repeat:\n{shown}"
        assert judge.breaks(replace(script, settings=None), 1.0), f"the case does not repeat it:\n{shown}"
        tries = [opens + steps[:n] + steps[n + 1 :] for n in range(len(steps))]
        unneeded = [str(steps[n]) for n, left in enumerate(tries) if history_fails(judge, case, rows, left)]
        assert not unneeded, f"{unneeded} of\n{shown}"
