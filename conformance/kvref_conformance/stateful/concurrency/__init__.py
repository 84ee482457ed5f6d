"""Concurrent connections: histories with batches, isolation levels and locks, and commands sent at the same time.

In a history three memcached connections and a SQL observer take their steps one after another: `machine.py` draws it,
`run.py` runs it as all generated conversations are run, `sql.py` has the SQL connections. After each step the
model (`kvref_conformance.model`) returns what may be observed: replies, no reply while a command waits, rows over SQL.
Steps whose outcome is undefined, or that freeze the plugin, are excluded (`exclusions.py`). hypothesis shrinks a
history with a failure.

`simultaneous.py` draws commands that three connections send at the same time; `linearizability.py` judges the replies.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from hypothesis.errors import Flaky

from kvref_conformance.budget import OverTime
from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.findings import ShrinkLimitReached
from kvref_conformance.model.rules import Limits
from kvref_conformance.stateful.case_names import SIMULTANEOUS
from kvref_conformance.stateful.command_rules import missing_in
from kvref_conformance.stateful.concurrency.run import Histories
from kvref_conformance.stateful.concurrency.simultaneous import Clients, plans
from kvref_conformance.stateful.run import example_settings, run_examples
from kvref_conformance.verdict import FAILS, FLAKY, HOLDS, NOT_RUN, Verdict

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge
    from kvref_conformance.triage.repeat import Repeated

__all__ = ["Histories", "judge_concurrency"]

# One of so many where a lock wait is left to its timeout of a second or two.
SLOW: Final = 5


def judge_concurrency(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run histories under the settings of a case, or simultaneous commands; arguments as of `judge_generated`."""
    began = time.monotonic()
    simultaneous = case.id == SIMULTANEOUS

    def verdict(word: str, reason: str = "", text: str = "", repeated: str = "") -> list[Verdict]:
        about = (word, reason, round(time.monotonic() - began, 4))
        return [Verdict(case.id, chapter, case.requirements, *about, text=text, repeated=repeated)]

    try:
        if judge.settings is not None:
            judge.settings.bring(case.settings)
        if judge.world is not None:
            judge.world.configure(None)
        failure, repeated = (_simultaneous if simultaneous else _histories)(judge, case, examples, start)
    except NotRun as reason:
        return verdict(NOT_RUN, str(reason))
    except OverTime:
        return verdict(NOT_RUN, judge.budget.spent())
    if not failure:
        return verdict(HOLDS)
    word = FLAKY if repeated is not None and repeated.flaky else FAILS
    text = judge.explain(case, f"seed {start}\n{failure}\nrepeated: {repeated or 'a race is not repeated'}")
    return verdict(word, judge.statement_of(case), text, str(repeated or ""))


def _histories(judge: Judge, case: Case, examples: int, start: int) -> tuple[str, Repeated | None]:
    assert judge.world is not None, "without --sql it is not run"
    assert case.settings is not None, "the settings of a history are in the case"
    if Limits.of(case.settings).gives_up:
        examples = -(-examples // SLOW)
    with Histories(judge.endpoint, judge.world, case.settings, judge.exercised) as histories:
        failure = histories.explore(case.id, examples, f"{start}:{case.id}", judge.budget, judge.database)
        return failure, histories.repeated


def _simultaneous(judge: Judge, case: Case, examples: int, start: int) -> tuple[str, Repeated | None]:
    draws = plans(missing_in(judge.endpoint))
    clients = Clients(judge)
    try:
        run_examples(case.id, draws, clients.run, example_settings(examples, judge.database), f"{start}:{case.id}")
    except (CaseFailed, ShrinkLimitReached, Flaky):
        return clients.last, None
    return "", None
