"""Generated histories: three memcached connections and a SQL observer, with batches, isolation levels and locks.

`machine.py` draws a history and `player.py` runs it. After each step the model
(`kvref_conformance.model`) returns what may be observed: replies, no reply while a command waits, rows over SQL. Steps
whose outcome is undefined, or that freeze the plugin, are excluded (`exclusions.py`). hypothesis shrinks a history
with a failure (`run.py`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from kvref_conformance.budget import OverTime
from kvref_conformance.errors import NotRun
from kvref_conformance.model.rules import Limits
from kvref_conformance.stateful.concurrency.run import Histories
from kvref_conformance.verdict import FAILS, FLAKY, HOLDS, NOT_RUN, Verdict

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge

__all__ = ["Histories", "judge_histories"]

# One of so many where a lock wait is left to its timeout of a second or two.
SLOW: Final = 5


def judge_histories(judge: Judge, case: Case, chapter: str, count: int, start: int) -> list[Verdict]:
    """Run histories on the endpoint under the settings of a case.

    Args:
        judge: of the run; gives endpoint and tables.
        case: gives the settings.
        chapter: for the verdict.
        count: how many, where none waits for a timeout.
        start: seed; the same seed, profile, settings and suite give the same histories.
    """
    began = time.monotonic()

    def verdict(word: str, reason: str = "", text: str = "", repeated: str = "") -> list[Verdict]:
        about = (word, reason, round(time.monotonic() - began, 4))
        return [Verdict(case.id, chapter, case.requirements, *about, text=text, repeated=repeated)]

    refused = judge.refuse(case)
    if refused is not None:
        return verdict(*refused)
    if judge.world is None or judge.settings is None or case.settings is None:
        return verdict(NOT_RUN, "needs --sql DSN: the suite creates its own tables and reads them")
    try:
        judge.settings.bring(case.settings)
        judge.world.configure(None)
    except NotRun as reason:
        return verdict(NOT_RUN, str(reason))
    if Limits.of(case.settings).gives_up:
        count = -(-count // SLOW)
    with Histories(judge.endpoint, judge.world, case.settings, judge.exercised) as histories:
        try:
            failure = histories.explore(case.id, count, f"{start}:{case.id}", judge.budget, judge.database)
        except OverTime:
            return verdict(NOT_RUN, judge.budget.spent())
        if failure:
            again = histories.repeated
            text = judge.explain(case, f"seed {start}\n{failure}\nrepeated: {again}")
            return verdict(FLAKY if again.flaky else FAILS, judge.statement_of(case), text, str(again))
    return verdict(HOLDS)
