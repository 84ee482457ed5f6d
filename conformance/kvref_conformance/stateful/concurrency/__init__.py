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

from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.judging.budget import OverTime
from kvref_conformance.judging.findings import Search, ShrinkLimitReached
from kvref_conformance.judging.verdict import FAILS, HOLDS, NOT_RUN, Verdict
from kvref_conformance.model.rules import Limits
from kvref_conformance.stateful.case_names import SIMULTANEOUS
from kvref_conformance.stateful.command_rules import missing_in
from kvref_conformance.stateful.concurrency.run import SHORTENING_SECONDS, Histories
from kvref_conformance.stateful.concurrency.simultaneous import NOT_A_RACE, Clients, plans
from kvref_conformance.stateful.examples import judge_examples
from kvref_conformance.stateful.run import example_settings, run_examples

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.judging.judge import Judge

__all__ = ["Histories", "judge_concurrency"]

# One of so many where a lock wait is left to its timeout of a second or two.
SLOW: Final = 5
# Things that histories under one group of settings may find: each costs a run of all of them.
MOST: Final = 3


def judge_concurrency(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run histories, or simultaneous commands; arguments as of `judge_generated`, which has set the case's settings."""
    judged = _simultaneous if case.id == SIMULTANEOUS else _histories
    return judged(judge, case, chapter, examples, start)


def _histories(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    assert judge.world is not None, "without --sql it is not run"
    assert case.settings is not None, "the settings of a history are in the case"
    if Limits.of(case.settings, judge.endpoint.profile).gives_up:
        examples = -(-examples // SLOW)
    search = Search(judge, SHORTENING_SECONDS, MOST)
    with Histories(judge, judge.world, case, search) as histories:

        def run() -> None:
            histories.explore(examples, f"{start}:{case.id}")

        return judge_examples(search, judge, case, chapter, start, run, histories.script)


def _simultaneous(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    began = time.monotonic()

    def verdict(word: str, reason: str = "", text: str = "") -> list[Verdict]:
        about = (word, reason, round(time.monotonic() - began, 4))
        return [Verdict(case.id, chapter, case.requirements, *about, text=text)]

    draws = plans(missing_in(judge.endpoint))
    clients = Clients(judge)
    try:
        run_examples(case.id, draws, clients.run, example_settings(examples, judge.database), f"{start}:{case.id}")
    except (CaseFailed, ShrinkLimitReached, Flaky):
        repeated = "" if NOT_A_RACE in clients.last else "\nrepeated: a race is not repeated"
        text = judge.explain(case, f"seed {start}\n{clients.last}{repeated}")
        return verdict(FAILS, judge.statement_of(case), text)
    except NotRun as reason:
        return verdict(NOT_RUN, str(reason))
    except OverTime:
        return verdict(NOT_RUN, judge.budget.spent())
    return verdict(HOLDS)
