"""Random conversations: a hypothesis state machine (`rules.py`) judged by a model of its own (`model.py`, `words.py`).

The model is an acceptor: it says which answers are allowed and learns from the one that came (a cas number is known
only once `gets` has shown it). It shares no code with the server, only the facts of the profile.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Verbosity, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from kvref_conformance.conversation import render
from kvref_conformance.errors import CaseFailed
from kvref_conformance.machine.rules import CommandMachine
from kvref_conformance.verdict import FAILS, HOLDS, NOT_JUDGED, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge

STEPS = 30
TWICE = "in each of two runs, but not when the same bytes were sent again"
UNREPEATED = "one answer was not allowed, but neither the same bytes nor a second run brought it again"


def judge_machine(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> Verdict:
    """Hold random conversations with the endpoint.

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
    word, reason, text = HOLDS, "", ""
    machine: type[CommandMachine] = type("SeededMachine", (CommandMachine,), {"judge": judge})
    seed(start)(machine)
    try:
        if _run(machine, examples):
            word, reason, text = (
                FAILS,
                judge.statement_of(case),
                f"seed {start}, {TWICE}\n{render(machine.last_failure)}",
            )
        elif machine.last_failure:
            reason, text = f"{UNREPEATED} (seed {start})", render(machine.last_failure)
    except CaseFailed as failure:
        word, reason, text = FAILS, judge.statement_of(case), f"seed {start}\n{failure}"
    if word == FAILS:
        text = judge.explain(case, text)
    duration = round(time.monotonic() - began, 4)
    return Verdict(case.id, chapter, case.requirements, word, reason, duration, machine.last_failure, text)


def _run(machine: type[CommandMachine], examples: int) -> bool:
    # The plugins answered otherwise than before twice in 90,000 steps, never again with the same bytes. A failure that
    # repeats is a finding at once (CaseFailed); one that does not must come again in a second run of the same seed.
    for _ in range(2):
        try:
            with _no_folder_left_behind():
                run_state_machine_as_test(machine, settings=_settings(examples))
        except Flaky:
            continue
        return False
    return True


@contextmanager
def _no_folder_left_behind() -> Iterator[None]:
    # Hypothesis caches what it reads of the modules under test; the working directory is the user's.
    with TemporaryDirectory() as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        # The endpoint sets the pace; everything else hypothesis warns of would be a fault of the machine.
        suppress_health_check=[HealthCheck.too_slow],
    )
