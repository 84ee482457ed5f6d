"""Random conversations: a hypothesis state machine (`rules.py`) judged by a model of its own (`model.py`, `words.py`).

The model is an acceptor: it says which answers are allowed and learns from the one that came (a cas number is known
only once `gets` has shown it). It shares no code with the server, only the facts of the profile.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hypothesis import seed
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from kvref_conformance.conversation import render
from kvref_conformance.errors import CaseFailed
from kvref_conformance.generated import example_settings, no_folder_left_behind
from kvref_conformance.machine.rules import CommandMachine
from kvref_conformance.verdict import FAILS, HOLDS, NOT_JUDGED, Verdict

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge

STEPS = 30
RUNS = 4  # one run in some ten meets an answer of 8.0 that does not repeat


def judge_machine(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> Verdict:
    """Hold random conversations with the endpoint.

    Where the deviations document answers that do not repeat, a failure that the same bytes do not bring again is passed
    over: the next seed is tried, and RUNS such failures in a row count.

    Args:
        judge: of the run; gives endpoint, tables and keys.
        case: names the requirement.
        chapter: for the verdict.
        examples: how many conversations, of at most STEPS commands each.
        start: seed; the same seed, endpoint and suite give the same conversations.
    """
    began = time.monotonic()
    if judge.world is None and judge.endpoint.profile.flag("mapping.supported"):
        why = "needs --sql DSN: the machine uses three mappings of its own"
        return Verdict(case.id, chapter, case.requirements, NOT_JUDGED, why)
    if judge.world is not None:
        judge.world.configure(None)
    known = judge.deviations.unrepeatable.get(case.id, "")
    machine: type[CommandMachine] = type("SeededMachine", (CommandMachine,), {"judge": judge})
    word, reason, text = HOLDS, "", ""
    for number in range(RUNS if known else 1):
        failure, repeats = _run(machine, examples, start + number)
        text = failure or text
        if failure and not repeats:
            reason = known
        else:
            break
    if failure:
        word, reason, text = FAILS, judge.statement_of(case), judge.explain(case, failure)
    duration = round(time.monotonic() - began, 4)
    return Verdict(case.id, chapter, case.requirements, word, reason, duration, machine.last_failure, text)


def _run(machine: type[CommandMachine], examples: int, start: int) -> tuple[str, bool]:
    """Return the failure text of a run, empty when it held, and whether the same bytes failed again."""
    try:
        with no_folder_left_behind():
            run_state_machine_as_test(
                seed(start)(machine), settings=example_settings(examples, stateful_step_count=STEPS)
            )
    except CaseFailed as failure:
        return f"seed {start}\n{failure}", True
    except Flaky:
        text = f"seed {start}; the same bytes, sent again, were answered otherwise"
        return f"{text}\n{render(machine.last_failure)}", False
    return "", True
