"""Generated tables: hypothesis draws a table, its rows and commands (`strategies.py`), a model returns the replies.

Three cases, each a loop of examples: any table; any row of `containers`, invalid or unusual, next to a valid one; any
delimiter and separator. A failure shrinks to the smallest table and the fewest commands that reproduce it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from hypothesis.errors import Flaky

from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.stateful.case_names import ANY_CONFIGURATION, ANY_ROW, ANY_TABLE
from kvref_conformance.stateful.run import example_settings, run_examples
from kvref_conformance.stateful.schemas import strategies
from kvref_conformance.stateful.schemas.player import Talk
from kvref_conformance.verdict import FAILS, HOLDS, NOT_RUN, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import settings
    from hypothesis.strategies import SearchStrategy

    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge

Example = Any
# Divisors of the number of examples of each case; a configuration costs a reload, so few are tried.
SHARE: Final = {ANY_TABLE: 1, ANY_ROW: 2, ANY_CONFIGURATION: 12}


def judge_schemas(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run generated conversations of one kind on the endpoint.

    Args:
        judge: of the run; gives endpoint, tables and keys.
        case: its id says what is generated.
        chapter: for the verdict.
        examples: of the run; each kind takes its share of them.
        start: seed; the same seed, endpoint and suite give the same conversations.
    """
    began = time.monotonic()

    def verdict(word: str, reason: str, talk: Talk | None = None, text: str = "") -> list[Verdict]:
        exchanges = tuple(talk.last) if talk is not None else ()
        duration = round(time.monotonic() - began, 4)
        script = talk.script(case) if talk is not None else None
        return [Verdict(case.id, chapter, case.requirements, word, reason, duration, exchanges, text, script=script)]

    refused = judge.refuse(case)
    if refused is not None:
        return verdict(*refused)
    if judge.world is None:
        return verdict(NOT_RUN, "needs --sql DSN: the suite creates its own tables and reads them")
    talk = Talk(judge, judge.world)
    draws, hold = _kinds(talk)[case.id]
    try:
        failure = _run(
            case.id, draws, hold, example_settings(max(2, examples // SHARE[case.id]), judge.database), start
        )
    except NotRun as reason:
        return verdict(NOT_RUN, str(reason))
    if failure:
        return verdict(FAILS, judge.statement_of(case), talk, judge.explain(case, failure))
    return verdict(HOLDS, "")


def _kinds(talk: Talk) -> dict[str, tuple[SearchStrategy[Example], Callable[[Example], None]]]:
    tables = strategies.tables()
    any_table = tables.flatmap(lambda table: st.tuples(st.just(table), strategies.commands(table)))
    return {
        ANY_TABLE: (any_table, lambda example: talk.hold_table(*example)),
        ANY_ROW: (strategies.container_rows(), talk.hold_row),
        ANY_CONFIGURATION: (strategies.configurations(), lambda example: talk.hold_configuration(*example)),
    }


def _run(
    name: str, draws: SearchStrategy[Example], hold: Callable[[Example], None], examples: settings, start: int
) -> str:
    """Return the failure text of a run, empty if it succeeded."""
    try:
        run_examples(name, draws, hold, examples, start)
    except CaseFailed as failure:
        return f"seed {start}\n{failure}"
    except Flaky as failure:
        return f"seed {start}; the same bytes, sent again, were answered otherwise\n{failure}"
    return ""
